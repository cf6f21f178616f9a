/* gpuglue/python.hpp: gg::array_view, an array of any Python library, for extensions written in C++17.
 *
 * As with python.h, which it wraps, an extension links nothing.
 *
 *     void twice(py::object object)                       // pybind11
 *     {
 *         gg::array_view array(object.ptr(), GG_ARRAY_WRITABLE | GG_ARRAY_C_CONTIGUOUS);
 *         double *data = array.data<double>();            // a TypeError if it is of another type
 *         py::gil_scoped_release without_gil;
 *         launch(data, array.size(), (cudaStream_t)array.stream_handle());
 *     }
 *
 * A failure throws gg::python_error, with Python's exception set. In pybind11 and nanobind translate it once:
 *
 *     py::register_exception_translator([](std::exception_ptr thrown) {
 *         try { if (thrown) std::rethrow_exception(thrown); }
 *         catch (const gg::python_error &) {}             // Python's exception is set already
 *     }); */
#ifndef GG_PYTHON_HPP
#define GG_PYTHON_HPP

#include <gpuglue/python.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>

namespace gg
{

/** Python's exception is set: return NULL to the interpreter. */
class python_error : public std::exception
{
  public:
    const char *what() const noexcept override { return "a Python exception is set"; }
};

namespace detail
{
template <class T> struct is_complex : std::false_type {
};
/* std::complex<T>, whose header is not needed here: two values of one type. */
template <template <class> class Complex, class T>
struct is_complex<Complex<T>>
    : std::bool_constant<std::is_floating_point<T>::value && sizeof(Complex<T>) == 2 * sizeof(T)> {
};
template <class T> constexpr int dtype_code() noexcept
{
    if (std::is_same<T, bool>::value)
        return GG_DTYPE_BOOL;
    if (std::is_integral<T>::value)
        return std::is_signed<T>::value ? GG_DTYPE_INT : GG_DTYPE_UINT;
    if (std::is_floating_point<T>::value)
        return GG_DTYPE_FLOAT;
    return is_complex<T>::value ? GG_DTYPE_COMPLEX : -1;
}
} // namespace detail

/** An array of any library: see gg_array_from_object. Keeps its memory until it is destroyed; all work queued by
 *  then on its stream counts as a use of the array. Moved, not copied. Construct it, and call data<T>(), with the GIL
 *  held; destroy it with or without. */
class array_view
{
  public:
    array_view() noexcept = default;
    /** @p flags: enum gg_array_flag. @p stream NULL: the current stream of the array's device. */
    explicit array_view(PyObject *object, std::uint32_t flags = 0, gg_device *device = nullptr,
                        gg_stream *stream = nullptr)
    {
        gg_array_request request = GG_ARRAY_REQUEST;
        request.flags = flags;
        request.device = device;
        request.stream = stream;
        open(object, request);
    }
    array_view(PyObject *object, const gg_array_request &request) { open(object, request); }
    array_view(array_view &&other) noexcept : view_(std::exchange(other.view_, empty())) {}
    array_view &operator=(array_view &&other) noexcept
    {
        if (this != &other) {
            reset();
            view_ = std::exchange(other.view_, empty());
        }
        return *this;
    }
    array_view(const array_view &) = delete;
    array_view &operator=(const array_view &) = delete;
    ~array_view() { reset(); }

    /** Release the array now. */
    void reset() noexcept
    {
        if (view_.memory)
            gg_array_view_release(&view_);
        view_ = empty();
    }
    explicit operator bool() const noexcept { return view_.memory != nullptr; }

    int ndim() const noexcept { return view_.ndim; }
    std::size_t size() const noexcept { return view_.size; }         // elements
    std::size_t itemsize() const noexcept { return view_.itemsize; } // bytes
    std::size_t size_bytes() const noexcept { return view_.size * view_.itemsize; }
    std::int64_t shape(int axis) const noexcept { return view_.shape[axis]; }     // elements
    std::int64_t strides(int axis) const noexcept { return view_.strides[axis]; } // bytes
    bool readonly() const noexcept { return view_.readonly != 0; }
    bool host() const noexcept { return view_.host != 0; }
    gg_device *device() const noexcept { return view_.device; }
    gg_memory *memory() const noexcept { return view_.memory; }
    std::size_t offset() const noexcept { return view_.offset; } // of data in memory, bytes
    gg_stream *stream() const noexcept { return view_.stream; }
    std::uint64_t stream_handle() const noexcept { return view_.stream_handle; }
    const gg_array_view &get() const noexcept { return view_; }

    /** Whether the elements are of type T: an integer, a floating-point type, bool or std::complex. */
    template <class T> bool is() const noexcept
    {
        using element = std::remove_cv_t<T>;
        static_assert(detail::dtype_code<element>() >= 0, "there is no NumPy type for T");
        return view_.code == detail::dtype_code<element>() && view_.itemsize == sizeof(element);
    }
    /** Element 0, or nullptr of an empty array. */
    void *data() const noexcept { return view_.data; }
    /** The same, with Python's TypeError unless the elements are of type T, and ValueError if T is not const and the
     *  array is read-only. */
    template <class T> T *data() const
    {
        if (!is<T>())
            raise(PyExc_TypeError,
                  "the elements of the array have code %d and %zu bytes, expected code %d and "
                  "%zu bytes (enum gg_dtype_code): pass an array of that type",
                  int(view_.code), view_.itemsize, detail::dtype_code<std::remove_cv_t<T>>(),
                  sizeof(T));
        if (!std::is_const<T>::value && readonly())
            raise(PyExc_ValueError, "%s",
                  "the array is read-only, and this function writes to it: pass a copy");
        return static_cast<T *>(view_.data);
    }

  private:
    static gg_array_view empty() noexcept
    {
        gg_array_view view = GG_ARRAY_VIEW;
        return view;
    }
    template <class... Values>
    static void raise(PyObject *type, const char *format, Values... values)
    {
        PyErr_Format(type, format, values...);
        throw python_error();
    }
    void open(PyObject *object, const gg_array_request &request)
    {
        if (gg_python_import() || gg_array_from_object(object, &request, &view_))
            throw python_error();
    }
    gg_array_view view_ = empty();
};

} // namespace gg

#endif
