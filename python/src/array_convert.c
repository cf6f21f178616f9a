/* array_convert.c: astype and to_device: the same elements as another type, or elsewhere. */
#include "array.h"
#include "numpy_bridge.h"

/* Where @p order puts the axes: 'K' as they are, else one after the other. */
static PyObject *place_for(struct py_state *state, struct py_array *array, PyObject *dtype,
                           char order, bool fortran)
{
    const struct py_place place = {.device = gg_memory_device(array->memory)};
    struct py_layout layout;
    PyObject *made;
    if (order == 'K')
        return py_array_make_like(state, array, dtype, &place);
    py_array_layout(array, &layout);
    Py_DECREF(layout.dtype);
    layout.dtype = Py_NewRef(dtype);
    layout.nbytes = (size_t)(layout.size * numpy_itemsize(dtype));
    layout.fortran = fortran;
    made = py_array_make(state, &layout, &place);
    py_layout_close(&layout);
    return made;
}

/* By way of NumPy: down, cast, up. The cast says how long texts become. */
static PyObject *converted(struct py_state *state, struct py_array *array, PyObject *dtype,
                           char order, bool fortran)
{
    PyObject *host = py_array_to_host(state, array, NULL), *cast, *made = NULL;
    struct numpy_view view;
    cast = host ? numpy_from(host, dtype, 'K') : NULL;
    Py_XDECREF(host);
    if (!cast)
        return NULL;
    numpy_look(cast, &view);
    made = place_for(state, array, view.dtype, order, fortran);
    if (made && py_array_set_from(state, py_array_of(made), cast))
        Py_CLEAR(made);
    Py_DECREF(cast);
    return made;
}

static PyObject *astype(struct py_state *state, struct py_array *array, PyObject *dtype, char order,
                        bool always)
{
    const bool fortran = order == 'F' || (order == 'A' && array->f && !array->c);
    const bool lies_so = order == 'K' || (fortran ? array->f : array->c);
    PyObject *made;
    if (!numpy_casts(array->dtype, dtype)) {
        if (!always && lies_so)
            return Py_NewRef((PyObject *)array);
        made = place_for(state, array, array->dtype, order, fortran);
        if (made && py_array_copy_into(state, py_array_of(made), array, NULL))
            Py_CLEAR(made);
        return made;
    }
    return converted(state, array, dtype, order, fortran);
}

PY_FASTCALL(py_array_astype)
{
    static const char *const names[] = {"dtype", "order", "copy"};
    PyObject *values[3], *dtype, *result;
    char order;
    int always;
    if (py_parse("astype", names, 3, 3, 1, args, nargs, kwnames, values))
        return NULL;
    order = py_order(values[1], 'K');
    always = values[2] ? PyObject_IsTrue(values[2]) : 1;
    if (!order || always < 0 || numpy_dtype_to_cast(values[0], &dtype))
        return NULL;
    result = astype(py_state_of(self), py_array_of(self), dtype, order, always);
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
    gg_stream *stream = NULL;
    PyObject *copy;
    int failed;
    if (py_stream_arg(state, stream_object, gg_memory_device(array->memory), &stream))
        return NULL;
    copy = py_array_make_like(state, array, array->dtype, &place);
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
