/* array.h: what the files about GPUArray share. */
#ifndef GPUGLUE_PY_ARRAY_H
#define GPUGLUE_PY_ARRAY_H

#include "layout.h"
#include "place.h"
#include "py.h"

static inline struct py_array *py_array_of(PyObject *self)
{
    return (struct py_array *)self;
}

/* array.c: a new, contiguous, uninitialised array. */
PyObject *py_array_make(struct py_state *state, const struct py_layout *layout,
                        const struct py_place *place);
/* An array over memory that is there; takes a reference to it. Writable, without a base. */
struct py_array *py_array_over(PyTypeObject *type, gg_memory *memory, size_t offset, PyObject *dtype,
                               int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides);
/* Another look at the same memory; offset in bytes from element 0. */
PyObject *py_array_view(struct py_array *of, Py_ssize_t offset, PyObject *dtype, int ndim,
                        const Py_ssize_t *shape, const Py_ssize_t *strides);
/* An uninitialised array in the shape of another, its axes in the same order in memory, without gaps. */
PyObject *py_array_make_like(struct py_state *state, const struct py_array *model, PyObject *dtype,
                             const struct py_place *place);
/* The axes, the one with the longest stride first; equal ones keep their order. */
void py_axes_by_stride(const Py_ssize_t *strides, int ndim, int *order);
/* Of a new array: its axes in memory in the order of other strides. */
void py_array_restride(struct py_array *array, const Py_ssize_t *like);
/* The layout of an array that is there, for another of the same kind: in C order, or in Fortran order
 * where it is contiguous in that only. */
void py_array_layout(const struct py_array *array, struct py_layout *layout);
/* Contiguous strides. An empty array is given those it would have with 1 for each 0, as in NumPy. */
void py_strides_contiguous(Py_ssize_t *strides, const Py_ssize_t *shape, int ndim,
                           Py_ssize_t itemsize, bool fortran);

/* array_new.c: GPUArray(...), to_gpu, empty, zeros, ones, full and their _like, arange */
PyObject *py_array_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);
extern PyMethodDef py_array_functions[];
/* A new array with the elements of an ndarray; takes over @p host, which may be NULL. */
PyObject *py_array_upload(struct py_state *state, PyObject *host, const struct py_place *place);
/* array_like.c: the _like functions */
extern PyMethodDef py_like_functions[];
/* What full() and full_like() do: a new array of one value. dtype NULL: that of the value. */
PyObject *py_array_full(struct py_state *state, struct py_layout *layout,
                        const struct py_place *place, PyObject *value);
PyObject *py_array_zeros(struct py_state *state, const struct py_layout *layout,
                         const struct py_place *place);

extern PyGetSetDef py_array_attributes[]; /* array_attributes.c */
extern PyMethodDef py_array_methods[];    /* array_methods.c: the table of those below */
int py_flags_add(PyObject *module, struct py_state *state); /* array_flags.c */
PyObject *py_array_flags(PyObject *self, void *closure);

/* array_item.c */
PyObject *py_array_item(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
int py_array_bool(PyObject *self);
PyObject *py_array_int(PyObject *self);
PyObject *py_array_float(PyObject *self);

/* array_index.c: basic indexing. A view that owns nothing new; -1 or NULL with an exception. */
PyObject *py_array_subscript(PyObject *self, PyObject *index);
PyObject *py_array_at(PyObject *self, Py_ssize_t position);
/* array_assign.c */
int py_array_assign_subscript(PyObject *self, PyObject *index, PyObject *value);

/* array_transfer.c: elements to and from the host, and copies of arrays */
PyObject *py_array_to_host(struct py_state *state, struct py_array *array, gg_stream *stream);
PyObject *py_array_copy_at(struct py_state *state, struct py_array *array,
                           const struct py_place *place);
/* Between arrays of one shape and dtype; stream NULL: the current one. */
int py_array_copy_into(struct py_state *state, struct py_array *to, struct py_array *from,
                       gg_stream *stream);
/* set(): from an ndarray of equal shape and dtype. */
int py_array_set_from(struct py_state *state, struct py_array *to, PyObject *source);
PyObject *py_array_copy_in_order(struct py_state *state, struct py_array *array, bool fortran);

/* array_refuse.c: gpuglue does no arithmetic */
PyObject *py_array_refuse_binary(PyObject *left, PyObject *right);
PyObject *py_array_refuse_power(PyObject *left, PyObject *right, PyObject *modulus);
PyObject *py_array_refuse_unary(PyObject *self);
PyObject *py_array_refuse_compare(PyObject *self, PyObject *other, int op);

/* array_export.c: the host's views of memory that it reaches */
int py_array_export(PyObject *self, Py_buffer *view, int flags);
void py_array_unexport(PyObject *self, Py_buffer *view);
PyObject *py_array_interface(PyObject *self, void *closure);
PyObject *py_is_pending(PyObject *module, PyObject *array); /* gpuglue._core._is_pending */

/* cuda_interface.c */
PyObject *py_array_cuda_interface(PyObject *self, void *closure);

extern PyMethodDef py_pickle_functions[];   /* array_pickle.c */
extern PyMethodDef py_protocol_functions[]; /* asarray.c: asarray, from_dlpack */
/* asarray.c: an array of another library, wrapped: 1 and a GPUArray, 2 and an ndarray where its memory is the
 * host's, 0 for anything else, -1 with an exception. */
int py_foreign_device_array(struct py_state *state, PyObject *object, PyObject **out);

/* ---- methods, each in the file that is named ---- */
#define PY_FASTCALL(name) \
    PyObject *name(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
/* array_transfer.c */
PY_FASTCALL(py_array_get);
PY_FASTCALL(py_array_set);
PY_FASTCALL(py_array_get_async);
PY_FASTCALL(py_array_set_async);
PY_FASTCALL(py_array_fill);
PY_FASTCALL(py_array_copy);
PyObject *py_array_tolist(PyObject *self, PyObject *unused);
/* array_convert.c */
PY_FASTCALL(py_array_astype);
PY_FASTCALL(py_array_to_device);
/* A copy on another device; stream: where it runs, of the array's own device. */
PyObject *py_array_bring(struct py_state *state, struct py_array *array, gg_device *device,
                         PyObject *stream);
/* array_shape.c */
PY_FASTCALL(py_array_reshape);
PY_FASTCALL(py_array_ravel);
PY_FASTCALL(py_array_flatten);
/* array_axes.c */
PyObject *py_array_permuted(struct py_array *array, const int *order);
PY_FASTCALL(py_array_squeeze);
PY_FASTCALL(py_array_transpose);
PyObject *py_array_transposed(PyObject *self, void *closure);
/* array_view.c */
PY_FASTCALL(py_array_view_as);
/* array_export.c */
PY_FASTCALL(py_array_array);
/* array_pickle.c */
PyObject *py_array_reduce(PyObject *self, PyObject *unused);
PyObject *py_array_copy_copy(PyObject *self, PyObject *unused);
PyObject *py_array_deepcopy(PyObject *self, PyObject *memo);
/* dlpack_export.c */
PY_FASTCALL(py_array_dlpack);
PyObject *py_array_dlpack_device(PyObject *self, PyObject *unused);

#endif
