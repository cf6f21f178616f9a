/* numpy_results.c: arrays whose data is memory of gg_result_alloc, through NumPy's own data handler: so they
 * own their data and can be resized, and the memory comes back when the last view is gone. */
#define NO_IMPORT_ARRAY /* numpy_bridge.c loads it */
#include "numpy_types.h"

/* What the next array of this thread is made of. */
static _Thread_local void *offered;

static void *take_offered(void *context, size_t nbytes)
{
    void *memory = offered;
    (void)context;
    if (!memory || nbytes > gg_result_size(memory))
        return NULL;
    offered = NULL;
    return memory;
}

static void *take_zeroed(void *context, size_t count, size_t size)
{
    void *memory = take_offered(context, count * size);
    if (memory)
        memset(memory, 0, count * size);
    return memory;
}

static void let_go(void *context, void *memory, size_t nbytes)
{
    (void)context;
    (void)nbytes;
    gg_result_free(memory);
}

/* numpy.ndarray.resize. Smaller arrays keep their memory. */
static void *resize(void *context, void *memory, size_t nbytes)
{
    void *other = NULL;
    if (!memory)
        return take_offered(context, nbytes);
    return gg_result_resize(memory, nbytes, &other) ? NULL : other;
}

static PyDataMem_Handler handler = {
    "gpuglue_results", 1, {NULL, take_offered, take_zeroed, resize, let_go}};

/* NumPy keeps a reference in each array. */
static PyObject *handler_capsule(void)
{
    static PyObject *capsule; /* under the GIL */
    if (!capsule)
        capsule = PyCapsule_New(&handler, "mem_handler", NULL);
    return capsule;
}

PyObject *numpy_result(PyObject *dtype, int ndim, const Py_ssize_t *shape, bool fortran,
                       void *memory)
{
    PyObject *capsule = handler_capsule(), *before, *array = NULL;
    before = capsule ? PyDataMem_SetHandler(capsule) : NULL;
    if (before) {
        offered = memory;
        array = numpy_empty(dtype, ndim, shape, fortran);
        memory = offered; /* NULL if it was taken */
        offered = NULL;
        Py_XDECREF(PyDataMem_SetHandler(before));
        Py_DECREF(before);
    }
    gg_result_free(memory);
    return array;
}
