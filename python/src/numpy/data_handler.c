/* data_handler.c: arrays over memory of gg_readback_alloc, through NumPy's data handlers: they own their data, can be
 * resized, and free the memory with the last view. */
#define NO_IMPORT_ARRAY /* numpy/bridge.c loads it */
#include "numpy/bridge.h"
#include "numpy/types.h"

/* The memory of the next array of this thread, and its device. */
static _Thread_local void *offered;
static _Thread_local gg_device *offering;

/* Without an offer: Python code that the collector runs while this handler is set makes arrays, too. */
static void *handler_malloc(void *Py_UNUSED(context), size_t nbytes)
{
    void *memory = offered;
    int32_t fresh;
    if (!memory)
        return gg_readback_alloc(offering, nbytes, &memory, &fresh) ? NULL : memory;
    if (nbytes > gg_readback_size(memory))
        return NULL;
    offered = NULL;
    return memory;
}

static void *handler_calloc(void *context, size_t count, size_t size)
{
    void *memory = handler_malloc(context, count * size);
    if (memory)
        memset(memory, 0, count * size);
    return memory;
}

static void handler_free(void *Py_UNUSED(context), void *memory, size_t Py_UNUSED(nbytes))
{
    gg_readback_free(memory);
}

/* numpy.ndarray.resize. Smaller arrays keep their memory. */
static void *handler_realloc(void *context, void *memory, size_t nbytes)
{
    void *other = NULL;
    if (!memory)
        return handler_malloc(context, nbytes);
    return gg_readback_resize(memory, nbytes, &other) ? NULL : other;
}

static PyDataMem_Handler handler = {
    "gpuglue_readback", 1, {NULL, handler_malloc, handler_calloc, handler_realloc, handler_free}};

/* NumPy keeps a reference in each array. */
static PyObject *handler_capsule(void)
{
    static PyObject *capsule; /* under the GIL */
    if (!capsule)
        capsule = PyCapsule_New(&handler, "mem_handler", NULL);
    return capsule;
}

PyObject *numpy_readback_array(PyObject *dtype, int ndim, const Py_ssize_t *shape, bool fortran,
                               void *memory)
{
    PyObject *capsule = handler_capsule(), *before, *array = NULL;
    offering = gg_readback_device(memory);
    before = capsule ? PyDataMem_SetHandler(capsule) : NULL;
    if (before) {
        offered = memory;
        array = numpy_empty(dtype, ndim, shape, fortran);
        memory = offered; /* NULL if it was taken */
        offered = NULL;
        Py_XDECREF(PyDataMem_SetHandler(before));
        Py_DECREF(before);
    }
    gg_readback_free(memory);
    return array;
}
