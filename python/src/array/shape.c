/* shape.c: reshape, ravel, flatten. A view wherever NumPy returns one, with NumPy's strides; else reshape and ravel
 * copy, on the device. */
#include "base/arguments.h"
#include "numpy/bridge.h"
#include "array/array.h"

/* ---- reshape ---- */

struct shape {
    int ndim;
    Py_ssize_t length[PY_MAX_DIMS];
};

static int shape_read_length(PyObject *object, Py_ssize_t *out)
{
    *out = PyNumber_AsSsize_t(object, PyExc_ValueError);
    return *out == -1 && PyErr_Occurred() ? -1 : 0;
}

static int shape_check_ndim(Py_ssize_t count)
{
    if (count <= numpy_max_dims())
        return 0;
    return PY_FAIL(PyExc_ValueError, "%zd dimensions: expected at most %d", count, numpy_max_dims());
}

/* reshape(3, 4), reshape((3, 4)), reshape(12) */
static int shape_read(PyObject *const *args, Py_ssize_t count, struct shape *out)
{
    PyObject *tuple = NULL;
    int failed = 0;
    if (count == 1 && !py_is_index(args[0])) {
        tuple = PySequence_Tuple(args[0]);
        if (!tuple)
            return -1;
        count = PyTuple_Size(tuple);
    }
    failed = shape_check_ndim(count);
    for (Py_ssize_t i = 0; !failed && i < count; i++)
        failed = shape_read_length(tuple ? PyTuple_GetItem(tuple, i) : args[i], &out->length[i]);
    out->ndim = (int)count;
    Py_XDECREF(tuple);
    return failed;
}

static int shape_raise_size(const struct py_array *array, const struct shape *shape)
{
    PyObject *wanted = py_ssize_tuple(shape->length, shape->ndim);
    if (wanted)
        PyErr_Format(PyExc_ValueError, "cannot reshape array of size %zd into shape %R",
                     array->size, wanted);
    Py_XDECREF(wanted);
    return -1;
}

/* Like NumPy, check the size without its zeros: strides and views have to fit too. */
static bool shape_is_too_large(const struct py_array *array, const struct shape *shape)
{
    Py_ssize_t bytes = array->itemsize;
    for (int i = 0; i < shape->ndim; i++)
        if (shape->length[i] && __builtin_mul_overflow(bytes, shape->length[i], &bytes))
            return true;
    return false;
}

/* Compute the length of the one dimension that may be -1. */
static int shape_infer(const struct py_array *array, struct shape *shape)
{
    Py_ssize_t known = 1;
    int unknown = -1;
    for (int i = 0; i < shape->ndim; i++) {
        if (shape->length[i] >= 0) {
            if (__builtin_mul_overflow(known, shape->length[i], &known))
                return shape_raise_size(array, shape);
        } else if (unknown < 0)
            unknown = i;
        else {
            return PY_FAIL(PyExc_ValueError, "can only specify one unknown dimension");
        }
    }
    if (unknown < 0 ? known != array->size : !known || array->size % known)
        return shape_raise_size(array, shape);
    if (unknown >= 0)
        shape->length[unknown] = array->size / known;
    return shape_is_too_large(array, shape) ? shape_raise_size(array, shape) : 0;
}

/* The axes of an array that have more than one element. */
struct axes {
    int count;
    Py_ssize_t length[PY_MAX_DIMS], stride[PY_MAX_DIMS];
};

static void axes_collect(const struct py_array *array, struct axes *out)
{
    out->count = 0;
    for (int i = 0; i < array->ndim; i++) {
        if (array->shape[i] == 1)
            continue;
        out->length[out->count] = array->shape[i];
        out->stride[out->count++] = array->strides[i];
    }
}

/* Whether the axes from @p first to before @p end can be merged into one, in the requested order. */
static bool axes_mergeable(const struct axes *axes, int first, int end, bool fortran)
{
    for (int i = first; i + 1 < end; i++) {
        const int slow = fortran ? i + 1 : i, fast = fortran ? i : i + 1;
        if (axes->stride[slow] != axes->length[fast] * axes->stride[fast])
            return false;
    }
    return true;
}

/* Strides of the new axes from @p first to before @p end; the fastest has @p stride. */
static void axes_split(const struct shape *shape, int first, int end, bool fortran,
                       Py_ssize_t stride, Py_ssize_t *strides)
{
    for (int i = first; i < end; i++) {
        const int axis = fortran ? i : end - 1 - (i - first);
        strides[axis] = stride;
        stride *= shape->length[axis];
    }
}

/* Strides of the new shape over the same elements, if it needs no copy: groups of old axes must equal groups of new
 * ones in size, and each group of old ones must be mergeable. Not for empty arrays. */
static bool reshape_strides(const struct py_array *array, const struct shape *shape, bool fortran,
                            Py_ssize_t *strides)
{
    struct axes old;
    int from = 0, to = 0;
    axes_collect(array, &old);
    while (to < shape->ndim && from < old.count) {
        Py_ssize_t have = old.length[from], want = shape->length[to];
        int end = from + 1, new_end = to + 1;
        while (have != want) {
            if (want < have)
                want *= shape->length[new_end++];
            else
                have *= old.length[end++];
        }
        if (!axes_mergeable(&old, from, end, fortran))
            return false;
        axes_split(shape, to, new_end, fortran, old.stride[fortran ? from : end - 1], strides);
        from = end;
        to = new_end;
    }
    /* Trailing axes of one element: NumPy gives them the stride of a following element. */
    Py_ssize_t last = to ? strides[to - 1] : array->itemsize;
    if (fortran && to)
        last *= shape->length[to - 1];
    for (; to < shape->ndim; to++)
        strides[to] = last;
    return true;
}

static PyObject *reshape_view(struct py_array *array, const struct shape *shape, bool fortran)
{
    Py_ssize_t strides[PY_MAX_DIMS];
    py_strides_contiguous(strides, shape->length, shape->ndim, array->itemsize, fortran);
    return py_array_view(array, 0, array->dtype, shape->ndim, shape->length, strides);
}

static PyObject *reshape_copy(struct py_array *array, const struct shape *shape, bool fortran)
{
    PyObject *copy = py_array_copy_in_order(py_state_of((PyObject *)array), array, fortran), *view;
    if (!copy)
        return NULL;
    view = reshape_view(py_array_of(copy), shape, fortran);
    Py_DECREF(copy);
    return view;
}

enum copying { IF_NEEDED, NEVER, ALWAYS };

static PyObject *reshape(struct py_array *array, struct shape *shape, bool fortran,
                         enum copying copying)
{
    Py_ssize_t strides[PY_MAX_DIMS];
    if (copying != ALWAYS && shape->ndim == array->ndim &&
        !memcmp(shape->length, array->shape, (size_t)array->ndim * sizeof *array->shape))
        return py_array_view(array, 0, array->dtype, array->ndim, array->shape, array->strides);
    if (shape_infer(array, shape))
        return NULL;
    if (copying == ALWAYS)
        return reshape_copy(array, shape, fortran);
    if (fortran ? array->f : array->c)
        return reshape_view(array, shape, fortran);
    if (reshape_strides(array, shape, fortran, strides))
        return py_array_view(array, 0, array->dtype, shape->ndim, shape->length, strides);
    if (copying == IF_NEEDED)
        return reshape_copy(array, shape, fortran);
    return PyErr_Format(PyExc_ValueError, "this reshape needs a copy, which copy=False forbids");
}

/* order= of reshape: C, F, or A: F for an array that is contiguous in Fortran order only. */
static int reshape_read_order(const struct py_array *array, PyObject *object, bool *fortran)
{
    const char order = py_order(object, 'C');
    if (!order)
        return -1;
    if (order == 'K')
        return PY_FAIL(PyExc_ValueError, "order 'K' is not permitted for reshaping");
    *fortran = order == 'F' || (order == 'A' && array->f && !array->c);
    return 0;
}

static int reshape_read_copy(PyObject *object, enum copying *out)
{
    int truth;
    *out = IF_NEEDED;
    if (!py_given(object))
        return 0;
    truth = PyObject_IsTrue(object);
    *out = truth ? ALWAYS : NEVER;
    return truth < 0 ? -1 : 0;
}

PY_FASTCALL(py_array_reshape)
{
    static const char *const names[] = {"order", "copy"};
    struct py_array *array = py_array_of(self);
    struct shape shape;
    PyObject *values[2];
    enum copying copying;
    bool fortran;
    if (py_parse("reshape", names, 2, 0, 0, args + nargs, 0, kwnames, values) ||
        reshape_read_order(array, values[0], &fortran) || reshape_read_copy(values[1], &copying))
        return NULL;
    if (!nargs)
        return PyErr_Format(PyExc_TypeError, "reshape() takes a shape");
    if (shape_read(args, nargs, &shape))
        return NULL;
    return reshape(array, &shape, fortran, copying);
}

/* ---- ravel and flatten ---- */

/* order='K': in memory order, except that axes with negative strides stay reversed. */
static PyObject *flat_keep_order(struct py_array *array, enum copying copying)
{
    struct shape flat = {.ndim = 1, .length = {array->size}};
    int order[PY_MAX_DIMS];
    PyObject *sorted, *result;
    if (array->c)
        return copying == ALWAYS ? reshape_copy(array, &flat, false)
                                 : reshape_view(array, &flat, false);
    py_axes_by_stride(array->strides, array->ndim, order);
    sorted = py_array_permuted(array, order);
    if (!sorted)
        return NULL;
    result = py_array_of(sorted)->c ? reshape(py_array_of(sorted), &flat, false, copying)
                                    : reshape_copy(py_array_of(sorted), &flat, false);
    Py_DECREF(sorted);
    return result;
}

/* Like NumPy's, ravel copies unless the array is contiguous, even where its strides would allow a view. */
static PyObject *flat(PyObject *self, const char *name, enum copying copying, PyObject *const *args,
                      Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"order"};
    struct py_array *array = py_array_of(self);
    struct shape flat = {.ndim = 1, .length = {array->size}};
    PyObject *values[1];
    char order;
    bool fortran;
    if (py_parse(name, names, 1, 1, 0, args, nargs, kwnames, values))
        return NULL;
    order = py_order(values[0], 'C');
    if (!order)
        return NULL;
    if (order == 'K')
        return flat_keep_order(array, copying);
    fortran = order == 'F' || (order == 'A' && array->f && !array->c);
    if (copying == ALWAYS || !(fortran ? array->f : array->c))
        return reshape_copy(array, &flat, fortran);
    return reshape_view(array, &flat, fortran);
}

PY_FASTCALL(py_array_ravel)
{
    return flat(self, "ravel", IF_NEEDED, args, nargs, kwnames);
}

PY_FASTCALL(py_array_flatten)
{
    return flat(self, "flatten", ALWAYS, args, nargs, kwnames);
}
