/* launch_args.h: the arguments of a launch. Most launches need no allocation. */
#ifndef GPUGLUE_PY_LAUNCH_ARGS_H
#define GPUGLUE_PY_LAUNCH_ARGS_H

#include "kernel/kernel.h"

enum { PY_INLINE_ARGS = 24 };
struct py_launch_args {
    struct gg_launch launch; /* py_launch_args_fill sets its arguments and memories */
    Py_ssize_t count;
    gg_stream *stream;    /* of the launch, borrowed; NULL: the current one */
    union py_slot *slots; /* values of at most 16 bytes */
    const void **arguments;
    size_t *sizes;
    gg_memory **memories; /* of arrays, which the caller of a launch holds, and those in retained */
    gg_memory **retained; /* a reference each: a Buffer can be closed meanwhile */
    size_t retained_count;
    Py_buffer *views; /* the memory of longer values */
    size_t view_count;
    PyObject **external; /* arrays over those of other libraries */
    size_t external_count;
    void *block; /* NULL: the inline members are enough */
    union py_slot {
        unsigned char bytes[16];
        uint64_t word;
        double number;
        void *pointer;
    } inline_slots[PY_INLINE_ARGS];
    const void *inline_arguments[PY_INLINE_ARGS];
    size_t inline_sizes[PY_INLINE_ARGS];
    gg_memory *inline_memories[PY_INLINE_ARGS], *inline_retained[PY_INLINE_ARGS];
};
int py_launch_args_fill(struct py_launch_args *launch_args, const struct py_kernel *kernel,
                        PyObject *const *args, Py_ssize_t count, gg_stream *stream);
void py_launch_args_release(struct py_launch_args *launch_args);

/* ctypes_kind.c: 1 for a value of ctypes, else 0, or -1; @p kind is NumPy's letter for a scalar, else 0. */
int py_ctypes_kind(PyObject *object, char *kind);

/* external_kernel_array.c: a GPUArray over another library's memory; @p stream, if any, waits for work that library
 * has pending. TypeError for host memory. */
PyObject *py_kernel_external_array(struct py_state *state, gg_device *device, gg_stream *stream,
                                   PyObject *object);

/* argument_types.c: RawArgument(bytes): bytes passed as they are; LocalMemory(nbytes): memory of each block. */
int py_argument_types_add(PyObject *module, struct py_state *state);
struct py_raw_argument {
    PyObject_HEAD PyObject *bytes;
};
struct py_local_memory {
    PyObject_HEAD size_t nbytes;
};

#endif
