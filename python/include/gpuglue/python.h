/* gpuglue/python.h: arrays of any Python library, for extensions written in C or C++.
 *
 * An extension needs these headers and links nothing: gg_python_import() finds the running gpuglue.
 *
 *     if (gg_python_import())
 *         return NULL;                       // with an ImportError
 *     struct gg_array_request request = GG_ARRAY_REQUEST;
 *     struct gg_array_view view = GG_ARRAY_VIEW;
 *     request.flags = GG_ARRAY_WRITABLE | GG_ARRAY_C_CONTIGUOUS;
 *     if (gg_array_from_object(object, &request, &view))
 *         return NULL;                       // with an exception that names what was expected
 *     Py_BEGIN_ALLOW_THREADS
 *     launch(view.data, view.shape[0], (cudaStream_t)view.stream_handle);
 *     gg_array_view_release(&view);          // with or without the GIL
 *     Py_END_ALLOW_THREADS
 *
 * The functions of gpuglue.h are called through gg_python_function("gg_…"), or linked as usual. */
#ifndef GPUGLUE_PYTHON_H
#define GPUGLUE_PYTHON_H

#include <Python.h>

#include <gpuglue/gpuglue.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GG_PYTHON_ABI_MAJOR 1
#define GG_PYTHON_ABI_MINOR 0
#define GG_PYTHON_CAPSULE "gpuglue._core._C_API"

enum gg_array_flag {
    GG_ARRAY_WRITABLE = 1,     /* refuse read-only arrays */
    GG_ARRAY_C_CONTIGUOUS = 2, /* refuse other layouts */
    GG_ARRAY_F_CONTIGUOUS = 4,
    GG_ARRAY_HOST = 8, /* take NumPy arrays and CPU tensors too, as memory of a host device */
    GG_ARRAY_NATIVE_STREAM = 16 /* native_stream is the stream; 0 is then the default one of hip, and
                                   1 and 2 the legacy and the per-thread one of cuda */
};

struct gg_array_request {
    uint32_t struct_size; /* sizeof */
    uint32_t flags;       /* of enum gg_array_flag */
    gg_device *device;    /* the requested device, or NULL for any; nothing is copied there */
    gg_stream *stream;    /* where the array will be used; NULL: the current stream of its device */
    uint64_t native_stream;
};
#define GG_ARRAY_REQUEST                            \
    {                                               \
        sizeof(struct gg_array_request), 0, 0, 0, 0 \
    }

/* Element types: DLPack's codes. */
enum gg_dtype_code {
    GG_DTYPE_INT = 0,
    GG_DTYPE_UINT = 1,
    GG_DTYPE_FLOAT = 2,
    GG_DTYPE_BFLOAT = 4,
    GG_DTYPE_COMPLEX = 5,
    GG_DTYPE_BOOL = 6,
    GG_DTYPE_OTHER = 255 /* records, dates, strings: only itemsize is reported */
};

struct gg_array_view {
    uint32_t struct_size; /* sizeof */
    int32_t ndim;
    void *data;             /* element 0; NULL if there are none */
    const int64_t *shape;   /* elements */
    const int64_t *strides; /* bytes, of any sign */
    size_t itemsize;        /* bytes */
    size_t size;            /* elements */
    uint8_t code,
        bits; /* enum gg_dtype_code, or DLPack's code of a small float; bits of an element */
    uint16_t readonly; /* 1: not to be written */
    uint32_t host;     /* 1: the host can access the memory too */
    gg_device *device; /* never destroyed */
    gg_memory *memory; /* the view's reference */
    size_t offset;     /* of data in memory, bytes */
    gg_stream *stream; /* the view's reference: already made to wait for pending work on the array */
    uint64_t stream_handle; /* its native handle */
    void *internal;
};
#define GG_ARRAY_VIEW                                                                \
    {                                                                                \
        sizeof(struct gg_array_view), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/* The table in the capsule; rows are only ever added at its end. */
struct gg_python_api {
    uint32_t struct_size, abi_major, abi_minor, reserved;
    int (*array_from_object)(PyObject *object, const struct gg_array_request *request,
                             struct gg_array_view *view);
    void (*array_view_release)(struct gg_array_view *view);
    void (*(*function)(const char *name))(void);
};

static const struct gg_python_api *gg_python_api_table;

/** Import gpuglue and its table. Returns 0, or -1 with an ImportError. Call it with the GIL held. Cheap after the first call;
 *  each file that includes this header imports for itself. */
static inline int gg_python_import(void)
{
    const struct gg_python_api *table;
    if (gg_python_api_table)
        return 0;
    table = (const struct gg_python_api *)PyCapsule_Import(GG_PYTHON_CAPSULE, 0);
    if (!table)
        return -1;
    if (table->abi_major != GG_PYTHON_ABI_MAJOR || table->struct_size < sizeof *table) {
        PyErr_Format(PyExc_ImportError,
                     "this extension was built for gpuglue's Python interface %d.%d, but the "
                     "installed one is %u.%u: rebuild the extension",
                     GG_PYTHON_ABI_MAJOR, GG_PYTHON_ABI_MINOR, (unsigned)table->abi_major,
                     (unsigned)table->abi_minor);
        return -1;
    }
    gg_python_api_table = table;
    return 0;
}

/** Any array of any library: a GPUArray, an object with DLPack or __cuda_array_interface__, with ptr, shape
 *  and dtype, … Nothing is copied. The view's stream waits, on the device, for pending work on the array.
 *  Call it with the GIL held, after gg_python_import.
 *  Ownership  on success (0) the view keeps the memory until gg_array_view_release.
 *  Errors     -1 with an exception: TypeError for an object that is not an array, ValueError (InvalidArgumentError) for
 *             one that is read-only, on another device, or of another layout than requested. */
static inline int gg_array_from_object(PyObject *object, const struct gg_array_request *request,
                                       struct gg_array_view *view)
{
    return gg_python_api_table->array_from_object(object, request, view);
}

/** Release the view. All work queued so far on the view's stream counts as a use of the array: later work of
 *  gpuglue without a stream waits for it, and the memory is kept until then. Any thread, with or without the
 *  GIL. Does nothing for a view that was released or never filled. */
static inline void gg_array_view_release(struct gg_array_view *view)
{
    gg_python_api_table->array_view_release(view);
}

/** A function of gpuglue.h by name, to be cast to its type; NULL if there is none. Any thread. */
static inline void (*gg_python_function(const char *name))(void)
{
    return gg_python_api_table->function(name);
}

#ifdef __cplusplus
}
#endif
#endif
