/* ctypes_kind.c: whether an object is a ctypes value, and of which kind, without importing ctypes. */
#include "kernel/launch_args.h"

#include <string.h>

/* NumPy's letter for a ctypes type code; an address is an unsigned integer. */
static char kind_of_code(Py_UCS4 code)
{
    if (code == 'f' || code == 'd' || code == 'g')
        return 'f';
    return code && code < 128 && strchr("bhilq", (int)code) ? 'i' : 'u';
}

static int kind_of_scalar(PyObject *object, char *kind)
{
    PyObject *code = PyObject_GetAttrString(object, "_type_");
    if (!code)
        return -1;
    const bool known = PyUnicode_Check(code) && PyUnicode_GetLength(code) == 1;
    *kind = known ? kind_of_code(PyUnicode_ReadChar(code, 0)) : 'u';
    Py_DECREF(code);
    return 1;
}

int py_ctypes_kind(PyObject *object, char *kind)
{
    PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), "_ctypes"); /* borrowed */
    static const char *const names[] = {"_SimpleCData", "Structure", "Union", "Array"};
    int found = 0;
    *kind = 0;
    for (size_t i = 0; module && i < sizeof names / sizeof names[0] && !found; i++) {
        PyObject *type = PyObject_GetAttrString(module, names[i]);
        if (!type)
            return -1;
        found = PyObject_IsInstance(object, type);
        Py_DECREF(type);
        if (found > 0 && !i)
            return kind_of_scalar(object, kind);
    }
    return found;
}
