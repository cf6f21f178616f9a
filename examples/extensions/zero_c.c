/* zero_c.c: an extension in C, for the stable ABI. */
#include "zero.h"

static PyObject *shape_of(const struct gg_array_view *view)
{
    PyObject *shape = PyTuple_New(view->ndim);
    for (int32_t i = 0; shape && i < view->ndim; i++)
        if (PyTuple_SetItem(shape, i, PyLong_FromLongLong(view->shape[i])))
            Py_CLEAR(shape);
    return shape;
}

/* zero(array) → (address, shape, code, bits) */
static PyObject *zero(PyObject *module, PyObject *object)
{
    struct gg_array_view view = GG_ARRAY_VIEW;
    PyObject *answer, *shape;
    PyThreadState *thread;
    gg_status status;
    (void)module;
    if (zero_open(object, &view))
        return NULL;
    shape = shape_of(&view);
    answer = shape ? Py_BuildValue("(KNii)", (unsigned long long)(uintptr_t)view.data, shape,
                                   (int)view.code, (int)view.bits)
                   : NULL;
    thread = PyEval_SaveThread();
    status = zero_run(&view);
    PyEval_RestoreThread(thread);
    if (!status)
        return answer;
    Py_XDECREF(answer);
    return PyErr_Format(PyExc_RuntimeError, "gg_fill failed with status %d", (int)status);
}

static PyMethodDef methods[] = {
    {"zero", zero, METH_O, "Set an array of any library to zero, in place."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "zero_c", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_zero_c(void)
{
    return PyModule_Create(&definition);
}
