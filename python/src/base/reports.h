/* reports.h: what the core reports of each backend, as Python objects. */
#ifndef GPUGLUE_PY_REPORTS_H
#define GPUGLUE_PY_REPORTS_H

#include "base/py.h"

int py_reports_add(PyObject *module, struct py_state *state); /* BackendInfo, _library */
/* A tuple of BackendInfo. */
PyObject *py_reports_wrap(struct py_state *state, const struct gg_reports *reports);
PyObject *py_str(const char *bytes); /* a str; '' for NULL */

#endif
