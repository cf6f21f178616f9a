/* ptr_wrapper.h: PyGPU's way to hand pointers to an extension of pybind11: a function that takes a
 * ptr_wrapper<T> is called with any of gpuglue's: a pointer wrapper, an array (GPUArray, DeviceArray, those of
 * other libraries that have `ptr`), or an int. The memory is the caller's to keep. */
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
        object number = reinterpret_borrow<object>(source);
        if (!PyIndex_Check(number.ptr()) && hasattr(number, "device_data"))
            number = called(number.attr("device_data"));
        else if (!PyIndex_Check(number.ptr()) && hasattr(number, "ptr"))
            number = called(number.attr("ptr"));
        if (!PyIndex_Check(number.ptr()))
            return false;
        object index = reinterpret_steal<object>(PyNumber_Index(number.ptr()));
        if (!index)
            throw error_already_set();
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
