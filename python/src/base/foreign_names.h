/* foreign_names.h: attributes and arguments that users know from other libraries: the error names ours. */
#ifndef GPUGLUE_PY_FOREIGN_NAMES_H
#define GPUGLUE_PY_FOREIGN_NAMES_H

#include "base/py.h"

/* A row of a type's PyGetSetDef. Its getter raises an AttributeError, so hasattr() is False, and attributes that
 * exist cost nothing, as they would with a __getattr__. */
#define PY_FOREIGN(name, ours)                                                \
    {                                                                         \
        name, py_foreign_name, NULL, "Of other libraries: not an attribute.", \
            (void *)(uintptr_t)(name "\0" ours)                               \
    }
PyObject *py_foreign_name(PyObject *self, void *closure);

/* A row of the same type's PyMethodDef: dir() lists none of them. */
#define PY_FOREIGN_DIR                                                                  \
    {                                                                                   \
        "__dir__", py_foreign_dir, METH_NOARGS, "__dir__($self)\n--\n\nThe attributes." \
    }
PyObject *py_foreign_dir(PyObject *self, PyObject *unused);

/* After a failed call: if @p kwargs has @p name, the TypeError names @p ours. */
void py_foreign_argument(PyObject *kwargs, const char *name, const char *ours);

#endif
