/* launch_plan.h: how each argument of a kernel with declared types is packed, decided when the kernel is made. */
#ifndef GPUGLUE_PY_LAUNCH_PLAN_H
#define GPUGLUE_PY_LAUNCH_PLAN_H

#include "base/py.h"

/* One parameter. A number of the usual Python type that fits is stored as it is. Any other object takes the general
 * way of launch_args.c, which also raises the errors. */
struct py_plan {
    enum py_plan_number {
        PY_PLAN_GENERAL,
        PY_PLAN_INTEGER,
        PY_PLAN_FLOAT32,
        PY_PLAN_FLOAT64
    } number;
    bool address;    /* an array may be given: its address is stored */
    long long least; /* the integers that fit: from this one on, and so many more */
    unsigned long long more;
};

/* One for each of @p count > 0 parameters, then their sizes in bytes, from PyMem_Malloc; NULL with an exception. */
struct py_plan *py_plan_make(const struct gg_parameter *parameters, int32_t count,
                             const size_t **sizes);

#endif
