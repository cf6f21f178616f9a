/* foreign_names.c: attributes and arguments that users know from other libraries. */
#include "base/foreign_names.h"

#include <string.h>

const char py_foreign_doc[] = "Of other libraries: not an attribute.";

/* The type is named as in Python's own messages. It has no subclasses. */
PyObject *py_foreign_name(PyObject *self, void *closure)
{
    const char *name = closure, *ours = name + strlen(name) + 1;
    PyObject *type = PyType_GetName(Py_TYPE(self));
    if (type)
        PyErr_Format(PyExc_AttributeError, "'gpuglue.%U' object has no attribute '%s': use %s",
                     type, name, ours);
    Py_XDECREF(type);
    return NULL;
}

PyObject *py_foreign_call(PyObject *type, const char *name, const char *ours)
{
    PyObject *own = PyType_GetName((PyTypeObject *)type);
    if (own)
        PyErr_Format(PyExc_AttributeError, "type object 'gpuglue.%U' has no attribute '%s': use %s",
                     own, name, ours);
    Py_XDECREF(own);
    return NULL;
}

static int foreign_remove(PyObject *names, const char *name)
{
    PyObject *removed = PyObject_CallMethod(names, "remove", "s", name);
    if (!removed && PyErr_ExceptionMatches(PyExc_ValueError)) {
        PyErr_Clear();
        return 0;
    }
    Py_XDECREF(removed);
    return removed ? 0 : -1;
}

static int foreign_remove_all(PyObject *self, PyObject *names)
{
    PyTypeObject *type = Py_TYPE(self);
    for (; type; type = PyType_GetSlot(type, Py_tp_base)) {
        if (!(PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE))
            return 0;
        const PyGetSetDef *row = PyType_GetSlot(type, Py_tp_getset);
        for (; row && row->name; row++) /* unless a subclass defines the name, it has no value */
            if (row->get == py_foreign_name && !PyObject_HasAttrString(self, row->name) &&
                foreign_remove(names, row->name))
                return -1;
        const PyMethodDef *call = PyType_GetSlot(type, Py_tp_methods);
        for (; call && call->ml_name; call++)
            if (call->ml_doc == py_foreign_doc && foreign_remove(names, call->ml_name))
                return -1;
    }
    return 0;
}

PyObject *py_foreign_dir(PyObject *self, PyObject *Py_UNUSED(unused))
{
    PyObject *base = (PyObject *)&PyBaseObject_Type;
    PyObject *all = PyObject_CallMethod(base, "__dir__", "O", self);
    PyObject *names = all ? PySequence_List(all) : NULL;
    Py_XDECREF(all);
    if (names && foreign_remove_all(self, names))
        Py_CLEAR(names);
    return names;
}

void py_foreign_argument(PyObject *kwargs, const char *name, const char *ours)
{
    if (!kwargs || !PyDict_GetItemString(kwargs, name) || !PyErr_ExceptionMatches(PyExc_TypeError))
        return;
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "there is no argument '%s': use %s", name, ours);
}
