/* pointer.h: addresses, as the drivers in use know them. */
#ifndef GPUGLUE_PY_POINTER_H
#define GPUGLUE_PY_POINTER_H

#include "base/arguments.h"

int py_pointer_add(PyObject *module, struct py_state *state); /* pointer_info */
const char *py_kind_name(enum gg_memory_kind kind);           /* "device" */

#define PY_ADDRESS_SIZE 20
void py_format_address(char text[PY_ADDRESS_SIZE], const void *pointer); /* "0x7f00" */

/* A ptr argument. */
int py_address_arg(struct py_state *state, PyObject *object, void **out);
/* What the caller claims of an address. */
struct py_pointer {
    void *pointer;
    size_t nbytes;
    gg_device *wanted;  /* the device it must belong to; NULL: any */
    gg_device *assumed; /* its device where no driver in use knows it; NULL: that is an error */
};
/* Query the drivers in use, whose results must agree. -1 with an InvalidArgumentError. */
int py_pointer_locate(struct py_state *state, const struct py_pointer *claim, gg_device **device,
                      enum gg_memory_kind *kind);
/* Check that nbytes bytes at @p pointer are memory of @p device, as far as its driver knows. -1 with an exception. */
int py_pointer_check(struct py_state *state, gg_device *device, void *pointer, size_t nbytes);

#endif
