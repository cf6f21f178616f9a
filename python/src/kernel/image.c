/* image.c: device code in memory or in a file, read without a device. */
#include "kernel/kernel.h"
#include "kernel/module.h"

/* No path has a line break or a brace in practice, but each source and each PTX has. */
static bool image_is_text(PyObject *image)
{
    Py_ssize_t length = PyUnicode_Check(image) ? PyUnicode_GetLength(image) : 0;
    return PyUnicode_Check(image) && (PyUnicode_FindChar(image, '\n', 0, length, 1) >= 0 ||
                                      PyUnicode_FindChar(image, '{', 0, length, 1) >= 0);
}

PyObject *py_image_bytes(struct py_state *state, PyObject *image)
{
    if (PyObject_CheckBuffer(image))
        return Py_NewRef(image);
    if (image_is_text(image))
        return py_invalid(
            state,
            "an image is compiled code as bytes or the path of a file, but this str is a text: "
            "compile a source first, Module(gpuglue.compile(source)); PTX must be bytes, "
            "Module(text.encode())");
    PyObject *io = PyImport_ImportModule("io"), *file = NULL, *bytes = NULL;
    PyObject *path = io ? PyOS_FSPath(image) : NULL;
    if (!path && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "an image must be bytes or the path of a file, got %R",
                     Py_TYPE(image));
    }
    if (path)
        file = PyObject_CallMethod(io, "open", "Os", path, "rb");
    if (file) {
        PyObject *closed;
        bytes = PyObject_CallMethod(file, "read", NULL);
        closed = PyObject_CallMethod(file, "close", NULL);
        if (!closed)
            Py_CLEAR(bytes);
        Py_XDECREF(closed);
    }
    Py_XDECREF(file);
    Py_XDECREF(path);
    Py_XDECREF(io);
    return bytes;
}

static PyObject *image_kernels(const struct gg_image *image)
{
    PyObject *all = PyDict_New();
    for (size_t i = 0; all && i < image->kernel_count; i++) {
        const struct gg_image_kernel *kernel = gg_image_kernel_at(image, i);
        PyObject *name =
            PyUnicode_DecodeUTF8(kernel->name, (Py_ssize_t)strlen(kernel->name), "replace");
        PyObject *parameters =
            name ? py_kernel_parameters(kernel->parameters, kernel->parameter_count) : NULL;
        if (!parameters || PyDict_SetItem(all, name, parameters))
            Py_CLEAR(all);
        Py_XDECREF(parameters);
        Py_XDECREF(name);
    }
    return all;
}

static const char *constant_kind(const struct gg_image_constant *constant)
{
    if (constant->kind == GG_PARAMETER_UNSIGNED)
        return "bool";
    return constant->kind == GG_PARAMETER_FLOAT ? "float" : "int";
}

/* {number: (kind, bytes, value)} */
static PyObject *image_constants(const struct gg_image *image)
{
    PyObject *all = PyDict_New();
    for (size_t i = 0; all && i < image->constant_count; i++) {
        const struct gg_image_constant *constant = &image->constants[i];
        PyObject *number = PyLong_FromUnsignedLong(constant->id);
        PyObject *facts = Py_BuildValue("(sIK)", constant_kind(constant), constant->size,
                                        (unsigned long long)constant->value);
        if (!number || !facts || PyDict_SetItem(all, number, facts))
            Py_CLEAR(all);
        Py_XDECREF(number);
        Py_XDECREF(facts);
    }
    return all;
}

PyDoc_STRVAR(image_doc,
             "_read_image(image, /)\n--\n\n"
             "(format, arch, {kernel: parameters}, {number of a specialisation constant: "
             "(kind, bytes, value)}) of bytes or of a file.");
PyDoc_STRVAR(bytes_doc, "_image_bytes(image, /)\n--\n\n"
                        "The contents of a path, or the object itself.");

static PyObject *image_bytes(PyObject *module, PyObject *object)
{
    return py_image_bytes(PyModule_GetState(module), object);
}

static PyObject *image_read(PyObject *module, PyObject *object)
{
    struct py_state *state = PyModule_GetState(module);
    struct gg_image *image = NULL;
    Py_buffer view;
    PyObject *bytes = py_image_bytes(state, object);
    if (!bytes)
        return NULL;
    if (PyObject_GetBuffer(bytes, &view, PyBUF_SIMPLE)) {
        Py_DECREF(bytes);
        return NULL;
    }
    gg_status status = gg_image_read(view.buf, (size_t)view.len, &image);
    PyBuffer_Release(&view);
    Py_DECREF(bytes);
    if (status)
        return py_raise(state, status);
    PyObject *kernels = image_kernels(image);
    PyObject *constants = kernels ? image_constants(image) : NULL;
    PyObject *result =
        constants ? Py_BuildValue("(ssOO)", image->word, image->arch, kernels, constants) : NULL;
    Py_XDECREF(kernels);
    Py_XDECREF(constants);
    gg_image_free(image);
    return result;
}

PyMethodDef py_image_functions[] = {
    {"_read_image", image_read, METH_O, image_doc},
    {"_image_bytes", image_bytes, METH_O, bytes_doc},
    {NULL, NULL, 0, NULL},
};
