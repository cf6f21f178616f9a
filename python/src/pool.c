/* pool.c: a device's memory, and Pool: what it holds free, its limits, giving back what is idle. */
#include "py.h"

struct py_pool {
    PyObject_HEAD gg_device *device; /* immortal */
    enum gg_memory_kind kind;
};

static struct py_pool *as_pool(PyObject *self)
{
    return (struct py_pool *)self;
}

PyObject *py_pool_wrap(struct py_state *state, gg_device *device, enum gg_memory_kind kind)
{
    struct py_pool *pool = PyObject_New(struct py_pool, state->pool_type);
    if (!pool)
        return NULL;
    pool->device = device;
    pool->kind = kind;
    return (PyObject *)pool;
}

static void pool_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ---- the device's memory ---- */

static PyStructSequence_Field memory_fields[] = {
    {"free", "bytes that could be allocated now"},
    {"total", "bytes that the device has"},
    {NULL, NULL},
};

static PyStructSequence_Desc memory_desc = {
    .name = "gpuglue.MemoryInfo",
    .doc = "Device memory, in bytes.",
    .fields = memory_fields,
    .n_in_sequence = 2,
};

PyObject *py_device_memory_info(PyObject *self, PyObject *unused)
{
    struct py_state *state = py_state_of(self);
    uint64_t free_bytes, total;
    (void)unused;
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status =
        gg_device_memory_info(((struct py_device *)self)->device, &free_bytes, &total);
    PyEval_RestoreThread(thread);
    if (status)
        return py_raise(state, status);
    PyObject *result = PyStructSequence_New(state->memory_info_type);
    if (!result)
        return NULL;
    PyStructSequence_SetItem(result, 0, PyLong_FromUnsignedLongLong(free_bytes));
    PyStructSequence_SetItem(result, 1, PyLong_FromUnsignedLongLong(total));
    if (PyErr_Occurred())
        Py_CLEAR(result);
    return result;
}

/* ---- figures ---- */

static int read_figures(PyObject *self, struct gg_pool_stats *figures)
{
    struct py_state *state = py_state_of(self);
    *figures = (struct gg_pool_stats){.struct_size = sizeof *figures};
    if (py_device_open(state, as_pool(self)->device))
        return -1;
    return py_check(state, gg_pool_stats(as_pool(self)->device, as_pool(self)->kind, figures));
}

static PyStructSequence_Field fields[] = {
    {"used_blocks", "Blocks that were given out and not closed."},
    {"used_bytes", "Their bytes, as they were asked for."},
    {"peak_bytes", "The most bytes that were used at a time."},
    {"cached_blocks", "Free blocks, ready to be given out again."},
    {"cached_bytes", "Their bytes."},
    {"retired_blocks", "Closed blocks that queued work still uses, or that wait to be freed."},
    {"retired_bytes", "Their bytes."},
    {"held_bytes", "Bytes that the driver gave to the pool."},
    {"held_peak", "The most bytes that it gave at a time."},
    {"allocations", "Allocations so far."},
    {"driver_calls", "Calls of the driver so far, to allocate and to free."},
    {NULL, NULL},
};

static PyStructSequence_Desc stats_desc = {
    .name = "gpuglue.PoolStats",
    .doc = "What a pool holds and did, from Pool.stats().",
    .fields = fields,
    .n_in_sequence = 11,
};

static PyObject *pool_stats(PyObject *self, PyObject *unused)
{
    struct gg_pool_stats figures;
    (void)unused;
    if (read_figures(self, &figures))
        return NULL;
    const uint64_t values[] = {
        figures.used_blocks,  figures.used_bytes,     figures.peak_bytes,    figures.cached_blocks,
        figures.cached_bytes, figures.retired_blocks, figures.retired_bytes, figures.held_bytes,
        figures.held_peak,    figures.allocations,    figures.driver_calls,
    };
    PyObject *result = PyStructSequence_New(py_state_of(self)->pool_stats_type);
    if (!result)
        return NULL;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        PyStructSequence_SetItem(result, (Py_ssize_t)i, PyLong_FromUnsignedLongLong(values[i]));
    if (PyErr_Occurred())
        Py_CLEAR(result);
    return result;
}

/* ---- limits; None is "no limit" ---- */

static int read_bytes(PyObject *self, PyObject *value, const char *what, uint64_t none,
                      uint64_t *out)
{
    if (!value) {
        PyErr_Format(PyExc_AttributeError, "%s cannot be deleted; set it to None", what);
        return -1;
    }
    *out = none;
    return value == Py_None ? 0 : py_uint64(py_state_of(self), value, what, out);
}

static PyObject *bytes_or_none(uint64_t bytes, uint64_t none)
{
    return bytes == none ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(bytes);
}

static PyObject *pool_limit(PyObject *self, void *unused)
{
    struct gg_pool_stats figures;
    (void)unused;
    return read_figures(self, &figures) ? NULL : bytes_or_none(figures.limit, 0);
}

static PyObject *pool_keep(PyObject *self, void *unused)
{
    struct gg_pool_stats figures;
    (void)unused;
    return read_figures(self, &figures) ? NULL : bytes_or_none(figures.keep, UINT64_MAX);
}

/* May give memory back, which takes its time. */
static int without_gil(PyObject *self, uint64_t bytes,
                       gg_status (*op)(gg_device *, enum gg_memory_kind, uint64_t))
{
    struct py_pool *pool = as_pool(self);
    py_owners_drain();
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = op(pool->device, pool->kind, bytes);
    PyEval_RestoreThread(thread);
    return py_check(py_state_of(self), status);
}

static int set_limit(PyObject *self, PyObject *value, void *unused)
{
    uint64_t bytes;
    (void)unused;
    if (read_bytes(self, value, "limit", 0, &bytes))
        return -1;
    if (!bytes && value != Py_None) {
        py_invalid(py_state_of(self), "limit must be 1 byte or more, or None for no limit");
        return -1;
    }
    return without_gil(self, bytes, gg_pool_set_limit);
}

static int set_keep(PyObject *self, PyObject *value, void *unused)
{
    uint64_t bytes;
    (void)unused;
    if (read_bytes(self, value, "max_cached", UINT64_MAX, &bytes))
        return -1;
    return without_gil(self, bytes, gg_pool_set_keep);
}

static PyObject *pool_trim(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                           PyObject *kwnames)
{
    static const char *const names[] = {"keep"};
    PyObject *value;
    uint64_t keep = 0;
    if (py_parse("trim", names, 1, 1, 0, args, nargs, kwnames, &value) ||
        (value && py_uint64(py_state_of(self), value, "keep", &keep)) ||
        without_gil(self, keep, gg_pool_trim))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *pool_repr(PyObject *self)
{
    struct py_pool *pool = as_pool(self);
    return PyUnicode_FromFormat(
        "<gpuglue.Pool of %s memory, %s:%d>", pool->kind == GG_MEMORY_PINNED ? "pinned" : "device",
        gg_device_backend(pool->device), (int)gg_device_ordinal(pool->device));
}

/* ---- the type ---- */

PyDoc_STRVAR(pool_doc,
             "Free memory of a device that is given out again without a call of the driver.\n\n"
             "Device.pool has device memory, Device.pinned_pool page-locked memory.");

PyDoc_STRVAR(trim_doc,
             "trim($self, keep=0)\n--\n\n"
             "Give free blocks back to the driver until at most keep bytes are left. Waits for no\n"
             "work: where a driver's free would, it comes when all of gpuglue's streams are idle.");

static PyMethodDef methods[] = {
    {"trim", PY_METHOD(pool_trim), METH_FASTCALL | METH_KEYWORDS, trim_doc},
    {"stats", pool_stats, METH_NOARGS,
     "stats($self)\n--\n\nA PoolStats: what is in use, free and held, and how often."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"limit", pool_limit, set_limit,
     "Most bytes to take from the driver, or None. ValueError below what is in use.", NULL},
    {"max_cached", pool_keep, set_keep,
     "Most bytes of free blocks to keep, or None; 256 MiB at first for page-locked memory.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)pool_doc},
    {Py_tp_dealloc, PY_SLOT(pool_dealloc)},
    {Py_tp_repr, PY_SLOT(pool_repr)},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "gpuglue.Pool",
    .basicsize = sizeof(struct py_pool),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

static PyObject *trim_all(PyObject *module, PyObject *unused)
{
    (void)unused;
    py_owners_drain();
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_trim();
    PyEval_RestoreThread(thread);
    return py_check(PyModule_GetState(module), status) ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"trim", trim_all, METH_NOARGS,
     "trim()\n--\n\nGive the free memory of all pools back to the drivers. See Pool.trim."},
    {NULL, NULL, 0, NULL},
};

int py_pool_add(PyObject *module, struct py_state *state)
{
    state->memory_info_type = PyStructSequence_NewType(&memory_desc);
    state->pool_stats_type = PyStructSequence_NewType(&stats_desc);
    if (!state->memory_info_type ||
        PyModule_AddObjectRef(module, "MemoryInfo", (PyObject *)state->memory_info_type) ||
        !state->pool_stats_type ||
        PyModule_AddObjectRef(module, "PoolStats", (PyObject *)state->pool_stats_type) ||
        py_type_add(module, &spec, &state->pool_type))
        return -1;
    return PyModule_AddFunctions(module, functions);
}
