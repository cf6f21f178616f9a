/* foreign_names.h: attributes and arguments that users know from other libraries: the error names ours. */
#ifndef GPUGLUE_PY_FOREIGN_NAMES_H
#define GPUGLUE_PY_FOREIGN_NAMES_H

#include "base/py.h"

/* A row of a type's PyGetSetDef. Its getter raises an AttributeError, so hasattr() is False, and attributes that
 * exist cost nothing, as they would with a __getattr__. */
#define PY_FOREIGN(name, ours)                                                           \
    {                                                                                    \
        name, py_foreign_name, NULL, py_foreign_doc, (void *)(uintptr_t)(name "\0" ours) \
    }
PyObject *py_foreign_name(PyObject *self, void *closure);

/* A row of a type's PyMethodDef, for what other libraries call on the class: @p function calls py_foreign_call(). The class
 * has the name, then, but a call raises the AttributeError. */
#define PY_FOREIGN_CALL(name, function)                                                      \
    {                                                                                        \
        name, PY_METHOD(function), METH_VARARGS | METH_KEYWORDS | METH_CLASS, py_foreign_doc \
    }
extern const char py_foreign_doc[];
PyObject *py_foreign_call(PyObject *type, const char *name, const char *ours);

/* A row of the same type's PyMethodDef: dir() of an object lists none of them. */
#define PY_FOREIGN_DIR                                                                  \
    {                                                                                   \
        "__dir__", py_foreign_dir, METH_NOARGS, "__dir__($self)\n--\n\nThe attributes." \
    }
PyObject *py_foreign_dir(PyObject *self, PyObject *unused);

/* After a failed call: if @p kwargs has @p name, the TypeError names @p ours. */
void py_foreign_argument(PyObject *kwargs, const char *name, const char *ours);

#endif
