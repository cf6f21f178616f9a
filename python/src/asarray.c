/* asarray.c: asarray and from_dlpack: arrays of other libraries, without a copy where that can be. */
#include "array.h"
#include "asarray.h"
#include "memory.h"
#include "numpy_bridge.h"

static bool is_host_device(const gg_device *device)
{
    const struct py_vendor *vendor = py_vendor_of(device);
    return vendor && vendor->device == DL_CPU;
}

/* ---- memory of the host ----------------------------------------------------------------------- */

static PyObject *alias(struct py_state *state, PyObject *ndarray, gg_device *device)
{
    struct numpy_view view;
    struct py_foreign foreign = {.owner = ndarray};
    numpy_look(ndarray, &view);
    if (numpy_check_dtype(view.dtype))
        return NULL;
    foreign.first = view.data;
    foreign.dtype = view.dtype;
    foreign.ndim = view.ndim;
    foreign.readonly = !view.writeable;
    foreign.empty = !view.nbytes;
    for (int i = 0; i < view.ndim; i++) { /* of a 0-d array both are NULL */
        foreign.shape[i] = view.shape[i];
        foreign.strides[i] = view.strides[i];
    }
    return py_foreign_wrap(state, &foreign, device, GG_MEMORY_PINNED);
}

static PyObject *refuse_copy(const char *what)
{
    return PyErr_Format(PyExc_ValueError, "%s by a copy, which copy=False forbids", what);
}

/* Texts too become as long as the object's own need. Takes over @p host. */
static PyObject *cast(PyObject *object, PyObject *host, PyObject *dtype)
{
    const bool is_list = PyList_Check(object) || PyTuple_Check(object);
    struct numpy_view view;
    PyObject *wanted, *result;
    if (numpy_dtype_to_cast(dtype, &wanted)) {
        Py_DECREF(host);
        return NULL;
    }
    numpy_look(host, &view);
    result = numpy_casts(view.dtype, wanted) ? numpy_from(is_list ? object : host, wanted, 'K')
                                             : Py_NewRef(host);
    Py_DECREF(wanted);
    Py_DECREF(host);
    return result;
}

/* An ndarray of the object's elements, in its own memory where there is no need for a copy. */
static PyObject *host_array(PyObject *object, const struct py_wish *wish)
{
    PyObject *host = numpy_any(object), *as_it_was = host;
    if (!host)
        return NULL;
    Py_INCREF(as_it_was);
    if (wish->dtype)
        host = cast(object, host, wish->dtype);
    if (host && wish->copy == 0 && (host != as_it_was || (host != object && numpy_owns(host)))) {
        Py_CLEAR(host);
        refuse_copy(wish->dtype ? "this becomes an array of that dtype" : "this becomes an array");
    }
    Py_DECREF(as_it_was);
    return host;
}

/* The array's elements on the device that is wanted: its own memory where that is the host's. */
static PyObject *from_host(struct py_state *state, PyObject *object, const struct py_wish *wish)
{
    struct py_place place = {.device = wish->alias ? wish->alias : wish->device};
    PyObject *host, *array;
    if (!place.device && py_device_arg(state, NULL, &place.device))
        return NULL;
    if (py_device_open(state, place.device))
        return NULL;
    host = host_array(object, wish);
    if (!host)
        return NULL;
    if (is_host_device(place.device) && wish->copy <= 0) {
        array = alias(state, host, place.device);
        Py_DECREF(host);
        return array;
    }
    if (wish->copy == 0) {
        Py_DECREF(host);
        return refuse_copy("host memory goes to a device");
    }
    return py_array_upload(state, numpy_packed(host), &place);
}

/* ---- all together ----------------------------------------------------------------------------- */

static PyObject *from_buffer(struct py_state *state, PyObject *object)
{
    gg_memory *memory = py_buffer_memory(object);
    const Py_ssize_t stride = 1;
    PyObject *dtype;
    struct py_array *array;
    Py_ssize_t length;
    if (!memory)
        return NULL;
    dtype = numpy_plain_dtype('u', 1);
    if (!dtype)
        return NULL;
    py_buffer_touch(object);
    length = (Py_ssize_t)gg_memory_size(memory);
    array = py_array_over(state->array_type, memory, 0, dtype, 1, &length, &stride);
    Py_DECREF(dtype);
    if (array)
        array->base = Py_NewRef(object);
    return (PyObject *)array;
}

/* DLPack, by table or by method: 1 with an array, 0 where the object has neither, -1. */
static int by_dlpack(struct py_state *state, PyObject *object, PyObject **out)
{
    PyObject *method;
    int found = py_from_exchange(state, object, out);
    if (found)
        return found;
    found = py_optional_attribute(object, "__dlpack_device__", &method);
    if (found < 1)
        return found;
    Py_DECREF(method);
    *out = py_from_dlpack(state, object, NULL);
    return *out ? 1 : -1;
}

static int no_such(PyObject *object)
{
    PyErr_Format(
        PyExc_TypeError,
        "asarray takes a GPUArray, a Buffer, an array of any library with DLPack or "
        "__cuda_array_interface__, an object with ptr, gpudata or data_ptr() and shape and "
        "dtype, host data, or an address with shape= and dtype=, got %R",
        Py_TYPE(object));
    return -1;
}

static int found_if(PyObject *array)
{
    return array ? 1 : -1;
}

/* What says itself what it is made of: 1 with an array, 0 for anything else, -1. */
static int from_array(struct py_state *state, PyObject *object, const struct py_wish *wish,
                      PyObject **out)
{
    int found = numpy_is_array(object);
    if (Py_IS_TYPE(object, state->array_type))
        return found_if(*out = Py_NewRef(object));
    if (Py_IS_TYPE(object, state->buffer_type))
        return found_if(*out = from_buffer(state, object));
    if (found)
        return found < 0 ? -1 : found_if(*out = from_host(state, object, wish));
    found = by_dlpack(state, object, out);
    if (!found)
        found = py_from_cuda_interface(state, object, NULL, out);
    if (found)
        return found;
    if (PyObject_CheckBuffer(object) || PyList_Check(object) || PyTuple_Check(object) ||
        PyFloat_Check(object) || PyObject_HasAttrString(object, "__array_interface__"))
        return found_if(*out = from_host(state, object, wish));
    return 0;
}

static PyObject *from_anything(struct py_state *state, PyObject *object, const struct py_wish *wish)
{
    PyObject *array = NULL;
    int found = py_is_address(object, wish);
    if (found)
        return found < 0 ? NULL : py_from_address(state, object, wish, wish->owner);
    found = from_array(state, object, wish, &array);
    if (found > 0 && (wish->shape || wish->strides || wish->owner)) {
        Py_CLEAR(array);
        PyErr_Format(PyExc_TypeError,
                     "shape=, strides= and owner= are for addresses, got %R: reshape() the array",
                     Py_TYPE(object));
    }
    if (!found)
        found = py_from_pointer_object(state, object, wish, &array);
    if (!found)
        no_such(object);
    return array;
}

/* The array where it is wanted, and a copy if one was asked for. Takes over @p array. */
static PyObject *brought(struct py_state *state, PyObject *array, const struct py_wish *wish,
                         bool fresh)
{
    struct py_place place = {0};
    PyObject *result;
    if (!array)
        return NULL;
    place.device = gg_memory_device(py_array_of(array)->memory);
    if (!wish->device || wish->device == place.device) {
        if (wish->copy <= 0 || fresh)
            return array;
        result = py_array_copy_at(state, py_array_of(array), &place);
        Py_DECREF(array);
        return result;
    }
    if (wish->copy == 0) {
        Py_DECREF(array);
        return refuse_copy("another device gets the array");
    }
    place.device = wish->device;
    result = py_host_reaches(py_array_of(array)->memory)
                 ? py_array_upload(state, py_array_to_host(state, py_array_of(array), NULL), &place)
                 : py_array_bring(state, py_array_of(array), place.device, NULL);
    Py_DECREF(array);
    return result;
}

/* CPU tensors of other libraries are host data, which is wanted on the current device. */
static int settle_device(struct py_state *state, PyObject *object, PyObject *array,
                         struct py_wish *wish)
{
    if (!array || wish->device || Py_IS_TYPE(object, state->array_type) ||
        Py_IS_TYPE(object, state->buffer_type) || py_is_address(object, wish) ||
        !is_host_device(gg_memory_device(py_array_of(array)->memory)))
        return 0;
    return py_device_arg(state, NULL, &wish->device);
}

/* Takes over @p array. */
static PyObject *converted(PyObject *array, const struct py_wish *wish)
{
    PyObject *result = NULL, *dtype;
    if (!array || !wish->dtype)
        return array;
    if (!numpy_dtype_to_cast(wish->dtype, &dtype)) {
        if (!numpy_casts(py_array_of(array)->dtype, dtype))
            result = Py_NewRef(array);
        else if (wish->copy == 0)
            refuse_copy("an array gets another dtype");
        else
            result = PyObject_CallMethod(array, "astype", "Os", dtype, "K");
        Py_DECREF(dtype);
    }
    Py_DECREF(array);
    return result;
}

static int host_wish(struct py_state *state, struct py_wish *wish)
{
    return py_prepare(state) ? -1 : py_check(state, gg_device_get("host", 0, &wish->alias));
}

static PyObject *refuse_host(struct py_state *state, PyObject *object, PyObject *array)
{
    gg_device *device;
    const bool ours =
        Py_IS_TYPE(object, state->array_type) || Py_IS_TYPE(object, state->buffer_type);
    if (!array || ours || !is_host_device(gg_memory_device(py_array_of(array)->memory)))
        return array;
    Py_DECREF(array);
    if (py_device_current(state, &device))
        return NULL;
    return PyErr_Format(
        PyExc_TypeError,
        "%R is memory of the host: wrap it with gpuglue.asarray(), which copies it to "
        "%s:%d where that is no host device",
        Py_TYPE(object), gg_device_backend(device), (int)gg_device_ordinal(device));
}

/* Of which asarray makes an array: what is written to that is written to nowhere. */
static bool is_value(PyObject *object)
{
    return PyLong_Check(object) || PyFloat_Check(object) || PyList_Check(object) ||
           PyTuple_Check(object) || numpy_is_scalar(object);
}

PyObject *py_wrap_anything(struct py_state *state, PyObject *object, bool host)
{
    struct py_wish wish = {.copy = 0};
    const int is_array = numpy_is_array(object);
    PyObject *array;
    if (is_array < 0 || (!is_array && is_value(object)))
        return is_array < 0
                   ? NULL
                   : PyErr_Format(
                         PyExc_TypeError,
                         "expected a GPUArray, a Buffer or an array of any library, got %R",
                         Py_TYPE(object));
    if (host_wish(state, &wish))
        return NULL;
    array = from_anything(state, object, &wish);
    return host ? array : refuse_host(state, object, array);
}

static int read_copy(PyObject *object, int *out)
{
    *out = !object || object == Py_None ? -1 : PyObject_IsTrue(object);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *given(PyObject *object)
{
    return object == Py_None ? NULL : object;
}

static PyObject *asarray(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                         PyObject *kwnames)
{
    static const char *const names[] = {"obj",   "dtype",   "device", "copy",
                                        "shape", "strides", "owner"};
    struct py_state *state = PyModule_GetState(module);
    struct py_wish wish = {0};
    PyObject *values[7], *array;
    int address;
    if (py_parse("asarray", names, 7, 2, 1, args, nargs, kwnames, values) ||
        read_copy(values[3], &wish.copy) ||
        (values[2] && values[2] != Py_None && py_device_arg(state, values[2], &wish.device)))
        return NULL;
    wish.dtype = given(values[1]);
    wish.shape = given(values[4]);
    wish.strides = given(values[5]);
    wish.owner = given(values[6]);
    address = py_is_address(values[0], &wish);
    py_owners_drain();
    array = from_anything(state, values[0], &wish);
    if (settle_device(state, values[0], array, &wish))
        Py_CLEAR(array);
    array = brought(state, array, &wish, numpy_is_array(values[0]) == 1);
    return address ? array : converted(array, &wish);
}

int py_foreign_device_array(struct py_state *state, PyObject *object, PyObject **out)
{
    PyObject *probe;
    int found = py_from_cuda_interface(state, object, NULL, out);
    if (found)
        return found;
    found = py_optional_attribute(object, "__dlpack_device__", &probe);
    if (found < 1)
        return found;
    Py_DECREF(probe);
    *out = py_from_dlpack(state, object, NULL);
    if (!*out)
        return -1;
    if (!is_host_device(gg_memory_device(py_array_of(*out)->memory)))
        return 1;
    probe = PyObject_CallMethod(*out, "__array__", NULL); /* host data, which NumPy casts */
    Py_DECREF(*out);
    *out = probe;
    return probe ? 2 : -1;
}

static PyObject *from_dlpack(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames)
{
    static const char *const names[] = {"x", "device", "copy", "stream"};
    struct py_state *state = PyModule_GetState(module);
    struct py_wish wish = {0};
    gg_stream *stream = NULL;
    PyObject *values[4], *array;
    if (py_parse("from_dlpack", names, 4, 1, 1, args, nargs, kwnames, values) ||
        read_copy(values[2], &wish.copy) ||
        (values[1] && values[1] != Py_None && py_device_arg(state, values[1], &wish.device)))
        return NULL;
    if (values[3] && values[3] != Py_None && py_stream_borrow(state, values[3], NULL, &stream))
        return NULL;
    py_owners_drain();
    array = brought(state, py_from_dlpack(state, values[0], stream), &wish, false);
    gg_stream_release(stream);
    return array;
}

PyMethodDef py_protocol_functions[] = {
    {"asarray", PY_METHOD(asarray), METH_FASTCALL | METH_KEYWORDS,
     "asarray(obj, dtype=None, *, device=None, copy=None, shape=None, strides=None, owner=None)\n"
     "--\n\n"
     "A GPUArray over somebody else's memory: of an array with DLPack or __cuda_array_interface__, "
     "of an\nobject with ptr, gpudata or data_ptr(), of a Buffer (as bytes), or at an address, "
     "with shape and dtype,\nwhich owner keeps; shape, strides and owner are for the latter. Host "
     "data is aliased on a host device,\nand copied to any other. copy=True copies in any case, "
     "copy=False never: ValueError where it had to."},
    {"from_dlpack", PY_METHOD(from_dlpack), METH_FASTCALL | METH_KEYWORDS,
     "from_dlpack(x, /, *, device=None, copy=None, stream=None)\n--\n\n"
     "A GPUArray over the memory of any array with DLPack, where it is; device= or copy=True copy "
     "it. The\nproducer makes stream, by default the current one, wait for what it has pending."},
    {"_is_pending", py_is_pending, METH_O,
     "_is_pending(array, /)\n--\n\nWhether work that gpuglue knows of uses it now."},
    {NULL, NULL, 0, NULL},
};
