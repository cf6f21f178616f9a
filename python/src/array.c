/* array.c: GPUArray, a typed and shaped piece of device memory: the type and its making. */
#include "array.h"
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

/* Contiguous strides. An empty array is given those it would have with 1 for each 0, as in NumPy. */
static void make_strides(struct py_array *array, bool fortran)
{
    Py_ssize_t stride = array->itemsize;
    for (int i = 0; i < array->ndim; i++) {
        const int axis = fortran ? i : array->ndim - 1 - i;
        array->strides[axis] = stride;
        stride *= array->shape[axis] ? array->shape[axis] : 1;
    }
}

static int dimensions_above_one(const struct py_array *array)
{
    int count = 0;
    for (int i = 0; i < array->ndim; i++)
        count += array->shape[i] != 1;
    return count;
}

static int set_layout(struct py_array *array, const struct py_layout *layout)
{
    bool both;
    if (make_room(array, layout->ndim))
        return -1;
    for (int i = 0; i < layout->ndim; i++)
        array->shape[i] = layout->shape[i];
    array->dtype = Py_NewRef(layout->dtype);
    array->itemsize = numpy_itemsize(layout->dtype);
    array->size = layout->size;
    array->nbytes = layout->nbytes;
    make_strides(array, layout->fortran);
    both = !layout->size || dimensions_above_one(array) < 2;
    array->c = both || !layout->fortran;
    array->f = both || layout->fortran;
    return 0;
}

static struct py_array *make_blank(struct py_state *state)
{
    struct py_array *array = PyObject_New(struct py_array, state->array_type);
    if (array) {
        array->memory = NULL;
        array->offset = 0;
        array->dtype = array->base = NULL;
        array->shape = array->few;
        array->weakrefs = NULL;
    }
    return array;
}

PyObject *py_array_make(struct py_state *state, const struct py_layout *layout,
                        const struct py_place *place)
{
    struct py_array *array = make_blank(state);
    if (!array)
        return NULL;
    if (!set_layout(array, layout))
        array->memory = py_place_alloc(state, place, GG_MEMORY_DEVICE, layout->nbytes);
    if (!array->memory)
        Py_CLEAR(array);
    return (PyObject *)array;
}

void py_array_layout(const struct py_array *array, struct py_layout *layout)
{
    layout->dtype = Py_NewRef(array->dtype);
    layout->size = array->size;
    layout->nbytes = array->nbytes;
    layout->ndim = array->ndim;
    layout->fortran = !array->c;
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
    if (array->shape != array->few)
        free(array->shape);
    Py_XDECREF(array->dtype);
    Py_XDECREF(array->base);
    PyObject_Free(self);
    Py_DECREF(type); /* instances of a heap type own a reference to it */
}

static PyObject *describe(const struct py_array *array)
{
    gg_device *device = gg_memory_device(array->memory);
    PyObject *shape = py_sizes(array->shape, array->ndim), *text;
    char address[PY_ADDRESS_SIZE];
    if (!shape)
        return NULL;
    py_address(address, gg_memory_pointer(array->memory), array->offset);
    text = PyUnicode_FromFormat("<gpuglue.GPUArray shape=%R dtype=%S %s:%d ptr=%s>", shape,
                                array->dtype, gg_device_backend(device),
                                (int)gg_device_ordinal(device), address);
    Py_DECREF(shape);
    return text;
}

static PyObject *array_repr(PyObject *self) /* never raises: debuggers and tracebacks call it */
{
    PyObject *text = describe(py_array_of(self));
    if (text)
        return text;
    PyErr_Clear();
    return PyUnicode_FromString("<gpuglue.GPUArray>");
}

static PyObject *array_compare(PyObject *self, PyObject *other, int op)
{
    (void)self;
    (void)other;
    (void)op;
    PyErr_SetString(PyExc_TypeError,
                    "GPUArrays are not compared: gpuglue does no arithmetic; compare "
                    "the arrays that .get() gives, or use `is`");
    return NULL;
}

static Py_ssize_t array_length(PyObject *self)
{
    struct py_array *array = py_array_of(self);
    if (array->ndim)
        return array->shape[0];
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d GPUArray");
    return -1;
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
    {Py_tp_richcompare, PY_SLOT(array_compare)},
    {Py_tp_methods, py_array_methods},
    {Py_tp_getset, py_array_attributes},
    {Py_tp_members, array_members},
    {Py_sq_length, PY_SLOT(array_length)},
    {Py_nb_bool, PY_SLOT(py_array_bool)},
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
    if (py_type_add(module, &array_spec, &state->array_type))
        return -1;
    /* None makes NumPy's operators raise instead of treating this as an object scalar. */
    if (PyObject_SetAttrString((PyObject *)state->array_type, "__array_ufunc__", Py_None))
        return -1;
    return PyModule_AddFunctions(module, py_array_functions) ||
                   PyModule_AddFunctions(module, py_like_functions)
               ? -1
               : 0;
}
