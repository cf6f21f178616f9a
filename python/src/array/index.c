/* index.c: basic indexing, as in NumPy: integers, slices, Ellipsis, None, and field names. No memory is accessed. */
#include "numpy/bridge.h"
#include "array/array.h"

/* A view under construction. */
struct indexing {
    const struct py_array *array;
    Py_ssize_t offset;
    int axis, ndim; /* axes of the array consumed so far; axes of the view so far */
    Py_ssize_t shape[PY_MAX_DIMS], strides[PY_MAX_DIMS];
};

static int index_raise_too_many(const struct py_array *array, Py_ssize_t given)
{
    return PY_FAIL(PyExc_IndexError,
                   "too many indices: the array is %d-dimensional, but %zd were given", array->ndim,
                   given);
}

static int index_add_axis(struct indexing *view, Py_ssize_t length, Py_ssize_t stride)
{
    if (view->ndim >= numpy_max_dims())
        return PY_FAIL(PyExc_IndexError, "the result would have more than %d dimensions",
                       numpy_max_dims());
    view->shape[view->ndim] = length;
    view->strides[view->ndim++] = stride;
    return 0;
}

static int index_raise_type(PyObject *index)
{
    PyErr_Clear();
    return PY_FAIL(
        PyExc_IndexError,
        "a GPUArray can be indexed only with integers, slices, ... and None, which need no copy, "
        "got %R; for masks and lists of indices use a library: cupy.from_dlpack(a)[...]",
        Py_TYPE(index));
}

static int index_position(struct indexing *view, Py_ssize_t position)
{
    const struct py_array *array = view->array;
    const Py_ssize_t length = array->shape[view->axis];
    if (position < -length || position >= length)
        return PY_FAIL(PyExc_IndexError, "index %zd is out of bounds for axis %d with size %zd",
                       position, view->axis, length);
    view->offset += (position < 0 ? position + length : position) * array->strides[view->axis];
    view->axis++;
    return 0;
}

static int index_integer(struct indexing *view, PyObject *index)
{
    Py_ssize_t position;
    if (PyBool_Check(index) || numpy_is_bool(index) || !PyIndex_Check(index))
        return index_raise_type(index);
    position = PyNumber_AsSsize_t(index, PyExc_IndexError);
    if (position == -1 && PyErr_Occurred())
        return PyErr_ExceptionMatches(PyExc_TypeError) ? index_raise_type(index) : -1;
    if (view->axis == view->array->ndim)
        return index_raise_too_many(view->array, view->axis + 1);
    return index_position(view, position);
}

static int index_slice(struct indexing *view, PyObject *slice)
{
    Py_ssize_t start, stop, step, count;
    const struct py_array *array = view->array;
    if (view->axis == array->ndim)
        return index_raise_too_many(array, view->axis + 1);
    if (PySlice_Unpack(slice, &start, &stop, &step))
        return -1;
    count = PySlice_AdjustIndices(array->shape[view->axis], &start, &stop, step);
    if (count <= 0) { /* where NumPy leaves the pointer and the stride as they were */
        count = start = 0;
        step = 1;
    }
    view->offset += start * array->strides[view->axis];
    /* The stride of at most one element does not matter; it wraps around as in NumPy. */
    return index_add_axis(view, count,
                          (Py_ssize_t)((size_t)step * (size_t)array->strides[view->axis++]));
}

/* The axes that an Ellipsis, or the end of the index, stands for. */
static int index_whole_axes(struct indexing *view, int count)
{
    for (int i = 0; i < count; i++, view->axis++)
        if (index_add_axis(view, view->array->shape[view->axis], view->array->strides[view->axis]))
            return -1;
    return 0;
}

static int index_item(struct indexing *view, PyObject *index, int whole)
{
    if (PyLong_CheckExact(index))
        return index_integer(view, index);
    if (PySlice_Check(index))
        return index_slice(view, index);
    if (index == Py_None)
        return index_add_axis(view, 1, 0);
    if (index == Py_Ellipsis)
        return index_whole_axes(view, whole);
    return index_integer(view, index);
}

/* Count the axes that an index consumes, and check that it has at most one Ellipsis. */
static int index_count(const struct py_array *array, PyObject *tuple, Py_ssize_t items, int *whole)
{
    Py_ssize_t used = 0;
    int ellipses = 0;
    for (Py_ssize_t i = 0; i < items; i++) {
        PyObject *item = PyTuple_GetItem(tuple, i); /* borrowed */
        ellipses += item == Py_Ellipsis;
        used += item != Py_Ellipsis && item != Py_None;
    }
    if (ellipses > 1)
        return PY_FAIL(PyExc_IndexError, "an index can have one ellipsis ('...') only");
    if (used > array->ndim)
        return index_raise_too_many(array, used);
    *whole = array->ndim - (int)used;
    return 0;
}

static int index_tuple(struct indexing *view, PyObject *tuple)
{
    const Py_ssize_t items = PyTuple_Size(tuple);
    int whole = 0;
    if (index_count(view->array, tuple, items, &whole))
        return -1;
    for (Py_ssize_t i = 0; i < items; i++)
        if (index_item(view, PyTuple_GetItem(tuple, i), whole))
            return -1;
    return 0;
}

/* a['name']: NumPy locates the field in one element; a field may have axes of its own. */
static PyObject *index_field(struct py_array *array, PyObject *name)
{
    Py_ssize_t shape[PY_MAX_DIMS], strides[PY_MAX_DIMS], offset;
    struct numpy_desc desc;
    PyObject *found = numpy_field(array->dtype, name, &desc, &offset), *view = NULL;
    const int ndim = found ? array->ndim + desc.ndim - 1 : 0;
    if (!found)
        return NULL;
    if (ndim > numpy_max_dims())
        PyErr_Format(PyExc_IndexError, "the result would have more than %d dimensions",
                     numpy_max_dims());
    else {
        memcpy(shape, array->shape, (size_t)array->ndim * sizeof *shape);
        memcpy(strides, array->strides, (size_t)array->ndim * sizeof *strides);
        for (int i = array->ndim; i < ndim; i++) {
            shape[i] = desc.shape[i - array->ndim + 1];
            strides[i] = desc.strides[i - array->ndim + 1];
        }
        view = py_array_view(array, offset, desc.dtype, ndim, shape, strides);
    }
    Py_DECREF(found);
    return view;
}

PyObject *py_array_subscript(PyObject *self, PyObject *index)
{
    struct py_array *array = py_array_of(self);
    struct indexing view; /* its arrays are initialised as far as they are used */
    int failed;
    if (PyUnicode_Check(index) && numpy_has_fields(array->dtype))
        return index_field(array, index);
    view.array = array;
    view.offset = 0;
    view.axis = view.ndim = 0;
    failed =
        PyTuple_Check(index) ? index_tuple(&view, index) : index_item(&view, index, array->ndim);
    if (failed || index_whole_axes(&view, array->ndim - view.axis))
        return NULL;
    return py_array_view(array, view.offset, array->dtype, view.ndim, view.shape, view.strides);
}

PyObject *py_array_getitem(PyObject *self, Py_ssize_t position) /* for iteration */
{
    struct py_array *array = py_array_of(self);
    if (!array->ndim)
        return PyErr_Format(PyExc_TypeError, "a 0-d GPUArray has no items");
    if (position < 0 || position >= array->shape[0])
        return PyErr_Format(PyExc_IndexError, "index %zd is out of bounds for axis 0 with size %zd",
                            position, array->shape[0]);
    return py_array_view(array, position * array->strides[0], array->dtype, array->ndim - 1,
                         array->shape + 1, array->strides + 1);
}
