/* array.h: GPUArray. */
#ifndef GPUGLUE_PY_ARRAY_H
#define GPUGLUE_PY_ARRAY_H

#include "copy/array_object.h"
#include "memory/alloc_target.h"
#include "numpy/bridge.h"

/* ---- array.c: new arrays ---- */

/* A contiguous, uninitialised array. */
PyObject *py_array_empty(struct py_state *state, const struct py_layout *layout,
                         const struct py_alloc_target *target);
/* The same with the shape, dtype and order of a contiguous ndarray. */
PyObject *py_array_empty_as(struct py_state *state, const struct numpy_desc *host,
                            const struct py_alloc_target *target);
/* An uninitialised array with the shape of another, its axes in the same order in memory, without gaps. */
PyObject *py_array_empty_like(struct py_state *state, const struct py_array *model, PyObject *dtype,
                              const struct py_alloc_target *target);
/* An array over existing memory, of which it takes a reference. Writable, without a base. */
struct py_array *py_array_wrap(PyTypeObject *type, gg_memory *memory, size_t offset, PyObject *dtype,
                               int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides);
/* A view of the same memory; offset in bytes from element 0. */
PyObject *py_array_view(struct py_array *of, Py_ssize_t offset, PyObject *dtype, int ndim,
                        const Py_ssize_t *shape, const Py_ssize_t *strides);
/* The axes, longest stride first; equal ones keep their order. */
void py_axes_by_stride(const Py_ssize_t *strides, int ndim, int *order);
/* Of a new array: its axes in memory in the order of other strides. */
void py_array_restride(struct py_array *array, const Py_ssize_t *like);
/* The layout of an array, for another of @p dtype: in C order, or in Fortran order where it is contiguous in that
 * only. */
void py_array_layout(const struct py_array *array, PyObject *dtype, struct py_layout *layout);
/* Contiguous strides. As in NumPy, an empty array has those it would have with 1 for each 0. */
void py_strides_contiguous(Py_ssize_t *strides, const Py_ssize_t *shape, int ndim,
                           Py_ssize_t itemsize, bool fortran);
/* The device of its memory as a target, on the current stream. */
struct py_alloc_target py_array_target(const struct py_array *array);

/* ---- new.c and like.c: constructors ---- */

PyObject *py_array_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);
extern PyMethodDef py_array_functions[]; /* to_gpu, empty, zeros, … */
extern PyMethodDef py_like_functions[];  /* empty_like, … */
/* A new array with the elements of an ndarray; takes over @p host, which may be NULL. */
PyObject *py_array_upload(struct py_state *state, PyObject *host,
                          const struct py_alloc_target *target);
/* A new array with uninitialised elements, zeros, ones or one value. */
enum py_array_content { PY_UNINITIALISED, PY_ZEROS, PY_ONES, PY_VALUE };
PyObject *py_array_create(struct py_state *state, const struct py_layout *layout,
                          const struct py_alloc_target *target, enum py_array_content content,
                          PyObject *value);

/* ---- transfer.c: elements to and from the host, and copies of arrays ---- */

PyObject *py_array_to_host(struct py_state *state, struct py_array *array, gg_stream *stream);
PyObject *py_array_copy_at(struct py_state *state, struct py_array *array,
                           const struct py_alloc_target *target);
/* Copy from a GPUArray, an ndarray or another operand of equal shape and dtype; stream NULL: the current one. */
int py_array_copy_from(struct py_state *state, struct py_array *to, PyObject *from,
                       gg_stream *stream);
PyObject *py_array_copy_in_order(struct py_state *state, struct py_array *array, bool fortran);
PY_FASTCALL(py_array_get);
PY_FASTCALL(py_array_set);
PY_FASTCALL(py_array_get_async);
PY_FASTCALL(py_array_set_async);
PY_FASTCALL(py_array_fill);
PY_FASTCALL(py_array_copy);
PyObject *py_array_tolist(PyObject *self, PyObject *unused);

/* ---- convert.c: another dtype or device ---- */

/* A copy on another device; stream: where it runs, of the array's own device. */
PyObject *py_array_copy_to_device(struct py_state *state, struct py_array *array, gg_device *device,
                                  PyObject *stream);
PY_FASTCALL(py_array_astype);
PY_FASTCALL(py_array_to_device);

/* ---- views: index.c, shape.c, axes.c, view.c ---- */

/* Basic indexing. -1 or NULL with an exception. */
PyObject *py_array_subscript(PyObject *self, PyObject *index);
PyObject *py_array_getitem(PyObject *self, Py_ssize_t position);
PY_FASTCALL(py_array_reshape);
PY_FASTCALL(py_array_ravel);
PY_FASTCALL(py_array_flatten);
PyObject *py_array_permuted(struct py_array *array, const int *order);
PY_FASTCALL(py_array_squeeze);
PY_FASTCALL(py_array_transpose);
PyObject *py_array_transposed(PyObject *self, void *closure);
PY_FASTCALL(py_array_view_as);

/* ---- item.c: single elements ---- */

PyObject *py_array_item(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
int py_array_bool(PyObject *self);
PyObject *py_array_int(PyObject *self);
PyObject *py_array_float(PyObject *self);
PyObject *py_array_complex(PyObject *self, PyObject *unused);

/* ---- export.c: host views of memory that the host reaches ---- */

int py_array_export(PyObject *self, Py_buffer *view, int flags);
PyObject *py_array_interface(PyObject *self, void *closure);
PyObject *py_array_is_pending(PyObject *module, PyObject *array); /* gpuglue._core._is_pending */
PyObject *py_array_wait(PyObject *module, PyObject *array);       /* gpuglue._core._wait */
PY_FASTCALL(py_array_array);

/* ---- flags.c, pickle.c, operators.c ---- */

int py_flags_add(PyObject *module, struct py_state *state);
PyObject *py_array_flags(PyObject *self, void *closure);
extern PyMethodDef py_pickle_functions[];
extern PyMethodDef py_collective_functions[]; /* collective.c: _comm_queue() */
PyObject *py_array_reduce(PyObject *self, PyObject *unused);
PyObject *py_array_copy_copy(PyObject *self, PyObject *unused);
PyObject *py_array_deepcopy(PyObject *self, PyObject *memo);
PyObject *py_array_binary_operator(PyObject *left, PyObject *right);
PyObject *py_array_power_operator(PyObject *left, PyObject *right, PyObject *modulus);
PyObject *py_array_unary_operator(PyObject *self);
PyObject *py_array_compare(PyObject *self, PyObject *other, int op);

#endif
