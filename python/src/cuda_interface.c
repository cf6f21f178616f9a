/* cuda_interface.c: the CUDA Array Interface, version 3, given and taken. On cuda and hip; elsewhere there is no
 * such attribute.
 *
 * The stream that is given out is one behind which all pending work is: None without any, never 0, and on hip
 * neither 1 nor 2, which are no streams there. */
#include "array.h"
#include "array_foreign.h"
#include "numpy_bridge.h"

/* ---- given ------------------------------------------------------------------------------------ */

/* A handle that means the same stream to everybody; the array keeps the stream, for nobody says when the
 * handle is needed no more. */
static PyObject *stream_of(struct py_state *state, struct py_array *array,
                           const struct py_vendor *vendor)
{
    const uint32_t flags = vendor->null_is_one ? (uint32_t)GG_PENDING_DEFAULT_TOO : 0u;
    uint64_t handles[4] = {0};
    gg_stream *stream = NULL;
    if (py_check(state, gg_memory_pending(array->memory, flags, &stream)))
        return NULL;
    if (!stream)
        return Py_NewRef(Py_None);
    gg_stream_release(array->exposed);
    array->exposed = stream;
    if (py_check(state, gg_stream_native(stream, handles)))
        return NULL;
    return PyLong_FromUnsignedLongLong(handles[0] ? handles[0] : 1);
}

static PyObject *data_of(const struct py_array *array)
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

/* Takes over the values; those that are NULL are left out. */
static PyObject *dictionary(struct py_state *state, PyObject *values[KEYS])
{
    PyObject *result = PyDict_New();
    for (int i = 0; i < KEYS && result; i++)
        if (values[i] && PyDict_SetItem(result, state->interface_keys[i], values[i]))
            Py_CLEAR(result);
    for (int i = 0; i < KEYS; i++)
        Py_XDECREF(values[i]);
    return result;
}

PyObject *py_array_cuda_interface(PyObject *self, void *closure)
{
    struct py_state *state = py_state_of(self);
    struct py_array *array = py_array_of(self);
    const struct py_vendor *vendor = py_vendor_of(gg_memory_device(array->memory));
    PyObject *values[KEYS] = {NULL};
    (void)closure;
    if (!vendor || !vendor->cuda_like)
        return PyErr_Format(PyExc_AttributeError,
                            "__cuda_array_interface__ is for memory of cuda and hip, this is on %s",
                            gg_device_backend(gg_memory_device(array->memory)));
    values[STREAM] = stream_of(state, array, vendor);
    if (!values[STREAM])
        return NULL;
    values[SHAPE] = py_sizes(array->shape, array->ndim);
    values[STRIDES] = array->c ? Py_NewRef(Py_None) : py_sizes(array->strides, array->ndim);
    values[TYPESTR] = numpy_typestr(array->dtype);
    values[DATA] = data_of(array);
    values[VERSION] = PyLong_FromLong(3);
    if (numpy_kind_of(array->dtype).letter == 'V')
        values[DESCR] = PyObject_GetAttrString(array->dtype, "descr");
    gg_memory_record_use(array->memory, NULL); /* whoever reads this uses streams of its own */
    if (!PyErr_Occurred())
        return dictionary(state, values);
    for (int i = 0; i < KEYS; i++)
        Py_XDECREF(values[i]);
    return NULL;
}

/* ---- taken ------------------------------------------------------------------------------------ */

static int refuse(struct py_state *state, const char *why, PyObject *given)
{
    py_invalid(state, "__cuda_array_interface__: %s, got %R", why, given ? given : Py_None);
    return -1;
}

static int read_data(struct py_state *state, PyObject *data, struct py_foreign *out)
{
    uint64_t address;
    int readonly;
    if (!data || !PyTuple_Check(data) || PyTuple_Size(data) != 2 ||
        !PyIndex_Check(PyTuple_GetItem(data, 0)))
        return refuse(state, "data is a tuple (address, read-only)", data);
    if (py_uint64(state, PyTuple_GetItem(data, 0), "the address", &address))
        return -1;
    readonly = PyObject_IsTrue(PyTuple_GetItem(data, 1));
    if (readonly < 0)
        return -1;
    out->readonly = readonly;
    out->first = (char *)(uintptr_t)address;
    return 0;
}

/* [('', typestr)], which says no more than the typestr. */
static bool is_typestr_again(PyObject *descr, PyObject *typestr)
{
    PyObject *again = Py_BuildValue("[(sO)]", "", typestr);
    const int same = again ? PyObject_RichCompareBool(descr, again, Py_EQ) : -1;
    Py_XDECREF(again);
    PyErr_Clear();
    return same == 1;
}

/* A structured type's text says its size only; its fields are in descr. */
static int read_fields(struct py_state *state, PyObject *descr, PyObject *typestr, PyObject **dtype)
{
    PyObject *structured;
    if (!descr || descr == Py_None || numpy_kind(*dtype) != 'V' || is_typestr_again(descr, typestr))
        return 0;
    if (numpy_dtype_to_cast(descr, &structured)) {
        PyErr_Clear();
        return 0;
    }
    if (numpy_itemsize(structured) != numpy_itemsize(*dtype)) {
        Py_DECREF(structured);
        return refuse(state, "descr is of another size than typestr", descr);
    }
    Py_DECREF(*dtype);
    *dtype = structured;
    return 0;
}

static int read_type(struct py_state *state, PyObject *interface, struct py_foreign *out)
{
    PyObject *typestr = PyDict_GetItemString(interface, "typestr"); /* borrowed */
    if (!typestr || !PyUnicode_Check(typestr))
        return refuse(state, "typestr is a str such as '<f4'", typestr);
    if (!numpy_dtype_to_cast(typestr, &out->dtype) && !numpy_lacks_length(out->dtype))
        return read_fields(state, PyDict_GetItemString(interface, "descr"), typestr, &out->dtype);
    PyErr_Clear();
    return refuse(state, "typestr is none that NumPy knows, with its size", typestr);
}

static int read_rest(struct py_state *state, PyObject *interface, struct py_foreign *out)
{
    PyObject *shape = PyDict_GetItemString(interface, "shape"),
             *mask = PyDict_GetItemString(interface, "mask"),
             *version = PyDict_GetItemString(interface, "version");
    if (!version || !PyLong_Check(version) || PyLong_AsLong(version) < 2)
        return refuse(state, "version is 2 or 3", version);
    if (mask && mask != Py_None)
        return refuse(state, "masked arrays are not taken: pass the data without its mask", mask);
    if (!shape || !PyTuple_Check(shape))
        return refuse(state, "shape is a tuple of ints", shape);
    if (py_foreign_layout(out, shape, PyDict_GetItemString(interface, "strides")))
        return -1;
    if (!out->first && !out->empty)
        return refuse(state, "an address of 0 has no elements", shape);
    return 0;
}

/* Work of ours waits, on the device, for the stream that is named. */
static int follow(struct py_state *state, PyObject *number, gg_device *device, PyObject *array)
{
    uint64_t handle;
    if (!number || number == Py_None)
        return 0;
    if (py_uint64(state, number, "stream", &handle))
        return -1;
    if (!handle)
        return refuse(state,
                      "stream 0 says nothing: 1 is the legacy default stream, 2 the per-thread "
                      "one, None that nothing is pending",
                      number);
    if (handle <= 2 && !py_vendor_of(device)->null_is_one)
        return refuse(state, "1 and 2 are no streams of hip", number);
    return py_foreign_follow(state, device, handle, py_array_of(array)->memory);
}

/* The device that is wanted, the current one if it is like CUDA's, else one of CUDA or HIP: the driver
 * says later which of its backend's it is. */
static int choose_device(struct py_state *state, gg_device **device)
{
    const struct py_vendor *vendor;
    if (!*device && py_device_current(state, device))
        return -1;
    vendor = py_vendor_of(*device);
    if ((vendor && vendor->cuda_like) || !gg_device_get("cuda", 0, device) ||
        !gg_device_get("hip", 0, device))
        return 0;
    return py_check(state, gg_device_get("cuda", 0, device));
}

static PyObject *wrap(struct py_state *state, PyObject *interface, struct py_foreign *foreign,
                      gg_device *wanted)
{
    gg_device *device = wanted;
    enum gg_memory_kind kind;
    PyObject *array;
    if (read_data(state, PyDict_GetItemString(interface, "data"), foreign) ||
        read_type(state, interface, foreign) || read_rest(state, interface, foreign) ||
        choose_device(state, &device) || py_device_open(state, device))
        return NULL;
    if (py_foreign_locate(state, foreign, wanted != NULL, &device, &kind))
        return NULL;
    array = py_foreign_wrap(state, foreign, device, kind);
    if (array && follow(state, PyDict_GetItemString(interface, "stream"), device, array))
        Py_CLEAR(array);
    return array;
}

int py_from_cuda_interface(struct py_state *state, PyObject *object, gg_device *device,
                           PyObject **out)
{
    struct py_foreign foreign = {.owner = object};
    PyObject *interface;
    int found = py_optional_attribute(object, "__cuda_array_interface__", &interface);
    if (found < 1)
        return found;
    if (numpy_load() || !PyDict_Check(interface)) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "__cuda_array_interface__ is a dict, got %R",
                         Py_TYPE(interface));
        Py_DECREF(interface);
        return -1;
    }
    *out = wrap(state, interface, &foreign, device);
    Py_XDECREF(foreign.dtype);
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
