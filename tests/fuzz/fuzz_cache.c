/* fuzz_cache.c: entries of the cache of compiled images, whose reader is Python.
 *
 * The lines of _cache.py that run are libFuzzer's coverage. json is C code without instrumentation. */
#include "python.h"

#include <frameobject.h>

#define LINES 4096
__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t lines[LINES];

static PyObject *load; /* of driver.py */

static int trace(PyObject *self, PyFrameObject *frame, int what, PyObject *argument)
{
    (void)self;
    (void)argument;
    if (what == PyTrace_LINE)
        lines[(unsigned)PyFrame_GetLineNumber(frame) % LINES]++;
    return 0;
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    fuzz_start_python();
    PyObject *path = PySys_GetObject("path"), *here = PyUnicode_FromString(FUZZ_SOURCE);
    FUZZ_PYTHON(path && here && !PyList_Insert(path, 0, here));
    Py_DECREF(here);
    PyObject *module = PyImport_ImportModule("cache_driver");
    FUZZ_PYTHON(module);
    load = PyObject_GetAttrString(module, "check");
    FUZZ_PYTHON(load);
    Py_DECREF(module);
    PyEval_SetTrace(trace, NULL);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PyObject *result = PyObject_CallFunction(load, "y#", (const char *)data, (Py_ssize_t)size);
    FUZZ_PYTHON(result);
    Py_DECREF(result);
    return 0;
}
