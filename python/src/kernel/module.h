/* module.h: Module, loaded device code, and images. */
#ifndef GPUGLUE_PY_MODULE_H
#define GPUGLUE_PY_MODULE_H

#include "base/arguments.h"

struct py_module {
    PyObject_HEAD gg_module *module; /* NULL: closed */
    PyObject *names;                 /* {expression: name} of a compiled image, or NULL */
    PyObject *weakrefs;
};

int py_module_add(PyObject *module, struct py_state *state);
extern PyMethodDef py_image_functions[];  /* _read_image, _image_bytes */
extern PyMethodDef py_module_functions[]; /* of _spirv.py */
/* A Module of a loaded one, whose reference it takes over. */
PyObject *py_module_wrap(struct py_state *state, gg_module *module);
/* The contents of a path, or the object itself where it has the buffer protocol; a new reference. */
PyObject *py_image_bytes(struct py_state *state, PyObject *image);

#endif
