/* zero_swig.i: the same with SWIG: a typemap converts an array of any library to a view. */
%module zero_swig
%{
#include "zero.h"

static unsigned long long zero(struct gg_array_view *view, int *code, int *bits)
{
    unsigned long long address = (unsigned long long)(uintptr_t)view->data;
    gg_status status;
    *code = view->code;
    *bits = view->bits;
    Py_BEGIN_ALLOW_THREADS
    status = zero_run(view);
    Py_END_ALLOW_THREADS
    if (status)
        PyErr_Format(PyExc_RuntimeError, "gg_fill failed with status %d", (int)status);
    return address;
}
%}

%typemap(in) struct gg_array_view *(struct gg_array_view view = GG_ARRAY_VIEW) {
    if (zero_open($input, &view))
        SWIG_fail;
    $1 = &view;
}
/* Does nothing if zero_run has released the view already. */
%typemap(freearg) struct gg_array_view * {
    if ($1)
        gg_array_view_release($1);
}
%apply int *OUTPUT { int *code, int *bits };
%include <typemaps.i>
%apply int *OUTPUT { int *code, int *bits };

/* zero() reports failures as Python exceptions. */
%exception zero {
    $action
    if (PyErr_Occurred())
        SWIG_fail;
}

unsigned long long zero(struct gg_array_view *view, int *code, int *bits);
