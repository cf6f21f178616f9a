/* fields.c: which bytes of an element the fields of its dtype cover. */
#define NO_IMPORT_ARRAY /* numpy/bridge.c loads it */
#include "numpy/bridge.h"
#include "numpy/types.h"

#include <stdlib.h>

static void fields_mark(PyArray_Descr *descr, char *covered)
{
    PyObject *names = PyDataType_NAMES(descr), *fields = PyDataType_FIELDS(descr);
    if (PyDataType_HASSUBARRAY(descr)) {
        PyArray_Descr *base = PyDataType_SUBARRAY(descr)->base;
        const Py_ssize_t size = PyDataType_ELSIZE(base);
        for (Py_ssize_t at = 0; size && at < PyDataType_ELSIZE(descr); at += size)
            fields_mark(base, covered + at);
        return;
    }
    if (!PyDataType_HASFIELDS(descr)) {
        memset(covered, 1, (size_t)PyDataType_ELSIZE(descr));
        return;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(names); i++) {
        PyObject *field = PyDict_GetItem(fields, PyTuple_GetItem(names, i)); /* dtype, offset */
        fields_mark(as_descr(PyTuple_GetItem(field, 0)),
                    covered + PyLong_AsSsize_t(PyTuple_GetItem(field, 1)));
    }
}

/* The runs of covered bytes; @p runs NULL: only their number. */
static int fields_collect(const char *covered, Py_ssize_t size, struct numpy_run *runs)
{
    int count = 0;
    for (Py_ssize_t at = 0; at < size; at++) {
        const Py_ssize_t first = at;
        while (at < size && covered[at])
            at++;
        if (at > first && runs)
            runs[count] = (struct numpy_run){first, at - first};
        count += at > first;
    }
    return count;
}

int numpy_field_runs(PyObject *dtype, struct numpy_run **out, int *count)
{
    const Py_ssize_t size = numpy_itemsize(dtype);
    char *covered = NULL;
    *out = NULL;
    if (!numpy_has_fields(dtype) || !size)
        return 0;
    covered = calloc(1, (size_t)size);
    if (!covered)
        return PY_NO_MEMORY();
    fields_mark(as_descr(dtype), covered);
    *count = fields_collect(covered, size, NULL);
    if (!memchr(covered, 0, (size_t)size)) {
        free(covered);
        return 0;
    }
    *out = malloc(((size_t)*count + 1) * sizeof **out);
    if (*out)
        fields_collect(covered, size, *out);
    free(covered);
    return *out ? 0 : PY_NO_MEMORY();
}
