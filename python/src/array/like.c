/* like.c: empty_like, zeros_like, ones_like, full_like. */
#include "base/arguments.h"
#include "numpy/bridge.h"
#include "array/array.h"

/* What an array is modelled on: the prototype's layout, and its strides where it is contiguous in neither order. */
struct model {
    struct py_layout layout;
    bool strided;
    Py_ssize_t strides[PY_MAX_DIMS]; /* where strided */
    gg_device *device;               /* of a GPUArray, or NULL */
};

static void model_set_strides(struct model *model, bool contiguous, const Py_ssize_t *strides)
{
    model->strided = !contiguous;
    for (int i = 0; i < model->layout.ndim && !contiguous; i++)
        model->strides[i] = strides[i];
}

/* From a GPUArray or an ndarray. */
static int model_open(struct py_state *state, PyObject *prototype, struct model *out)
{
    struct numpy_desc desc;
    int is_array;
    if (PyObject_TypeCheck(prototype, state->array_type)) {
        const struct py_array *array = py_array_of(prototype);
        py_array_layout(array, array->dtype, &out->layout);
        model_set_strides(out, array->c || array->f, array->strides);
        out->device = gg_memory_device(array->memory);
        return 0;
    }
    is_array = numpy_is_array(prototype);
    if (!is_array)
        PyErr_Format(PyExc_TypeError, "expected a GPUArray or a NumPy array, got %R",
                     Py_TYPE(prototype));
    if (is_array < 1)
        return -1;
    numpy_describe(prototype, &desc);
    py_layout_set(&out->layout, desc.dtype, desc.ndim, desc.shape, desc.f && !desc.c);
    model_set_strides(out, desc.c || desc.f, desc.strides);
    out->device = NULL;
    return 0;
}

/* Apply dtype= and order=; the size is checked again, as the dtype may be wider. */
static int model_override(struct py_state *state, struct model *model, PyObject *dtype, char order)
{
    struct py_layout *layout = &model->layout, wanted;
    const bool fortran = order == 'F' || (order != 'C' && layout->fortran);
    PyObject *shape = py_ssize_tuple(layout->shape, layout->ndim),
             *letter = PyUnicode_FromString(fortran ? "F" : "C");
    const int failed =
        !shape || !letter ||
        py_layout_open(state, &wanted, shape, py_given(dtype) ? dtype : layout->dtype, letter);
    Py_XDECREF(shape);
    Py_XDECREF(letter);
    if (failed)
        return -1;
    py_layout_close(layout);
    *layout = wanted;
    return 0;
}

/* Without device= and stream= the new array is on the device of its prototype. */
static int model_target(struct py_state *state, const struct model *model, PyObject *device,
                        PyObject *stream, struct py_alloc_target *target)
{
    if (py_given(device) || py_given(stream) || !model->device)
        return py_alloc_target_open(state, device, stream, target);
    *target = (struct py_alloc_target){.device = model->device};
    return 0;
}

/* values: prototype, dtype, order, device, stream */
static PyObject *like_array(struct py_state *state, PyObject *const *values,
                            enum py_array_content content, PyObject *value)
{
    const char order = py_order(values[2], 'K');
    struct model model;
    struct py_alloc_target target;
    PyObject *array = NULL;
    if (!order || model_open(state, values[0], &model))
        return NULL;
    if (!model_override(state, &model, values[1], order) &&
        !model_target(state, &model, values[3], values[4], &target)) {
        array = py_array_create(state, &model.layout, &target, content, value);
        py_alloc_target_close(&target);
    }
    py_layout_close(&model.layout);
    if (array && order == 'K' && model.strided)
        py_array_restride(py_array_of(array), model.strides);
    return array;
}

static PyObject *like_function(PyObject *module, const char *name, enum py_array_content content,
                               PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"a", "dtype", "order", "device", "stream"};
    PyObject *values[5];
    if (py_parse(name, names, 5, 5, 1, args, nargs, kwnames, values))
        return NULL;
    return like_array(PyModule_GetState(module), values, content, NULL);
}

static PY_FASTCALL(empty_like)
{
    return like_function(self, "empty_like", PY_UNINITIALISED, args, nargs, kwnames);
}

static PY_FASTCALL(zeros_like)
{
    return like_function(self, "zeros_like", PY_ZEROS, args, nargs, kwnames);
}

static PY_FASTCALL(ones_like)
{
    return like_function(self, "ones_like", PY_ONES, args, nargs, kwnames);
}

static PY_FASTCALL(full_like)
{
    static const char *const names[] = {"a", "fill_value", "dtype", "order", "device", "stream"};
    PyObject *values[6], *value;
    if (py_parse("full_like", names, 6, 6, 2, args, nargs, kwnames, values))
        return NULL;
    value = values[1];
    values[1] = values[0]; /* the order of like_array */
    return like_array(PyModule_GetState(self), values + 1, PY_VALUE, value);
}

PyMethodDef py_like_functions[] = {
    PY_FASTCALL_DEF("empty_like", empty_like, py_doc_empty_like),
    PY_FASTCALL_DEF("zeros_like", zeros_like, py_doc_zeros_like),
    PY_FASTCALL_DEF("ones_like", ones_like, py_doc_ones_like),
    PY_FASTCALL_DEF("full_like", full_like, py_doc_full_like),
    {NULL, NULL, 0, NULL},
};
