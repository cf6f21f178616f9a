/* cuda_interface.c: the CUDA Array Interface, version 3, exported and imported. On cuda and hip; other backends lack
 * the attribute. The exported stream is one after which all pending work is complete: None without pending work,
 * never 0, and on hip neither 1 nor 2, which are not valid there. */
#include "interop/cuda_interface.h"
#include "numpy/bridge.h"
#include "runtime/device.h"
#include "interop/backend_traits.h"
#include "interop/external_array.h"

/* ---- given ---- */

/* A handle that any library resolves to the same stream. The array keeps the stream, as a reader does not report
 * when it no longer needs the handle. */
static PyObject *interface_stream(struct py_state *state, struct py_array *array,
                                  const struct py_backend_traits *traits)
{
    const uint32_t flags = traits->null_is_one ? (uint32_t)GG_COMPLETION_ALLOW_DEFAULT : 0u;
    uint64_t handles[4] = {0};
    gg_stream *stream = NULL;
    if (py_check(state, gg_memory_completion_stream(array->memory, flags, &stream)))
        return NULL;
    if (!stream)
        return Py_NewRef(Py_None);
    gg_stream_release(array->exposed);
    array->exposed = stream;
    if (py_check(state, gg_stream_native(stream, handles)))
        return NULL;
    return PyLong_FromUnsignedLongLong(handles[0] ? handles[0] : 1);
}

static PyObject *interface_data(const struct py_array *array)
{
    char *first = gg_memory_pointer(array->memory);
    PyObject *address = PyLong_FromVoidPtr(array->size ? first + array->offset : NULL), *pair;
    if (!address)
        return NULL;
    pair = PyTuple_Pack(2, address, array->readonly ? Py_True : Py_False);
    Py_DECREF(address);
    return pair;
}

enum { SHAPE, TYPESTR, DATA, VERSION, STRIDES, STREAM, DESCR, KEYS };

/* Takes over the values, and omits those that are NULL. */
static PyObject *interface_dict(struct py_state *state, PyObject *values[KEYS])
{
    PyObject *result = PyDict_New();
    for (int i = 0; i < KEYS && result; i++)
        if (values[i] && PyDict_SetItem(result, state->interface_keys[i], values[i]))
            Py_CLEAR(result);
    for (int i = 0; i < KEYS; i++)
        Py_XDECREF(values[i]);
    return result;
}

PyObject *py_array_cuda_interface(PyObject *self, void *Py_UNUSED(closure))
{
    struct py_state *state = py_state_of(self);
    struct py_array *array = py_array_of(self);
    const struct py_backend_traits *traits = py_traits_of(gg_memory_device(array->memory));
    PyObject *values[KEYS] = {NULL};
    if (!traits || !traits->cuda_like)
        return PyErr_Format(
            PyExc_AttributeError,
            "__cuda_array_interface__ exists only for memory of cuda and hip, this array is on %s",
            gg_device_backend(gg_memory_device(array->memory)));
    values[STREAM] = interface_stream(state, array, traits);
    if (!values[STREAM])
        return NULL;
    values[SHAPE] = py_ssize_tuple(array->shape, array->ndim);
    values[STRIDES] = array->c ? Py_NewRef(Py_None) : py_ssize_tuple(array->strides, array->ndim);
    values[TYPESTR] = numpy_typestr(array->dtype);
    values[DATA] = interface_data(array);
    values[VERSION] = PyLong_FromLong(3);
    if (numpy_dtype_info(array->dtype).letter == 'V')
        values[DESCR] = PyObject_GetAttrString(array->dtype, "descr");
    gg_memory_record_use(array->memory,
                         NULL); /* the reader uses streams that gpuglue does not track */
    if (!PyErr_Occurred())
        return interface_dict(state, values);
    for (int i = 0; i < KEYS; i++)
        Py_XDECREF(values[i]);
    return NULL;
}

/* ---- taken ---- */

static int interface_raise(struct py_state *state, const char *why, PyObject *given)
{
    return PY_FAIL(state->invalid_argument, "__cuda_array_interface__: %s, got %R", why,
                   given ? given : Py_None);
}

static int interface_read_data(struct py_state *state, PyObject *data, struct py_external *out)
{
    uint64_t address;
    int readonly;
    if (!data || !PyTuple_Check(data) || PyTuple_Size(data) != 2 ||
        !PyIndex_Check(PyTuple_GetItem(data, 0)))
        return interface_raise(state, "data must be a tuple (address, read-only)", data);
    if (py_uint64(state, PyTuple_GetItem(data, 0), "the address", &address))
        return -1;
    readonly = PyObject_IsTrue(PyTuple_GetItem(data, 1));
    if (readonly < 0)
        return -1;
    out->readonly = readonly;
    out->first = (char *)(uintptr_t)address;
    return 0;
}

/* [('', typestr)], which repeats the typestr. */
static bool descr_repeats_typestr(PyObject *descr, PyObject *typestr)
{
    PyObject *again = Py_BuildValue("[(sO)]", "", typestr);
    const int same = again ? PyObject_RichCompareBool(descr, again, Py_EQ) : -1;
    Py_XDECREF(again);
    PyErr_Clear();
    return same == 1;
}

/* The typestr of a structured dtype has its size only; its fields are in descr. */
static int interface_read_descr(struct py_state *state, PyObject *descr, PyObject *typestr,
                                PyObject **dtype)
{
    PyObject *structured;
    if (!py_given(descr) || numpy_dtype_kind(*dtype) != 'V' || descr_repeats_typestr(descr, typestr))
        return 0;
    if (numpy_dtype_for_cast(descr, &structured)) {
        PyErr_Clear();
        return 0;
    }
    if (numpy_itemsize(structured) != numpy_itemsize(*dtype)) {
        Py_DECREF(structured);
        return interface_raise(state, "descr and typestr have different sizes", descr);
    }
    Py_DECREF(*dtype);
    *dtype = structured;
    return 0;
}

static int interface_read_typestr(struct py_state *state, PyObject *interface,
                                  struct py_external *out)
{
    PyObject *typestr = PyDict_GetItemString(interface, "typestr"); /* borrowed */
    if (!typestr || !PyUnicode_Check(typestr))
        return interface_raise(state, "typestr must be a str such as '<f4'", typestr);
    if (!numpy_dtype_for_cast(typestr, &out->dtype) && !numpy_is_unsized(out->dtype))
        return interface_read_descr(state, PyDict_GetItemString(interface, "descr"), typestr,
                                    &out->dtype);
    PyErr_Clear();
    return interface_raise(state, "typestr must be one that NumPy knows, with its size", typestr);
}

static int interface_read_layout(struct py_state *state, PyObject *interface,
                                 struct py_external *out)
{
    PyObject *shape = PyDict_GetItemString(interface, "shape"),
             *mask = PyDict_GetItemString(interface, "mask"),
             *version = PyDict_GetItemString(interface, "version");
    if (!version || !PyLong_Check(version) || PyLong_AsLong(version) < 2)
        return interface_raise(state, "version must be 2 or 3", version);
    if (py_given(mask))
        return interface_raise(
            state, "masked arrays are not supported: pass the data without its mask", mask);
    if (!shape || !PyTuple_Check(shape))
        return interface_raise(state, "shape must be a tuple of ints", shape);
    if (py_external_layout(out, shape, PyDict_GetItemString(interface, "strides")))
        return -1;
    if (!out->first && !out->empty)
        return interface_raise(state, "an array at address 0 must have no elements", shape);
    return 0;
}

/* Make gpuglue's work wait, on the device, for the given stream. */
static int interface_wait_producer(struct py_state *state, PyObject *number, gg_device *device,
                                   PyObject *array)
{
    uint64_t handle;
    if (!py_given(number))
        return 0;
    if (py_uint64(state, number, "stream", &handle))
        return -1;
    if (!handle)
        return interface_raise(state,
                               "stream 0 is ambiguous: use 1 for the legacy default stream, 2 for "
                               "the per-thread one, None if nothing is pending",
                               number);
    if (handle <= 2 && !py_traits_of(device)->null_is_one)
        return interface_raise(state, "1 and 2 are not streams of hip", number);
    return py_external_wait_producer(state, device, handle, py_array_of(array)->memory);
}

/* The requested device, the current one if it is of cuda or hip, else one of those: the driver later reports the
 * exact device. */
static int interface_device(struct py_state *state, gg_device **device)
{
    const struct py_backend_traits *traits;
    if (!*device && py_device_current(state, device))
        return -1;
    traits = py_traits_of(*device);
    if ((traits && traits->cuda_like) || !gg_device_get("cuda", 0, device) ||
        !gg_device_get("hip", 0, device))
        return 0;
    return py_check(state, gg_device_get("cuda", 0, device));
}

static PyObject *interface_wrap(struct py_state *state, PyObject *interface,
                                struct py_external *external, gg_device *wanted)
{
    gg_device *device = wanted;
    enum gg_memory_kind kind;
    PyObject *array;
    if (interface_read_data(state, PyDict_GetItemString(interface, "data"), external) ||
        interface_read_typestr(state, interface, external) ||
        interface_read_layout(state, interface, external) || interface_device(state, &device) ||
        py_device_open(state, device))
        return NULL;
    if (py_external_locate(state, external, wanted != NULL, &device, &kind))
        return NULL;
    array = py_external_wrap(state, external, device, kind);
    if (array &&
        interface_wait_producer(state, PyDict_GetItemString(interface, "stream"), device, array))
        Py_CLEAR(array);
    return array;
}

int py_from_cuda_interface(struct py_state *state, PyObject *object, gg_device *device,
                           PyObject **out)
{
    struct py_external external = {.owner = object};
    PyObject *interface;
    int found = py_optional_attribute(object, "__cuda_array_interface__", &interface);
    if (found < 1)
        return found;
    if (numpy_load() || !PyDict_Check(interface)) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "__cuda_array_interface__ must be a dict, got %R",
                         Py_TYPE(interface));
        Py_DECREF(interface);
        return -1;
    }
    *out = interface_wrap(state, interface, &external, device);
    Py_XDECREF(external.dtype);
    Py_DECREF(interface);
    return *out ? 1 : -1;
}

int py_cuda_interface_add(struct py_state *state)
{
    static const char *const keys[KEYS] = {"shape",   "typestr", "data", "version",
                                           "strides", "stream",  "descr"};
    _Static_assert(sizeof keys / sizeof keys[0] ==
                       sizeof state->interface_keys / sizeof state->interface_keys[0],
                   "one place for each key");
    for (int i = 0; i < KEYS; i++) {
        state->interface_keys[i] = PyUnicode_InternFromString(keys[i]);
        if (!state->interface_keys[i])
            return -1;
    }
    return 0;
}
