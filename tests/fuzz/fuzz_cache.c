/* fuzz_cache.c: entries of the cache of compiled images, whose reader is Python.
 *
 * The lines of Python that run are libFuzzer's coverage, as features; its edges are those of this file, so run.py takes the lines
 * in their place. The scanner of json is C code without instrumentation. */
#include "python.h"

#include <frameobject.h>

#include <stdbool.h>

#define LINES 4096
__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t lines[LINES];
static bool ever[LINES];

static PyObject *load; /* of cache_driver.py */

static int trace(PyObject *self, PyFrameObject *frame, int what, PyObject *argument)
{
    (void)self;
    (void)argument;
    if (what == PyTrace_LINE) {
        const unsigned line = (unsigned)PyFrame_GetLineNumber(frame) % LINES;
        lines[line]++; /* libFuzzer sets it to 0 for each input */
        ever[line] = true;
    }
    return 0;
}

static void print_lines(void)
{
    int count = 0;
    for (size_t i = 0; i < LINES; i++)
        count += ever[i];
    fprintf(stderr, "python: %d lines\n", count);
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
    atexit(print_lines);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PyObject *result = PyObject_CallFunction(load, "y#", (const char *)data, (Py_ssize_t)size);
    FUZZ_PYTHON(result);
    Py_DECREF(result);
    return 0;
}
