/* kernel.c: Kernel: made, bound, asked for its numbers; kernel_call.c launches it. */
#include "kernel.h"

#include <structmember.h>

#define HAS_VECTORCALL \
    (1ul << 11) /* Py_TPFLAGS_HAVE_VECTORCALL, which the limited API of 3.11 lacks */

static struct py_kernel *as_kernel(PyObject *self)
{
    return (struct py_kernel *)self;
}

/* ---- making ---- */

static struct py_kernel *new_kernel(struct py_state *state, gg_kernel *kernel, PyObject *module)
{
    struct py_kernel *self = PyObject_New(struct py_kernel, state->kernel_type);
    if (!self)
        return NULL;
    gg_kernel_retain(kernel);
    self->call = py_kernel_call;
    self->state = state;
    self->kernel = kernel;
    self->module = Py_NewRef(module);
    self->count = gg_kernel_parameter_count(kernel);
    self->bound = false;
    self->parameters = gg_kernel_parameters(kernel);
    self->own = NULL;
    self->shape = (struct gg_launch){.struct_size = sizeof self->shape};
    self->has_grid = self->has_block = false;
    self->weakrefs = NULL;
    return self;
}

PyObject *py_kernel_wrap(struct py_state *state, gg_kernel *kernel, PyObject *module)
{
    struct py_kernel *self = new_kernel(state, kernel, module);
    gg_kernel_release(kernel);
    return (PyObject *)self;
}

static void kernel_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (as_kernel(self)->weakrefs)
        PyObject_ClearWeakRefs(self);
    gg_kernel_release(as_kernel(self)->kernel);
    PyMem_Free(as_kernel(self)->own);
    Py_DECREF(as_kernel(self)->module);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyDoc_STRVAR(
    bind_doc,
    "bind($self, signature, grid=None, block=None, smem=0, cooperative=False)\n--\n\n"
    "The same kernel with the types of its arguments: a text of codes as in the struct module\n"
    "(P is a pointer: an array), or a sequence of codes and dtypes. Bare ints and floats are then\n"
    "taken. grid, block and smem are what a call takes where it gives no other.\n\n"
    "Where the image or the driver tells sizes, others are refused.");

static int check_bound(struct py_state *state, const struct py_kernel *self,
                       const struct gg_parameter *parameters, int32_t count)
{
    const struct gg_parameter *known = gg_kernel_parameters(self->kernel);
    const int32_t expected = gg_kernel_parameter_count(self->kernel);
    if (expected >= 0 && count != expected) {
        py_invalid(state, "%.64s takes %d arguments, the signature has %d",
                   gg_kernel_name(self->kernel), (int)expected, (int)count);
        return -1;
    }
    for (int32_t i = 0; i < expected; i++)
        if (known[i].size && parameters[i].size != known[i].size) {
            py_invalid(
                state, "%.64s: argument %d has %d bytes in the signature where the kernel takes %d",
                gg_kernel_name(self->kernel), (int)i, (int)parameters[i].size, (int)known[i].size);
            return -1;
        }
    return 0;
}

static int bind_shape(struct py_kernel *bound, PyObject *const *values)
{
    struct py_state *state = bound->state;
    uint32_t smem[3] = {0, 0, 0};
    const int cooperative = values[4] ? PyObject_IsTrue(values[4]) : 0;
    if (cooperative < 0)
        return -1;
    if (values[1] && values[1] != Py_None) {
        if (py_dims(state, values[1], "grid", bound->shape.grid))
            return -1;
        bound->has_grid = true;
    }
    if (values[2] && values[2] != Py_None) {
        if (py_dims(state, values[2], "block", bound->shape.block))
            return -1;
        bound->has_block = true;
    }
    if (values[3] && py_dims(state, values[3], "smem", smem))
        return -1;
    bound->shape.shared = smem[0];
    bound->shape.flags = cooperative ? GG_LAUNCH_COOPERATIVE : 0;
    return 0;
}

static PyObject *kernel_bind(PyObject *object, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames)
{
    static const char *const names[] = {"signature", "grid", "block", "smem", "cooperative"};
    struct py_kernel *self = as_kernel(object);
    struct gg_parameter *parameters = NULL;
    int32_t count = 0;
    PyObject *values[5];
    if (py_parse("bind", names, 5, 4, 1, args, nargs, kwnames, values))
        return NULL;
    if (values[0] != Py_None && (py_signature(self->state, values[0], &parameters, &count) ||
                                 check_bound(self->state, self, parameters, count))) {
        PyMem_Free(parameters);
        return NULL;
    }
    struct py_kernel *bound = new_kernel(self->state, self->kernel, self->module);
    if (!bound) {
        PyMem_Free(parameters);
        return NULL;
    }
    if (parameters) {
        bound->parameters = bound->own = parameters;
        bound->count = count;
        bound->bound = true;
    }
    if (bind_shape(bound, values)) {
        Py_DECREF(bound);
        return NULL;
    }
    return (PyObject *)bound;
}

/* ---- questions ---- */

static PyObject *kernel_name(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(gg_kernel_name(as_kernel(self)->kernel));
}

static PyObject *kernel_module(PyObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(as_kernel(self)->module);
}

static PyObject *kernel_device(PyObject *self, void *closure)
{
    (void)closure;
    return py_device_wrap(as_kernel(self)->state, gg_kernel_device(as_kernel(self)->kernel));
}

static PyObject *kernel_attributes(PyObject *self, void *closure)
{
    int64_t values[GG_KERNEL_ATTRIBUTE_COUNT];
    bool told[GG_KERNEL_ATTRIBUTE_COUNT];
    (void)closure;
    PyThreadState *thread = PyEval_SaveThread(); /* a lazy driver loads the code now */
    for (int i = 0; i < GG_KERNEL_ATTRIBUTE_COUNT; i++)
        told[i] =
            !gg_kernel_attribute_get(as_kernel(self)->kernel, (gg_kernel_attribute)i, &values[i]);
    PyEval_RestoreThread(thread);
    PyObject *all = PyDict_New();
    for (int i = 0; all && i < GG_KERNEL_ATTRIBUTE_COUNT; i++) {
        if (!told[i])
            continue;
        PyObject *number = PyLong_FromLongLong(values[i]);
        if (!number ||
            PyDict_SetItemString(all, gg_kernel_attribute_name((gg_kernel_attribute)i), number))
            Py_CLEAR(all);
        Py_XDECREF(number);
    }
    return all;
}

PyObject *py_parameters(const struct gg_parameter *parameters, int32_t count)
{
    static const char *const kinds[] = {"unknown", "signed",  "unsigned", "integer",
                                        "float",   "pointer", "bytes",    "local"};
    if (count < 0)
        Py_RETURN_NONE;
    PyObject *all = PyTuple_New(count);
    for (int32_t i = 0; all && i < count; i++) {
        const uint32_t kind = parameters[i].kind <= GG_PARAMETER_LOCAL ? parameters[i].kind : 0;
        PyObject *one = Py_BuildValue("(kks)", (unsigned long)parameters[i].offset,
                                      (unsigned long)parameters[i].size, kinds[kind]);
        if (!one || PyTuple_SetItem(all, i, one))
            Py_CLEAR(all);
    }
    return all;
}

static PyObject *kernel_parameters(PyObject *self, void *closure)
{
    (void)closure;
    return py_parameters(as_kernel(self)->parameters, as_kernel(self)->count);
}

static PyObject *kernel_occupancy(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                  PyObject *kwnames)
{
    static const char *const names[] = {"block", "smem"};
    struct py_state *state = as_kernel(self)->state;
    PyObject *values[2];
    uint32_t block[3], smem[3] = {0, 0, 0};
    int32_t blocks = 0;
    if (py_parse("max_active_blocks", names, 2, 2, 1, args, nargs, kwnames, values) ||
        py_dims(state, values[0], "block", block) ||
        (values[1] && py_dims(state, values[1], "smem", smem)))
        return NULL;
    const uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_kernel_occupancy(as_kernel(self)->kernel,
                                           threads > UINT32_MAX ? UINT32_MAX : (uint32_t)threads,
                                           smem[0], &blocks);
    PyEval_RestoreThread(thread);
    if (status)
        return py_raise(state, status);
    return PyLong_FromLong(blocks);
}

static PyObject *kernel_suggest(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                PyObject *kwnames)
{
    static const char *const names[] = {"smem", "limit"};
    struct py_state *state = as_kernel(self)->state;
    PyObject *values[2];
    uint32_t smem[3] = {0, 0, 0}, limit[3] = {0, 0, 0}, threads = 0, blocks = 0;
    if (py_parse("suggest_block", names, 2, 2, 0, args, nargs, kwnames, values) ||
        (values[0] && py_dims(state, values[0], "smem", smem)) ||
        (values[1] && py_dims(state, values[1], "limit", limit)))
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status =
        gg_kernel_suggest(as_kernel(self)->kernel, smem[0], limit[0], &threads, &blocks);
    PyEval_RestoreThread(thread);
    if (status)
        return py_raise(state, status);
    return Py_BuildValue("(kk)", (unsigned long)threads, (unsigned long)blocks);
}

static PyObject *kernel_repr(PyObject *self)
{
    gg_device *device = gg_kernel_device(as_kernel(self)->kernel);
    return PyUnicode_FromFormat("<gpuglue.Kernel %s on %s:%d%s>",
                                gg_kernel_name(as_kernel(self)->kernel), gg_device_backend(device),
                                (int)gg_device_ordinal(device),
                                as_kernel(self)->bound ? ", bound" : "");
}

static PyMethodDef methods[] = {
    {"bind", PY_METHOD(kernel_bind), METH_FASTCALL | METH_KEYWORDS, bind_doc},
    {"max_active_blocks", PY_METHOD(kernel_occupancy), METH_FASTCALL | METH_KEYWORDS,
     "max_active_blocks($self, block, smem=0)\n--\n\n"
     "How many blocks of that shape a multiprocessor runs at once."},
    {"suggest_block", PY_METHOD(kernel_suggest), METH_FASTCALL | METH_KEYWORDS,
     "suggest_block($self, smem=0, limit=0)\n--\n\n"
     "(threads per block, blocks) that keep the device busiest; at most `limit` threads."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"name", kernel_name, NULL, "Its name in the image.", NULL},
    {"module", kernel_module, NULL, "The Module that it is of.", NULL},
    {"device", kernel_device, NULL, "The Device that it runs on.", NULL},
    {"attributes", kernel_attributes, NULL,
     "What the driver tells: max_threads_per_block, shared_size, local_size, registers, …", NULL},
    {"parameters", kernel_parameters, NULL,
     "(offset, size, kind) of each, or None where neither image nor driver tells.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct py_kernel, weakrefs), READONLY, NULL},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct py_kernel, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyDoc_STRVAR(
    kernel_doc,
    "A kernel of a Module: kernel(*args, grid=, block=, smem=0, stream=None).\n\n"
    "Arguments are GPUArrays and Buffers of its device, arrays of other libraries there,\n"
    "NumPy and ctypes scalars and structs, gpuglue.raw(bytes). A bare int or float is taken\n"
    "where the image tells the parameter's type, or after bind(). Without stream= it runs\n"
    "on the current stream, behind unfinished work on its arrays.");

static PyType_Slot slots[] = {
    {Py_tp_dealloc, PY_SLOT(kernel_dealloc)},
    {Py_tp_call, PY_SLOT(py_kernel_call_tuple)},
    {Py_tp_repr, PY_SLOT(kernel_repr)},
    {Py_tp_doc, (void *)(uintptr_t)kernel_doc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_members, members},
    {0, NULL},
};

PyType_Spec py_kernel_spec = {
    .name = "gpuglue.Kernel",
    .basicsize = sizeof(struct py_kernel),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION |
             HAS_VECTORCALL,
    .slots = slots,
};
