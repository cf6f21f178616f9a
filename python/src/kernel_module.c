/* kernel_module.c: Module: device code that is loaded; and what an image says of itself without a device. */
#include "kernel.h"
#include "memory.h"

#include <structmember.h>

static struct py_module *as_module(PyObject *self)
{
    return (struct py_module *)self;
}

static gg_module *open_module(PyObject *self)
{
    gg_module *module = as_module(self)->module;
    if (!module)
        py_closed(py_state_of(self), "Module");
    return module;
}

/* ---- images ---- */

/* A path's contents, or the object itself: what PyObject_GetBuffer takes; a new reference. */
static PyObject *image_bytes(PyObject *image)
{
    if (PyObject_CheckBuffer(image))
        return Py_NewRef(image);
    PyObject *io = PyImport_ImportModule("io"), *file = NULL, *bytes = NULL;
    PyObject *path = io ? PyOS_FSPath(image) : NULL;
    if (!path && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "an image is bytes or the path of a file, got %R",
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

static PyObject *kernels_of(const struct gg_image *image)
{
    PyObject *all = PyDict_New();
    for (size_t i = 0; all && i < image->kernel_count; i++) {
        const struct gg_image_kernel *kernel = &image->kernels[i];
        PyObject *name =
            PyUnicode_DecodeUTF8(kernel->name, (Py_ssize_t)strlen(kernel->name), "replace");
        PyObject *parameters =
            name ? py_parameters(kernel->parameters, kernel->parameter_count) : NULL;
        if (!parameters || PyDict_SetItem(all, name, parameters))
            Py_CLEAR(all);
        Py_XDECREF(parameters);
        Py_XDECREF(name);
    }
    return all;
}

PyDoc_STRVAR(image_doc, "_read_image(image, /)\n--\n\n"
                        "(format, arch, {kernel: parameters}) of bytes or of a file.");

static PyObject *read_image(PyObject *module, PyObject *object)
{
    struct py_state *state = PyModule_GetState(module);
    struct gg_image *image = NULL;
    Py_buffer view;
    PyObject *bytes = image_bytes(object);
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
    PyObject *kernels = kernels_of(image);
    PyObject *result = kernels ? Py_BuildValue("(ssN)", image->word, image->arch, kernels) : NULL;
    gg_image_free(image);
    return result;
}

/* ---- Module ---- */

PyDoc_STRVAR(
    module_doc,
    "Module(image, device=None)\n--\n\n"
    "Device code on a device. The image is bytes or the path of a file: a cubin, a fatbin,\n"
    "PTX, a code object or a bundle of them, SPIR-V, or a shared object of host kernels, told\n"
    "apart by content. `module[name]` is a Kernel, `module.get_global(name)` a Buffer over a\n"
    "variable. It is unloaded when nothing uses it any more.");

static PyObject *load(struct py_state *state, gg_device *device, PyObject *bytes)
{
    Py_buffer view;
    gg_module *module = NULL;
    if (PyObject_GetBuffer(bytes, &view, PyBUF_SIMPLE))
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_module_load(device, view.buf, (size_t)view.len, &module);
    PyEval_RestoreThread(thread);
    PyBuffer_Release(&view);
    if (status)
        return py_raise(state, status);
    struct py_module *self = PyObject_New(struct py_module, state->module_type);
    if (!self) {
        gg_module_release(module);
        return NULL;
    }
    self->module = module;
    self->names = NULL;
    self->weakrefs = NULL;
    return (PyObject *)self;
}

/* Image.names, if there are any. */
static int take_names(PyObject *self, PyObject *image)
{
    PyObject *names;
    const int found = py_optional_attribute(image, "names", &names);
    if (found < 1)
        return found;
    if (PyDict_Check(names) && PyDict_Size(names))
        as_module(self)->names = Py_NewRef(names);
    Py_DECREF(names);
    return 0;
}

static PyObject *module_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"image", "device", NULL};
    struct py_state *state = PyType_GetModuleState(type);
    PyObject *image, *where = NULL;
    gg_device *device;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:Module", names, &image, &where) ||
        py_device_arg(state, where, &device))
        return NULL;
    PyObject *bytes = image_bytes(image);
    PyObject *self = bytes ? load(state, device, bytes) : NULL;
    Py_XDECREF(bytes);
    if (self && take_names(self, image))
        Py_CLEAR(self);
    return self;
}

static void module_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (as_module(self)->weakrefs)
        PyObject_ClearWeakRefs(self);
    gg_module_release(as_module(self)->module);
    Py_XDECREF(as_module(self)->names);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *module_item(PyObject *self, PyObject *key)
{
    gg_module *module = open_module(self);
    gg_kernel *kernel;
    if (!module)
        return NULL;
    gg_module_retain(module); /* the key's own code may close it */
    PyObject *lowered = as_module(self)->names ? PyDict_GetItem(as_module(self)->names, key) : NULL;
    if (lowered && PyUnicode_Check(lowered))
        key = lowered;
    const char *name = py_name(py_state_of(self), key, "the name of a kernel");
    if (!name) {
        gg_module_release(module);
        return NULL;
    }
    Py_INCREF(key); /* the dict of names may change meanwhile */

    PyThreadState *thread = PyEval_SaveThread(); /* a lazy driver loads the code now */
    gg_status status = gg_module_kernel(module, name, &kernel);
    PyEval_RestoreThread(thread);
    gg_module_release(module);
    Py_DECREF(key);
    return status ? py_raise(py_state_of(self), status)
                  : py_kernel_wrap(py_state_of(self), kernel, self);
}

static PyObject *module_global(PyObject *self, PyObject *key)
{
    gg_module *module = open_module(self);
    gg_memory *memory;
    const char *name = module ? py_name(py_state_of(self), key, "the name of a variable") : NULL;
    if (!name)
        return NULL;
    gg_module_retain(module);
    PyThreadState *thread = PyEval_SaveThread(); /* a lazy driver loads the code now */
    gg_status status = gg_module_global(module, name, &memory);
    PyEval_RestoreThread(thread);
    gg_module_release(module);
    return status ? py_raise(py_state_of(self), status) : py_buffer_wrap(py_state_of(self), memory);
}

static PyObject *module_close(PyObject *self, PyObject *nothing)
{
    gg_module *module = as_module(self)->module;
    (void)nothing;
    as_module(self)->module = NULL;
    gg_module_release(module);
    Py_RETURN_NONE;
}

static PyObject *module_enter(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    return open_module(self) ? Py_NewRef(self) : NULL;
}

static PyObject *module_exit(PyObject *self, PyObject *args)
{
    (void)args;
    return module_close(self, NULL);
}

static PyObject *module_device(PyObject *self, void *closure)
{
    gg_module *module = open_module(self);
    (void)closure;
    return module ? py_device_wrap(py_state_of(self), gg_module_device(module)) : NULL;
}

static PyObject *module_format(PyObject *self, void *closure)
{
    gg_module *module = open_module(self);
    (void)closure;
    return module ? PyUnicode_FromString(gg_module_image(module)->word) : NULL;
}

static PyObject *module_arch(PyObject *self, void *closure)
{
    gg_module *module = open_module(self);
    (void)closure;
    return module ? PyUnicode_FromString(gg_module_image(module)->arch) : NULL;
}

static PyObject *module_repr(PyObject *self)
{
    gg_module *module = as_module(self)->module;
    if (!module)
        return PyUnicode_FromString("<gpuglue.Module, closed>");
    return PyUnicode_FromFormat("<gpuglue.Module, %s, on %s:%d>", gg_module_image(module)->word,
                                gg_device_backend(gg_module_device(module)),
                                (int)gg_device_ordinal(gg_module_device(module)));
}

static PyMethodDef methods[] = {
    {"get_global", module_global,
     METH_O, "get_global($self, name, /)\n--\n\nA variable of the module, as a Buffer that keeps the module."},
    {"close", module_close, METH_NOARGS, "close($self)\n--\n\nIdempotent; kernels keep the code."},
    {"__enter__", module_enter, METH_NOARGS, NULL},
    {"__exit__", module_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"device", module_device, NULL, "The Device that it is on.", NULL},
    {"format", module_format, NULL, "Of the image: 'cubin', 'ptx', 'code object', …", NULL},
    {"arch", module_arch, NULL, "What the image is for; several are separated by blanks.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct py_module, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, PY_SLOT(module_new)},
    {Py_tp_dealloc, PY_SLOT(module_dealloc)},
    {Py_tp_repr, PY_SLOT(module_repr)},
    {Py_mp_subscript, PY_SLOT(module_item)},
    {Py_tp_doc, (void *)(uintptr_t)module_doc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "gpuglue.Module",
    .basicsize = sizeof(struct py_module),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

/* ---- raw ---- */

static PyObject *raw_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"bytes", NULL};
    struct py_state *state = PyType_GetModuleState(type);
    PyObject *object;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:raw", names, &object))
        return NULL;
    PyObject *bytes = PyBytes_FromObject(object);
    if (!bytes)
        return NULL;
    struct py_raw *self = PyObject_New(struct py_raw, state->raw_type);
    if (!self) {
        Py_DECREF(bytes);
        return NULL;
    }
    self->bytes = bytes;
    return (PyObject *)self;
}

static void raw_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_DECREF(((struct py_raw *)self)->bytes);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyType_Slot raw_slots[] = {
    {Py_tp_new, PY_SLOT(raw_new)},
    {Py_tp_dealloc, PY_SLOT(raw_dealloc)},
    {Py_tp_doc, "raw(bytes)\n--\n\nAn argument of a kernel, byte by byte; a copy is taken."},
    {0, NULL},
};

PyType_Spec py_raw_spec = {
    .name = "gpuglue.raw",
    .basicsize = sizeof(struct py_raw),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = raw_slots,
};

static PyMethodDef functions[] = {
    {"_read_image", read_image, METH_O, image_doc},
    {NULL, NULL, 0, NULL},
};

int py_kernel_add(PyObject *module, struct py_state *state)
{
    if (PyModule_AddFunctions(module, functions) || PyModule_AddFunctions(module, py_raw_functions))
        return -1;
    if (py_type_add(module, &spec, &state->module_type) ||
        py_type_add(module, &py_kernel_spec, &state->kernel_type))
        return -1;
    if (py_type_add(module, &py_local_spec, &state->local_type) || py_kernel_call_add(state))
        return -1;
    return py_type_add(module, &py_raw_spec, &state->raw_type);
}
