/* python.h: a Python interpreter in a fuzzer. */
#ifndef GPUGLUE_FUZZ_PYTHON_H
#define GPUGLUE_FUZZ_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "fuzz.h"

/* An error in the fuzzer itself. */
#define FUZZ_PYTHON(value)                                              \
    do {                                                                \
        if (!(value)) {                                                 \
            PyErr_Print();                                              \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #value); \
            abort();                                                    \
        }                                                               \
    } while (0)

/* The interpreter that GPUGLUE_PYTHON names, so that its packages are found. */
static inline void fuzz_start_python(void)
{
    PyConfig config;
    const char *program = getenv("GPUGLUE_PYTHON");
    PyConfig_InitPythonConfig(&config);
    config.install_signal_handlers = 0;
    if (program)
        FUZZ_CHECK(
            !PyStatus_Exception(PyConfig_SetBytesString(&config, &config.executable, program)));
    FUZZ_CHECK(!PyStatus_Exception(Py_InitializeFromConfig(&config)));
    PyConfig_Clear(&config);
}

#endif
