/* kernel_type.c: the type Kernel: its attributes, methods and slots. */
#include "base/foreign_names.h"
#include "runtime/device.h"
#include "kernel/kernel.h"

#define HAS_VECTORCALL \
    (1ul << 11) /* Py_TPFLAGS_HAVE_VECTORCALL, which the limited API of 3.11 lacks */

/* ---- bind ---- */

static void kernel_dealloc(PyObject *self)
{
    if (py_kernel_of(self)->weakrefs)
        PyObject_ClearWeakRefs(self);
    gg_kernel_release(py_kernel_of(self)->kernel);
    PyMem_Free(py_kernel_of(self)->own);
    PyMem_Free(py_kernel_of(self)->plan);
    Py_DECREF(py_kernel_of(self)->module);
    py_object_free(self);
}

static int kernel_check_signature(struct py_state *state, const struct py_kernel *self,
                                  const struct gg_parameter *parameters, int32_t count)
{
    const struct gg_parameter *known = gg_kernel_parameters(self->kernel);
    const int32_t expected = gg_kernel_parameter_count(self->kernel);
    if (expected >= 0 && count != expected)
        return PY_FAIL(state->invalid_argument, "%.64s takes %d arguments, the signature has %d",
                       gg_kernel_name(self->kernel), (int)expected, (int)count);
    for (int32_t i = 0; i < expected; i++)
        if (known[i].size && parameters[i].size != known[i].size)
            return PY_FAIL(
                state->invalid_argument,
                "%.64s: argument %d has %d bytes in the signature where the kernel takes %d",
                gg_kernel_name(self->kernel), (int)i, (int)parameters[i].size, (int)known[i].size);
    return 0;
}

static int kernel_bind_shape(struct py_kernel *bound, PyObject *const *values)
{
    struct py_state *state = bound->state;
    uint32_t smem[3] = {0, 0, 0};
    const int cooperative = values[4] ? PyObject_IsTrue(values[4]) : 0;
    if (cooperative < 0)
        return -1;
    if (py_given(values[1])) {
        if (py_launch_dims(state, values[1], "grid", bound->shape.grid))
            return -1;
        bound->has_grid = true;
    }
    if (py_given(values[2])) {
        if (py_launch_dims(state, values[2], "block", bound->shape.block))
            return -1;
        bound->has_block = true;
    }
    if (values[3] && py_launch_dims(state, values[3], "smem", smem))
        return -1;
    bound->shape.shared = smem[0];
    bound->shape.flags = cooperative ? GG_LAUNCH_COOPERATIVE : 0;
    return 0;
}

static PY_FASTCALL(kernel_bind)
{
    static const char *const names[] = {"signature", "grid", "block", "smem", "cooperative"};
    struct py_kernel *record = py_kernel_of(self);
    struct gg_parameter *parameters = NULL;
    int32_t count = 0;
    PyObject *values[5];
    if (py_parse("bind", names, 5, 4, 1, args, nargs, kwnames, values))
        return NULL;
    if (values[0] != Py_None && (py_signature(record->state, values[0], &parameters, &count) ||
                                 kernel_check_signature(record->state, record, parameters, count))) {
        PyMem_Free(parameters);
        return NULL;
    }
    struct py_kernel *bound =
        py_kernel_new(record->state, record->kernel, record->module, parameters, count);
    if (bound && kernel_bind_shape(bound, values))
        Py_CLEAR(bound);
    return (PyObject *)bound;
}

/* ---- attributes ---- */

static PyObject *kernel_name(PyObject *self, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(gg_kernel_name(py_kernel_of(self)->kernel));
}

static PyObject *kernel_module(PyObject *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(py_kernel_of(self)->module);
}

static PyObject *kernel_device(PyObject *self, void *Py_UNUSED(closure))
{
    return py_device_wrap(py_kernel_of(self)->state, gg_kernel_device(py_kernel_of(self)->kernel));
}

static PyObject *kernel_attributes(PyObject *self, void *Py_UNUSED(closure))
{
    int64_t values[GG_KERNEL_ATTRIBUTE_COUNT];
    bool reported[GG_KERNEL_ATTRIBUTE_COUNT];
    PyThreadState *thread = PyEval_SaveThread(); /* a lazy driver loads the code now */
    for (int i = 0; i < GG_KERNEL_ATTRIBUTE_COUNT; i++)
        reported[i] = !gg_kernel_attribute_get(py_kernel_of(self)->kernel, (gg_kernel_attribute)i,
                                               &values[i]);
    PyEval_RestoreThread(thread);
    PyObject *all = PyDict_New();
    for (int i = 0; all && i < GG_KERNEL_ATTRIBUTE_COUNT; i++) {
        if (!reported[i])
            continue;
        PyObject *number = PyLong_FromLongLong(values[i]);
        if (!number ||
            PyDict_SetItemString(all, gg_kernel_attribute_name((gg_kernel_attribute)i), number))
            Py_CLEAR(all);
        Py_XDECREF(number);
    }
    return all;
}

static PyObject *kernel_parameters(PyObject *self, void *Py_UNUSED(closure))
{
    return py_kernel_parameters(py_kernel_of(self)->parameters, py_kernel_of(self)->count);
}

static PY_FASTCALL(kernel_occupancy)
{
    static const char *const names[] = {"block", "smem"};
    struct py_state *state = py_kernel_of(self)->state;
    PyObject *values[2];
    uint32_t block[3], smem[3] = {0, 0, 0};
    int32_t blocks = 0;
    if (py_parse("max_active_blocks", names, 2, 2, 1, args, nargs, kwnames, values) ||
        py_launch_dims(state, values[0], "block", block) ||
        (values[1] && py_launch_dims(state, values[1], "smem", smem)))
        return NULL;
    const uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    gg_status status;
    PY_WITHOUT_GIL(status = gg_kernel_occupancy(
                       py_kernel_of(self)->kernel,
                       threads > UINT32_MAX ? UINT32_MAX : (uint32_t)threads, smem[0], &blocks));
    if (status)
        return py_raise(state, status);
    return PyLong_FromLong(blocks);
}

static PY_FASTCALL(kernel_suggest_block_size)
{
    static const char *const names[] = {"smem", "limit"};
    struct py_state *state = py_kernel_of(self)->state;
    PyObject *values[2];
    uint32_t smem[3] = {0, 0, 0}, limit[3] = {0, 0, 0}, threads = 0, blocks = 0;
    if (py_parse("suggest_block", names, 2, 2, 0, args, nargs, kwnames, values) ||
        (values[0] && py_launch_dims(state, values[0], "smem", smem)) ||
        (values[1] && py_launch_dims(state, values[1], "limit", limit)))
        return NULL;
    gg_status status;
    PY_WITHOUT_GIL(status = gg_kernel_suggest_block_size(py_kernel_of(self)->kernel, smem[0],
                                                         limit[0], &threads, &blocks));
    if (status)
        return py_raise(state, status);
    return Py_BuildValue("(kk)", (unsigned long)threads, (unsigned long)blocks);
}

static PyObject *kernel_repr(PyObject *self)
{
    gg_device *device = gg_kernel_device(py_kernel_of(self)->kernel);
    return PyUnicode_FromFormat("<gpuglue.Kernel %s on %s:%d%s>",
                                gg_kernel_name(py_kernel_of(self)->kernel),
                                gg_device_backend(device), (int)gg_device_ordinal(device),
                                py_kernel_of(self)->bound ? ", bound" : "");
}

static PyMethodDef methods[] = {
    {"bind", PY_METHOD(kernel_bind), METH_FASTCALL | METH_KEYWORDS, py_doc_Kernel_bind},
    PY_FASTCALL_DEF("max_active_blocks", kernel_occupancy, py_doc_Kernel_max_active_blocks),
    PY_FASTCALL_DEF("suggest_block", kernel_suggest_block_size, py_doc_Kernel_suggest_block),
    PY_FOREIGN_DIR,
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"name", kernel_name, NULL, py_doc_Kernel_name, NULL},
    {"module", kernel_module, NULL, py_doc_Kernel_module, NULL},
    {"device", kernel_device, NULL, py_doc_Kernel_device, NULL},
    {"attributes", kernel_attributes, NULL, py_doc_Kernel_attributes, NULL},
    {"parameters", kernel_parameters, NULL, py_doc_Kernel_parameters, NULL},
    PY_FOREIGN("prepare", "bind(types, grid=…, block=…)"),
    PY_FOREIGN("prepared_call", "bind(types, grid=…, block=…)(*args)"),
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    PY_WEAKLIST_MEMBER(struct py_kernel),
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct py_kernel, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, PY_SLOT(kernel_dealloc)},
    {Py_tp_call, PY_SLOT(py_kernel_call_tuple)},
    {Py_tp_repr, PY_SLOT(kernel_repr)},
    {Py_tp_doc, (void *)(uintptr_t)py_doc_Kernel},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_members, members},
    {0, NULL},
};

int py_kernel_add(PyObject *module, struct py_state *state)
{
    return py_kernel_call_add(state)
               ? -1
               : py_type_add(module, "gpuglue.Kernel", sizeof(struct py_kernel),
                             Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION |
                                 HAS_VECTORCALL,
                             slots, &state->kernel_type);
}
