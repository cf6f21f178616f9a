/* module_compiled.c: modules that the driver compiles: what _spirv.py calls. */
#include "kernel/module.h"
#include "runtime/device.h"

/* The buffers of a list of inputs, the image first, and the options that they are loaded with. */
struct compiled {
    Py_buffer *views;
    Py_ssize_t count; /* of views that are open */
    Py_buffer binary;
    struct gg_module_input *inputs;
    struct gg_module_constant *constants;
    struct gg_module_options options;
};

static void compiled_free(struct compiled *compiled)
{
    for (Py_ssize_t i = 0; i < compiled->count; i++)
        PyBuffer_Release(&compiled->views[i]);
    if (compiled->binary.obj)
        PyBuffer_Release(&compiled->binary);
    free(compiled->views);
    free(compiled->inputs);
    free(compiled->constants);
}

static int compiled_read_inputs(struct compiled *compiled, PyObject *inputs)
{
    const Py_ssize_t count = PyList_Size(inputs);
    if (count < 1)
        return PY_FAIL(PyExc_ValueError, "_load_spirv: expected one input or more");
    compiled->views = calloc((size_t)count + 1, sizeof *compiled->views);
    compiled->inputs = calloc((size_t)count + 1, sizeof *compiled->inputs);
    if (!compiled->views || !compiled->inputs)
        return PY_NO_MEMORY();
    for (; compiled->count < count; compiled->count++) {
        Py_buffer *view = &compiled->views[compiled->count];
        if (PyObject_GetBuffer(PyList_GetItem(inputs, compiled->count), view, PyBUF_SIMPLE))
            return -1;
        if (compiled->count)
            compiled->inputs[compiled->count - 1] =
                (struct gg_module_input){view->buf, (size_t)view->len};
    }
    compiled->options.inputs = compiled->inputs;
    compiled->options.input_count = (size_t)count - 1;
    return 0;
}

static int compiled_read_constants(struct compiled *compiled, PyObject *values)
{
    const Py_ssize_t count = PyTuple_Size(values);
    compiled->constants = calloc((size_t)count + 1, sizeof *compiled->constants);
    if (!compiled->constants)
        return PY_NO_MEMORY();
    for (Py_ssize_t i = 0; i < count; i++) {
        unsigned long long value;
        if (!PyArg_ParseTuple(PyTuple_GetItem(values, i), "IK", &compiled->constants[i].id, &value))
            return -1;
        compiled->constants[i].value = value;
    }
    compiled->options.constants = compiled->constants;
    compiled->options.constant_count = (uint32_t)count;
    return 0;
}

static PyObject *compiled_load(struct py_state *state, gg_device *device, struct compiled *compiled)
{
    gg_module *module = NULL;
    gg_status status;
    if (compiled->binary.obj) {
        compiled->options.binary = compiled->binary.buf;
        compiled->options.binary_size = (size_t)compiled->binary.len;
    }
    PY_WITHOUT_GIL(status = gg_module_load_with(device, compiled->views[0].buf,
                                                (size_t)compiled->views[0].len, &compiled->options,
                                                &module));
    return status ? py_raise(state, status) : py_module_wrap(state, module);
}

PyDoc_STRVAR(load_doc, "_load_spirv(device, inputs, flags, constants, binary, /)\n--\n\n"
                       "A Module of a list of bytes, a str or None, a tuple of (number, bits), and "
                       "bytes of _module_binary or None.");

static PyObject *load_spirv(PyObject *module, PyObject *args)
{
    struct py_state *state = PyModule_GetState(module);
    struct compiled compiled = {.options = {.struct_size = sizeof compiled.options}};
    PyObject *where, *inputs, *values, *binary, *self = NULL;
    gg_device *device;
    if (!PyArg_ParseTuple(args, "OO!zO!O", &where, &PyList_Type, &inputs, &compiled.options.flags,
                          &PyTuple_Type, &values, &binary) ||
        py_device_arg(state, where, &device))
        return NULL;
    if (!compiled_read_inputs(&compiled, inputs) && !compiled_read_constants(&compiled, values) &&
        (binary == Py_None || !PyObject_GetBuffer(binary, &compiled.binary, PyBUF_SIMPLE)))
        self = compiled_load(state, device, &compiled);
    compiled_free(&compiled);
    return self;
}

PyDoc_STRVAR(binary_doc, "_module_binary(module, /)\n--\n\n"
                         "The machine code of a Module that the driver compiled.");

static PyObject *module_binary(PyObject *module, PyObject *object)
{
    struct py_state *state = PyModule_GetState(module);
    size_t size = 0;
    gg_module *of =
        Py_TYPE(object) == state->module_type ? ((struct py_module *)object)->module : NULL;
    if (!of) {
        PyErr_SetString(PyExc_TypeError, "_module_binary: expected an open Module");
        return NULL;
    }
    gg_status status = gg_module_binary(of, NULL, &size);
    PyObject *bytes = status ? NULL : PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (bytes)
        status = gg_module_binary(of, PyBytes_AsString(bytes), &size);
    if (!status)
        return bytes;
    Py_XDECREF(bytes);
    return py_raise(state, status);
}

PyMethodDef py_module_functions[] = {
    {"_load_spirv", load_spirv, METH_VARARGS, load_doc},
    {"_module_binary", module_binary, METH_O, binary_doc},
    {NULL, NULL, 0, NULL},
};
