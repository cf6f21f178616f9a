/* type.c: types of the module: adding them, and freeing their objects. */
#include "base/py.h"

int py_type_add(PyObject *module, const char *name, size_t size, unsigned long flags,
                PyType_Slot *slots, PyTypeObject **out)
{
    PyType_Spec spec = {.name = name,
                        .basicsize = (int)size,
                        .flags = (unsigned)(Py_TPFLAGS_DEFAULT | flags),
                        .slots = slots};
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    if (!type)
        return -1;
    *out = (PyTypeObject *)type;
    return PyModule_AddType(module, *out);
}

void py_object_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type); /* an instance of a heap type owns a reference to it */
}

int py_structseq_add(PyObject *module, const char *name, PyStructSequence_Desc *desc,
                     PyTypeObject **out)
{
    *out = PyStructSequence_NewType(desc);
    return *out ? PyModule_AddObjectRef(module, name, (PyObject *)*out) : -1;
}

PyObject *py_structseq_new(PyTypeObject *type, PyObject *const *values, Py_ssize_t count)
{
    PyObject *result = PyStructSequence_New(type);
    bool failed = !result;
    for (Py_ssize_t i = 0; i < count; i++) {
        failed |= !values[i];
        if (result)
            PyStructSequence_SetItem(result, i, values[i]); /* takes over the reference */
        else
            Py_XDECREF(values[i]);
    }
    if (failed)
        Py_CLEAR(result);
    return result;
}
