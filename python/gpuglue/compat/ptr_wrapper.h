/* ptr_wrapper.h: PyGPU's pointer arguments for pybind11 extensions. A function that takes a ptr_wrapper<T>
 * accepts a pointer wrapper, an array (GPUArray, DeviceArray, or one of another library with `ptr`), or an int. The
 * caller keeps the memory alive. The header's directory is gpuglue.compat.get_include(). */
#ifndef GPUGLUE_COMPAT_PTR_WRAPPER_H
#define GPUGLUE_COMPAT_PTR_WRAPPER_H

#include <pybind11/pybind11.h>

#include <cstdint>

template <class T> class ptr_wrapper
{
  public:
    ptr_wrapper() : pointer(nullptr) {}
    explicit ptr_wrapper(T *pointer) : pointer(pointer) {}
    T *get() const { return pointer; }
    T &operator*() const { return *pointer; }
    T *operator->() const { return pointer; }
    operator T *() const { return pointer; }

  private:
    T *pointer;
};

namespace pybind11
{
namespace detail
{
template <class T> struct type_caster<ptr_wrapper<T>> {
    PYBIND11_TYPE_CASTER(ptr_wrapper<T>, const_name("pointer"));

    bool load(handle source, bool)
    {
        object number = reinterpret_borrow<object>(source), inner;
        if (!PyLong_Check(number.ptr()))
            inner = attribute(number, "device_data");
        if (!inner && !PyLong_Check(number.ptr()))
            inner = attribute(number, "ptr");
        if (inner)
            number = called(inner);
        if (PyObject_CheckBuffer(number.ptr()) && !PyLong_Check(number.ptr()) && is_array(number))
            return false; /* host memory; as a number it would be its value */
        if (!PyIndex_Check(number.ptr()) || PyBool_Check(number.ptr()))
            return false;
        object index = reinterpret_steal<object>(check(PyNumber_Index(number.ptr())));
        const unsigned long long address = PyLong_AsUnsignedLongLong(index.ptr());
        if (address == ~0ull && PyErr_Occurred())
            throw error_already_set();
        value = ptr_wrapper<T>(reinterpret_cast<T *>(static_cast<std::uintptr_t>(address)));
        return true;
    }

    static handle cast(const ptr_wrapper<T> &wrapped, return_value_policy, handle)
    {
        return PyLong_FromVoidPtr(const_cast<void *>(static_cast<const void *>(wrapped.get())));
    }

  private:
    /* A method in one class and a property in another. */
    static object called(object what)
    {
        return PyCallable_Check(what.ptr())
                   ? reinterpret_steal<object>(check(PyObject_CallNoArgs(what.ptr())))
                   : what;
    }
    /* None if there is no such attribute; an exception of a closed array is passed on. */
    static object attribute(const object &from, const char *name)
    {
        PyObject *found = PyObject_GetAttrString(from.ptr(), name);
        if (!found && !PyErr_ExceptionMatches(PyExc_AttributeError))
            throw error_already_set();
        PyErr_Clear();
        return reinterpret_steal<object>(found);
    }
    static bool is_array(const object &what)
    {
        return hasattr(what, "__array_interface__") && hasattr(what, "__setitem__");
    }
    static PyObject *check(PyObject *result)
    {
        if (!result)
            throw error_already_set();
        return result;
    }
};
} // namespace detail
} // namespace pybind11

#endif
