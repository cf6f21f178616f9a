/* array_convert.c: astype and to_device: the same elements as another type, or elsewhere. */
#include "array.h"
#include "numpy_bridge.h"

/* The host's elements of dtype, in order C, F, or that of the array; goes by way of NumPy. */
static PyObject *converted(struct py_state *state, struct py_array *array, PyObject *dtype,
                           bool fortran)
{
    const struct py_place place = {.device = gg_memory_device(array->memory)};
    PyObject *host = py_array_to_host(state, array, NULL), *cast;
    if (!host)
        return NULL;
    cast = numpy_from(host, dtype, fortran ? 'F' : 'C');
    Py_DECREF(host);
    return py_array_upload(state, cast, &place);
}

PY_FASTCALL(py_array_astype)
{
    static const char *const names[] = {"dtype", "order", "copy"};
    struct py_state *state = py_state_of(self);
    struct py_array *array = py_array_of(self);
    PyObject *values[3], *dtype, *result;
    char order;
    bool fortran;
    int always = 1;
    if (py_parse("astype", names, 3, 3, 1, args, nargs, kwnames, values))
        return NULL;
    order = py_order(values[1], 'K');
    always = values[2] ? PyObject_IsTrue(values[2]) : 1;
    if (!order || always < 0 || numpy_dtype(values[0], &dtype))
        return NULL;
    fortran = order == 'F' || (order != 'C' && array->f && !array->c);
    const bool lies_so = order == 'K' || (fortran ? array->f : array->c);
    if (!numpy_same_dtype(dtype, array->dtype))
        result = converted(state, array, dtype, fortran);
    else if (!always && lies_so)
        result = Py_NewRef(self);
    else
        result = py_array_copy_in_order(state, array, fortran);
    Py_DECREF(dtype);
    return result;
}

static bool says_cpu(PyObject *device)
{
    return PyUnicode_Check(device) && !PyUnicode_CompareWithASCIIString(device, "cpu");
}

static PyObject *to_cpu(struct py_state *state, struct py_array *array, PyObject *stream_object)
{
    gg_stream *stream = NULL;
    PyObject *host;
    if (py_stream_arg(state, stream_object, gg_memory_device(array->memory), &stream))
        return NULL;
    host = py_array_to_host(state, array, stream);
    gg_stream_release(stream);
    return host;
}

/* The stream, if one is given, is where the copy runs: that of the array's own device. */
PyObject *py_array_bring(struct py_state *state, struct py_array *array, gg_device *device,
                         PyObject *stream_object)
{
    const struct py_place place = {.device = device};
    struct py_layout layout;
    gg_stream *stream = NULL;
    PyObject *copy;
    int failed;
    if (py_stream_arg(state, stream_object, gg_memory_device(array->memory), &stream))
        return NULL;
    py_array_layout(array, &layout);
    copy = py_array_make(state, &layout, &place);
    py_layout_close(&layout);
    failed = copy ? py_array_copy_into(state, py_array_of(copy), array, stream) : 0;
    gg_stream_release(stream);
    if (failed)
        Py_CLEAR(copy);
    return copy;
}

PY_FASTCALL(py_array_to_device)
{
    static const char *const names[] = {"device", "stream"};
    struct py_state *state = py_state_of(self);
    struct py_array *array = py_array_of(self);
    gg_device *device;
    PyObject *values[2];
    if (py_parse("to_device", names, 2, 1, 1, args, nargs, kwnames, values))
        return NULL;
    if (says_cpu(values[0]))
        return to_cpu(state, array, values[1]);
    if (py_device_arg(state, values[0], &device))
        return NULL;
    if (device == gg_memory_device(array->memory))
        return Py_NewRef(self);
    return py_array_bring(state, array, device, values[1]);
}
