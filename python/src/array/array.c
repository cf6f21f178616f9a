/* array.c: new arrays: over new memory, over existing memory, and views. */
#include "array/array.h"
#include "numpy/bridge.h"

/* Space for shape and strides: inline for up to 4 dimensions. */
static int array_alloc_shape(struct py_array *array, int ndim)
{
    const size_t room = sizeof array->inline_shape / sizeof array->inline_shape[0];
    array->shape = array->inline_shape;
    if ((size_t)ndim * 2 > room)
        array->shape = malloc((size_t)ndim * 2 * sizeof *array->shape);
    if (!array->shape)
        return PY_NO_MEMORY();
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

/* Whether the elements are contiguous, the last axis (fortran: the first) fastest. The stride of an axis of one
 * element does not matter. */
static bool array_is_contiguous(const struct py_array *array, bool fortran)
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

static bool array_has_order(const struct py_array *array, bool fortran)
{
    return !array->size || array_is_contiguous(array, fortran);
}

/* Size and contiguity, from shape and strides. */
static void array_update_layout(struct py_array *array)
{
    array->size = 1;
    for (int i = 0; i < array->ndim; i++)
        array->size *= array->shape[i];
    array->nbytes = (size_t)(array->size * array->itemsize);
    array->c = array_has_order(array, false);
    array->f = array->ndim < 2 ? array->c : array_has_order(array, true);
}

/* Contiguous. */
static int array_set_shape(struct py_array *array, PyObject *dtype, int ndim,
                           const Py_ssize_t *shape, bool fortran)
{
    if (array_alloc_shape(array, ndim))
        return -1;
    array->size = 1;
    for (int i = 0; i < ndim; i++)
        array->size *= array->shape[i] = shape[i];
    array->dtype = Py_NewRef(dtype);
    array->itemsize = numpy_itemsize(dtype);
    array->nbytes = (size_t)(array->size * array->itemsize);
    py_strides_contiguous(array->strides, array->shape, ndim, array->itemsize, fortran);
    return 0;
}

static int array_set_layout(struct py_array *array, const struct py_layout *layout)
{
    if (array_set_shape(array, layout->dtype, layout->ndim, layout->shape, layout->fortran))
        return -1;
    array->c = !layout->fortran || array_has_order(array, false);
    array->f = layout->fortran || array->ndim < 2 || array_has_order(array, true);
    return 0;
}

static struct py_array *array_blank(PyTypeObject *type)
{
    struct py_array *array = PyObject_New(struct py_array, type);
    if (array) {
        array->memory = NULL;
        array->offset = 0;
        array->dtype = array->base = NULL;
        array->readonly = array->unversioned = array->wrapped = false;
        array->shape = array->inline_shape;
        array->exposed = NULL;
        array->weakrefs = NULL;
    }
    return array;
}

/* Takes over @p array. */
static PyObject *array_alloc(struct py_state *state, struct py_array *array,
                             const struct py_alloc_target *target)
{
    array->memory = py_alloc_target_alloc(state, target, GG_MEMORY_DEVICE, array->nbytes);
    if (!array->memory)
        Py_CLEAR(array);
    else
        array->address = gg_memory_pointer(array->memory);
    return (PyObject *)array;
}

PyObject *py_array_empty(struct py_state *state, const struct py_layout *layout,
                         const struct py_alloc_target *target)
{
    struct py_array *array = array_blank(state->array_type);
    if (array && array_set_layout(array, layout))
        Py_CLEAR(array);
    return array ? array_alloc(state, array, target) : NULL;
}

PyObject *py_array_empty_as(struct py_state *state, const struct numpy_desc *host,
                            const struct py_alloc_target *target)
{
    struct py_array *array = array_blank(state->array_type);
    if (array && array_set_shape(array, host->dtype, host->ndim, host->shape, !host->c))
        Py_CLEAR(array);
    if (!array)
        return NULL;
    array->c = host->c;
    array->f = host->f;
    return array_alloc(state, array, target);
}

struct py_array *py_array_wrap(PyTypeObject *type, gg_memory *memory, size_t offset, PyObject *dtype,
                               int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides)
{
    struct py_array *array = array_blank(type);
    if (!array)
        return NULL;
    if (array_alloc_shape(array, ndim)) {
        Py_DECREF(array);
        return NULL;
    }
    memcpy(array->shape, shape, (size_t)ndim * sizeof *shape);
    memcpy(array->strides, strides, (size_t)ndim * sizeof *strides);
    gg_memory_retain(memory);
    array->memory = memory;
    array->offset = offset;
    char *const begin = gg_memory_pointer(memory);
    array->address = begin ? begin + offset : NULL;
    array->dtype = Py_NewRef(dtype);
    array->itemsize = numpy_itemsize(dtype);
    array_update_layout(array);
    return array;
}

PyObject *py_array_view(struct py_array *of, Py_ssize_t offset, PyObject *dtype, int ndim,
                        const Py_ssize_t *shape, const Py_ssize_t *strides)
{
    struct py_array *view = py_array_wrap(Py_TYPE((PyObject *)of), of->memory,
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

static size_t stride_magnitude(Py_ssize_t stride) /* also of the lowest number, which has no negative */
{
    return stride < 0 ? 0 - (size_t)stride : (size_t)stride;
}

void py_axes_by_stride(const Py_ssize_t *strides, int ndim, int *order)
{
    for (int i = 0; i < ndim; i++) {
        int at = i;
        while (at > 0 && stride_magnitude(strides[order[at - 1]]) < stride_magnitude(strides[i])) {
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
    array_update_layout(array);
}

PyObject *py_array_empty_like(struct py_state *state, const struct py_array *model, PyObject *dtype,
                              const struct py_alloc_target *target)
{
    struct py_layout layout;
    PyObject *object;
    py_array_layout(model, dtype, &layout);
    object = py_array_empty(state, &layout, target);
    py_layout_close(&layout);
    if (object && !model->c && !model->f)
        py_array_restride(py_array_of(object), model->strides);
    return object;
}

void py_array_layout(const struct py_array *array, PyObject *dtype, struct py_layout *layout)
{
    py_layout_set(layout, dtype, array->ndim, array->shape, array->f && !array->c);
}

struct py_alloc_target py_array_target(const struct py_array *array)
{
    return (struct py_alloc_target){.device = gg_memory_device(array->memory)};
}
