/* module_type.c: Module: device code loaded on a device. */
#include "base/foreign_names.h"
#include "runtime/device.h"
#include "memory/buffer.h"
#include "kernel/kernel.h"
#include "kernel/module.h"

static struct py_module *py_module_of(PyObject *self)
{
    return (struct py_module *)self;
}

static gg_module *module_handle(PyObject *self)
{
    gg_module *module = py_module_of(self)->module;
    if (!module)
        py_closed(py_state_of(self), "Module");
    return module;
}

PyObject *py_module_wrap(struct py_state *state, gg_module *module)
{
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

static PyObject *module_load(struct py_state *state, gg_device *device, const Py_buffer *view)
{
    gg_module *module = NULL;
    gg_status status;
    PY_WITHOUT_GIL(status = gg_module_load(device, view->buf, (size_t)view->len, &module));
    return status ? py_raise(state, status) : py_module_wrap(state, module);
}

/* What Module() takes besides the image and the device. */
struct module_arguments {
    PyObject *link, *options, *constants;
};

/* Whether _spirv.py loads it: with options, or because the driver compiles it. */
static bool module_is_compiled(gg_device *device, const Py_buffer *view,
                               const struct module_arguments *arguments)
{
    static const unsigned char magic[] = {0x03, 0x02, 0x23, 0x07};
    if (arguments->link || arguments->options ||
        (arguments->constants && arguments->constants != Py_None))
        return true;
    return view->len > 4 && !memcmp(view->buf, magic, sizeof magic) &&
           gg_device_supports(device, GG_OP_module_binary) == 1;
}

static PyObject *module_compile(struct py_state *state, gg_device *device, PyObject *image,
                                const struct module_arguments *arguments)
{
    PyObject *spirv = PyImport_ImportModule("gpuglue._spirv");
    PyObject *none = spirv ? PyTuple_New(0) : NULL;
    PyObject *where = none ? py_device_wrap(state, device) : NULL;
    PyObject *self =
        where ? PyObject_CallMethod(spirv, "load", "OOOOO", where, image,
                                    arguments->link ? arguments->link : none,
                                    arguments->options ? arguments->options : none,
                                    arguments->constants ? arguments->constants : Py_None)
              : NULL;
    Py_XDECREF(where);
    Py_XDECREF(none);
    Py_XDECREF(spirv);
    return self;
}

static PyObject *module_load_any(struct py_state *state, gg_device *device, PyObject *image,
                                 const struct module_arguments *arguments)
{
    Py_buffer view;
    PyObject *bytes = py_image_bytes(state, image), *self = NULL;
    if (!bytes)
        return NULL;
    if (!PyObject_GetBuffer(bytes, &view, PyBUF_SIMPLE)) {
        if (module_is_compiled(device, &view, arguments))
            self = module_compile(state, device, image, arguments);
        else
            self = module_load(state, device, &view);
        PyBuffer_Release(&view);
    }
    Py_DECREF(bytes);
    return self;
}

/* Image.names, if there are any. */
static int module_take_names(PyObject *self, PyObject *image)
{
    PyObject *names;
    const int found = py_optional_attribute(image, "names", &names);
    if (found < 1)
        return found;
    if (PyDict_Check(names) && PyDict_Size(names))
        py_module_of(self)->names = Py_NewRef(names);
    Py_DECREF(names);
    return 0;
}

static PyObject *module_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"image", "device", "link", "options", "constants", NULL};
    struct module_arguments arguments = {NULL, NULL, NULL};
    struct py_state *state = PyType_GetModuleState(type);
    PyObject *image, *where = NULL;
    gg_device *device;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O$OOO:Module", names, &image, &where,
                                     &arguments.link, &arguments.options, &arguments.constants) ||
        py_device_arg(state, where, &device))
        return NULL;
    PyObject *self = module_load_any(state, device, image, &arguments);
    if (self && module_take_names(self, image))
        Py_CLEAR(self);
    return self;
}

static void module_dealloc(PyObject *self)
{
    if (py_module_of(self)->weakrefs)
        PyObject_ClearWeakRefs(self);
    gg_module_release(py_module_of(self)->module);
    Py_XDECREF(py_module_of(self)->names);
    py_object_free(self);
}

static PyObject *module_item(PyObject *self, PyObject *key)
{
    gg_module *module = module_handle(self);
    gg_kernel *kernel;
    if (!module)
        return NULL;
    gg_module_retain(module); /* Python code of the key may close it */
    PyObject *lowered =
        py_module_of(self)->names ? PyDict_GetItem(py_module_of(self)->names, key) : NULL;
    if (lowered && PyUnicode_Check(lowered))
        key = lowered;
    const char *name = py_utf8(py_state_of(self), key, "the name of a kernel");
    if (!name) {
        gg_module_release(module);
        return NULL;
    }
    Py_INCREF(key); /* the dict of names may change meanwhile */

    /* a lazy driver loads the code now */
    gg_status status;
    PY_WITHOUT_GIL(status = gg_module_kernel(module, name, &kernel));
    gg_module_release(module);
    Py_DECREF(key);
    if (status)
        return py_raise(py_state_of(self), status);
    PyObject *object = (PyObject *)py_kernel_new(py_state_of(self), kernel, self, NULL, 0);
    gg_kernel_release(kernel);
    return object;
}

static PyObject *module_kernel_name(gg_module *module, size_t index)
{
    const char *name = gg_module_kernel_name(module, index);
    return PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "replace");
}

static PyObject *module_kernels(PyObject *self, void *Py_UNUSED(closure))
{
    gg_module *module = module_handle(self);
    size_t count = 0;
    if (!module)
        return NULL;
    gg_module_retain(module);
    gg_status status;
    PY_WITHOUT_GIL(status = gg_module_kernel_count(module, &count));
    PyObject *names = status ? py_raise(py_state_of(self), status) : PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; names && i < count; i++) {
        PyObject *name = module_kernel_name(module, i);
        if (!name || PyTuple_SetItem(names, (Py_ssize_t)i, name))
            Py_CLEAR(names);
    }
    gg_module_release(module);
    return names;
}

static PyObject *module_iter(PyObject *self)
{
    PyObject *names = module_kernels(self, NULL);
    PyObject *iterator = names ? PyObject_GetIter(names) : NULL;
    Py_XDECREF(names);
    return iterator;
}

/* Where the driver lists no kernels, by looking for it. */
static int module_finds(PyObject *self, PyObject *key)
{
    PyObject *kernel = module_item(self, key);
    if (!kernel && PyErr_ExceptionMatches(py_state_of(self)->invalid_argument)) {
        PyErr_Clear();
        return 0;
    }
    Py_XDECREF(kernel);
    return kernel ? 1 : -1;
}

static int module_contains(PyObject *self, PyObject *key)
{
    if (!PyUnicode_Check(key))
        return PY_FAIL(PyExc_TypeError, "the name of a kernel must be a str, got %R", key);
    PyObject *names = module_kernels(self, NULL);
    if (!names && PyErr_ExceptionMatches(py_state_of(self)->unsupported)) {
        PyErr_Clear();
        return module_finds(self, key);
    }
    PyObject *lowered =
        names && py_module_of(self)->names ? PyDict_GetItem(py_module_of(self)->names, key) : NULL;
    const int found = names ? PySequence_Contains(names, lowered ? lowered : key) : -1;
    Py_XDECREF(names);
    return found;
}

static PyObject *module_global(PyObject *self, PyObject *key)
{
    gg_module *module = module_handle(self);
    gg_memory *memory;
    const char *name = module ? py_utf8(py_state_of(self), key, "the name of a variable") : NULL;
    if (!name)
        return NULL;
    gg_module_retain(module);
    /* a lazy driver loads the code now */
    gg_status status;
    PY_WITHOUT_GIL(status = gg_module_global(module, name, &memory));
    gg_module_release(module);
    return status ? py_raise(py_state_of(self), status) : py_buffer_wrap(py_state_of(self), memory);
}

static PyObject *module_close(PyObject *self, PyObject *Py_UNUSED(nothing))
{
    gg_module *module = py_module_of(self)->module;
    py_module_of(self)->module = NULL;
    gg_module_release(module);
    Py_RETURN_NONE;
}

static PyObject *module_enter(PyObject *self, PyObject *Py_UNUSED(nothing))
{
    return module_handle(self) ? Py_NewRef(self) : NULL;
}

static PyObject *module_exit(PyObject *self, PyObject *Py_UNUSED(args))
{
    return module_close(self, NULL);
}

static PyObject *module_device(PyObject *self, void *Py_UNUSED(closure))
{
    gg_module *module = module_handle(self);
    return module ? py_device_wrap(py_state_of(self), gg_module_device(module)) : NULL;
}

static PyObject *module_format(PyObject *self, void *Py_UNUSED(closure))
{
    gg_module *module = module_handle(self);
    return module ? PyUnicode_FromString(gg_module_image(module)->word) : NULL;
}

static PyObject *module_arch(PyObject *self, void *Py_UNUSED(closure))
{
    gg_module *module = module_handle(self);
    return module ? PyUnicode_FromString(gg_module_image(module)->arch) : NULL;
}

static PyObject *module_repr(PyObject *self)
{
    gg_module *module = py_module_of(self)->module;
    if (!module)
        return PyUnicode_FromString("<gpuglue.Module, closed>");
    return PyUnicode_FromFormat("<gpuglue.Module, %s, on %s:%d>", gg_module_image(module)->word,
                                gg_device_backend(gg_module_device(module)),
                                (int)gg_device_ordinal(gg_module_device(module)));
}

static PyMethodDef methods[] = {
    {"get_global", module_global, METH_O, py_doc_Module_get_global},
    {"close", module_close, METH_NOARGS, py_doc_Module_close},
    {"__enter__", module_enter, METH_NOARGS, py_doc_Module___enter__},
    {"__exit__", module_exit, METH_VARARGS, py_doc_Module___exit__},
    PY_FOREIGN_DIR,
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"device", module_device, NULL, py_doc_Module_device, NULL},
    {"format", module_format, NULL, py_doc_Module_format, NULL},
    {"arch", module_arch, NULL, py_doc_Module_arch, NULL},
    {"kernels", module_kernels, NULL, py_doc_Module_kernels, NULL},
    PY_FOREIGN("get_function", "module['name']"),
    PY_FOREIGN("get_kernel", "module['name']"),
    PY_FOREIGN("function", "module['name']"),
    PY_FOREIGN("get_texref", "a Buffer as argument: there are no textures"),
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, PY_SLOT(module_new)},
    {Py_tp_dealloc, PY_SLOT(module_dealloc)},
    {Py_tp_repr, PY_SLOT(module_repr)},
    {Py_mp_subscript, PY_SLOT(module_item)},
    {Py_sq_contains, PY_SLOT(module_contains)},
    {Py_tp_iter, PY_SLOT(module_iter)},
    {Py_tp_doc, (void *)(uintptr_t)py_doc_Module},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_members, PY_WEAKLIST_MEMBERS(struct py_module)},
    {0, NULL},
};

int py_module_add(PyObject *module, struct py_state *state)
{
    return py_type_add(module, "gpuglue.Module", sizeof(struct py_module), Py_TPFLAGS_IMMUTABLETYPE,
                       slots, &state->module_type);
}
