/* array.c: GPUArray, a typed and shaped piece of device memory: the type and its making. */
#include "array.h"
#include "array_foreign.h"
#include "memory.h"
#include "numpy_bridge.h"

#include <structmember.h>

/* ---- making ---------------------------------------------------------------------------------- */

/* Room for shape and strides: inline for up to 4 dimensions. */
static int make_room(struct py_array *array, int ndim)
{
    const size_t room = sizeof array->few / sizeof array->few[0];
    array->shape = array->few;
    if ((size_t)ndim * 2 > room)
        array->shape = malloc((size_t)ndim * 2 * sizeof *array->shape);
    if (!array->shape) {
        PyErr_NoMemory();
        return -1;
    }
    array->ndim = ndim;
    array->strides = array->shape + ndim;
    return 0;
}

void py_strides_contiguous(Py_ssize_t *strides, const Py_ssize_t *shape, int ndim,
                           Py_ssize_t itemsize, bool fortran)
{
    Py_ssize_t stride = itemsize;
    for (int i = 0; i < ndim; i++) {
        const int axis = fortran ? i : ndim - 1 - i;
        strides[axis] = stride;
        stride *= shape[axis] ? shape[axis] : 1;
    }
}

/* Whether elements lie one behind the other, the last axis (fortran: the first) fastest. The stride of
 * an axis of one element says nothing. */
static bool contiguous(const struct py_array *array, bool fortran)
{
    Py_ssize_t expected = array->itemsize;
    for (int i = 0; i < array->ndim; i++) {
        const int axis = fortran ? i : array->ndim - 1 - i;
        if (array->shape[axis] == 1)
            continue;
        if (array->strides[axis] != expected)
            return false;
        expected *= array->shape[axis];
    }
    return true;
}

/* Size and contiguity, from shape and strides. */
static void settle_layout(struct py_array *array)
{
    array->size = 1;
    for (int i = 0; i < array->ndim; i++)
        array->size *= array->shape[i];
    array->nbytes = (size_t)(array->size * array->itemsize);
    array->c = !array->size || contiguous(array, false);
    array->f = !array->size || contiguous(array, true);
}

static int set_layout(struct py_array *array, const struct py_layout *layout)
{
    if (make_room(array, layout->ndim))
        return -1;
    for (int i = 0; i < layout->ndim; i++)
        array->shape[i] = layout->shape[i];
    array->dtype = Py_NewRef(layout->dtype);
    array->itemsize = numpy_itemsize(layout->dtype);
    py_strides_contiguous(array->strides, array->shape, array->ndim, array->itemsize,
                          layout->fortran);
    settle_layout(array);
    return 0;
}

static struct py_array *make_blank(PyTypeObject *type)
{
    struct py_array *array = PyObject_New(struct py_array, type);
    if (array) {
        array->memory = NULL;
        array->offset = 0;
        array->dtype = array->base = NULL;
        array->readonly = array->unversioned = array->wrapped = false;
        array->shape = array->few;
        array->exposed = NULL;
        array->weakrefs = NULL;
    }
    return array;
}

PyObject *py_array_make(struct py_state *state, const struct py_layout *layout,
                        const struct py_place *place)
{
    struct py_array *array = make_blank(state->array_type);
    if (!array)
        return NULL;
    if (!set_layout(array, layout))
        array->memory = py_place_alloc(state, place, GG_MEMORY_DEVICE, layout->nbytes);
    if (!array->memory)
        Py_CLEAR(array);
    return (PyObject *)array;
}

struct py_array *py_array_over(PyTypeObject *type, gg_memory *memory, size_t offset, PyObject *dtype,
                               int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides)
{
    struct py_array *array = make_blank(type);
    if (!array)
        return NULL;
    if (make_room(array, ndim)) {
        Py_DECREF(array);
        return NULL;
    }
    memcpy(array->shape, shape, (size_t)ndim * sizeof *shape);
    memcpy(array->strides, strides, (size_t)ndim * sizeof *strides);
    gg_memory_retain(memory);
    array->memory = memory;
    array->offset = offset;
    array->dtype = Py_NewRef(dtype);
    array->itemsize = numpy_itemsize(dtype);
    settle_layout(array);
    return array;
}

PyObject *py_array_view(struct py_array *of, Py_ssize_t offset, PyObject *dtype, int ndim,
                        const Py_ssize_t *shape, const Py_ssize_t *strides)
{
    struct py_array *view = py_array_over(Py_TYPE((PyObject *)of), of->memory,
                                          of->offset + (size_t)offset, dtype, ndim, shape, strides);
    if (!view)
        return NULL;
    view->readonly = of->readonly;
    view->unversioned = of->unversioned;
    /* As in NumPy, the base of a view of a view is the array that the memory came with. */
    const bool has_array = of->base && Py_IS_TYPE(of->base, Py_TYPE((PyObject *)of));
    view->base = Py_NewRef(has_array ? of->base : (PyObject *)of);
    return (PyObject *)view;
}

static size_t magnitude(Py_ssize_t stride) /* also of the least number, which has no negative */
{
    return stride < 0 ? 0 - (size_t)stride : (size_t)stride;
}

void py_axes_by_stride(const Py_ssize_t *strides, int ndim, int *order)
{
    for (int i = 0; i < ndim; i++) {
        int at = i;
        while (at > 0 && magnitude(strides[order[at - 1]]) < magnitude(strides[i])) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
}

void py_array_restride(struct py_array *array, const Py_ssize_t *like)
{
    Py_ssize_t stride = array->itemsize;
    int order[PY_MAX_DIMS];
    py_axes_by_stride(like, array->ndim, order);
    for (int i = array->ndim - 1; i >= 0; i--) {
        array->strides[order[i]] = stride;
        stride *= array->shape[order[i]] ? array->shape[order[i]] : 1;
    }
    settle_layout(array);
}

PyObject *py_array_make_like(struct py_state *state, const struct py_array *model, PyObject *dtype,
                             const struct py_place *place)
{
    struct py_layout layout;
    PyObject *object;
    py_array_layout(model, &layout);
    Py_DECREF(layout.dtype);
    layout.dtype = Py_NewRef(dtype);
    layout.nbytes = (size_t)(layout.size * numpy_itemsize(dtype));
    object = py_array_make(state, &layout, place);
    py_layout_close(&layout);
    if (object && !model->c && !model->f)
        py_array_restride(py_array_of(object), model->strides);
    return object;
}

void py_array_layout(const struct py_array *array, struct py_layout *layout)
{
    layout->dtype = Py_NewRef(array->dtype);
    layout->size = array->size;
    layout->nbytes = array->nbytes;
    layout->ndim = array->ndim;
    layout->fortran = array->f && !array->c;
    for (int i = 0; i < array->ndim; i++)
        layout->shape[i] = array->shape[i];
}

/* ---- the type -------------------------------------------------------------------------------- */

static void array_dealloc(PyObject *self)
{
    struct py_array *array = py_array_of(self);
    PyTypeObject *type = Py_TYPE(self);
    if (array->weakrefs)
        PyObject_ClearWeakRefs(self);
    gg_memory_release(array->memory);
    gg_stream_release(array->exposed);
    if (array->shape != array->few)
        free(array->shape);
    Py_XDECREF(array->dtype);
    Py_XDECREF(array->base);
    PyObject_Free(self);
    Py_DECREF(type); /* instances of a heap type own a reference to it */
}

/* Never raises and never waits: debuggers and tracebacks call it. gpuglue/_show.py writes the text. */
static PyObject *array_repr(PyObject *self)
{
    PyObject *module = PyImport_ImportModule("gpuglue._show"), *text = NULL;
    if (module)
        text = PyObject_CallMethod(module, "text", "O", self);
    Py_XDECREF(module);
    if (text)
        return text;
    PyErr_Clear();
    return PyUnicode_FromString("<gpuglue.GPUArray>");
}

static Py_ssize_t array_length(PyObject *self)
{
    struct py_array *array = py_array_of(self);
    if (array->ndim)
        return array->shape[0];
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d GPUArray");
    return -1;
}

static PyObject *array_iter(PyObject *self)
{
    if (py_array_of(self)->ndim)
        return PySeqIter_New(self);
    return PyErr_Format(PyExc_TypeError, "iteration over a 0-d GPUArray");
}

PyDoc_STRVAR(
    array_doc,
    "GPUArray(shape_or_data, dtype='float64', order=None, device=None, stream=None)\n--\n\n"
    "A typed and shaped piece of device memory.\n\n"
    "An int, or a tuple or list of ints, is a shape: the array is uninitialised. Anything else\n"
    "with the buffer protocol is data to copy, NumPy arrays above all; dtype= then casts it on\n"
    "the host as numpy.asarray does, and order=None keeps its order. ctypes takes a GPUArray as\n"
    "a pointer; ptr is the address for every other library.");

static PyMemberDef array_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct py_array, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot array_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)array_doc},
    {Py_tp_new, PY_SLOT(py_array_new)},
    {Py_tp_dealloc, PY_SLOT(array_dealloc)},
    {Py_tp_repr, PY_SLOT(array_repr)},
    {Py_tp_hash, PY_SLOT(PyObject_HashNotImplemented)},
    {Py_tp_methods, py_array_methods},
    {Py_tp_getset, py_array_attributes},
    {Py_tp_members, array_members},
    {Py_tp_iter, PY_SLOT(array_iter)},
    {Py_sq_length, PY_SLOT(array_length)},
    {Py_sq_item, PY_SLOT(py_array_at)},
    {Py_mp_length, PY_SLOT(array_length)},
    {Py_mp_subscript, PY_SLOT(py_array_subscript)},
    {Py_mp_ass_subscript, PY_SLOT(py_array_assign_subscript)},
    {Py_bf_getbuffer, PY_SLOT(py_array_export)},
    {Py_bf_releasebuffer, PY_SLOT(py_array_unexport)},
    {Py_nb_bool, PY_SLOT(py_array_bool)},
    {Py_nb_int, PY_SLOT(py_array_int)},
    {Py_nb_float, PY_SLOT(py_array_float)},
    {Py_nb_add, PY_SLOT(py_array_refuse_binary)},
    {Py_nb_subtract, PY_SLOT(py_array_refuse_binary)},
    {Py_nb_multiply, PY_SLOT(py_array_refuse_binary)},
    {Py_nb_remainder, PY_SLOT(py_array_refuse_binary)},
    {Py_nb_divmod, PY_SLOT(py_array_refuse_binary)},
    {Py_nb_lshift, PY_SLOT(py_array_refuse_binary)},
    {Py_nb_rshift, PY_SLOT(py_array_refuse_binary)},
    {Py_nb_and, PY_SLOT(py_array_refuse_binary)},
    {Py_nb_xor, PY_SLOT(py_array_refuse_binary)},
    {Py_nb_or, PY_SLOT(py_array_refuse_binary)},
    {Py_nb_floor_divide, PY_SLOT(py_array_refuse_binary)},
    {Py_nb_true_divide, PY_SLOT(py_array_refuse_binary)},
    {Py_nb_matrix_multiply, PY_SLOT(py_array_refuse_binary)},
    {Py_nb_power, PY_SLOT(py_array_refuse_power)},
    {Py_nb_negative, PY_SLOT(py_array_refuse_unary)},
    {Py_nb_positive, PY_SLOT(py_array_refuse_unary)},
    {Py_nb_absolute, PY_SLOT(py_array_refuse_unary)},
    {Py_nb_invert, PY_SLOT(py_array_refuse_unary)},
    {Py_tp_richcompare, PY_SLOT(py_array_refuse_compare)},
    {0, NULL},
};

static PyType_Spec array_spec = {
    .name = "gpuglue.GPUArray",
    .basicsize = sizeof(struct py_array),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = array_slots,
};

int py_array_add(PyObject *module, struct py_state *state)
{
    if (py_type_add(module, &array_spec, &state->array_type) || py_flags_add(module, state) ||
        py_cuda_interface_add(state) || py_exchange_add(state))
        return -1;
    /* None makes NumPy's operators raise instead of treating this as an object scalar. */
    if (PyObject_SetAttrString((PyObject *)state->array_type, "__array_ufunc__", Py_None))
        return -1;
    static PyMethodDef *const functions[] = {py_array_functions, py_like_functions,
                                             py_pickle_functions, py_protocol_functions};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (PyModule_AddFunctions(module, functions[i]))
            return -1;
    return 0;
}
