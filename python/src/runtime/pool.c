/* pool.c: the memory of a device, and Pool: its statistics, its limits, and trimming. */
#include "runtime/pool.h"
#include "base/foreign_names.h"
#include "base/owners.h"
#include "runtime/device.h"

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

/* ---- the device's memory ---- */

static PyStructSequence_Field memory_fields[] = {
    {"free", py_doc_MemoryInfo_free},
    {"total", py_doc_MemoryInfo_total},
    {NULL, NULL},
};

static PyStructSequence_Desc memory_desc = {
    .name = "gpuglue.MemoryInfo",
    .doc = py_doc_MemoryInfo,
    .fields = memory_fields,
    .n_in_sequence = 2,
};

PyObject *py_device_memory_info(PyObject *self, PyObject *Py_UNUSED(unused))
{
    struct py_state *state = py_state_of(self);
    uint64_t free_bytes, total;
    gg_status status;
    PY_WITHOUT_GIL(
        status = gg_device_memory_info(((struct py_device *)self)->device, &free_bytes, &total));
    if (status)
        return py_raise(state, status);
    PyObject *values[] = {PyLong_FromUnsignedLongLong(free_bytes),
                          PyLong_FromUnsignedLongLong(total)};
    return py_structseq_new(state->memory_info_type, values, 2);
}

/* ---- statistics ---- */

static int pool_read_stats(PyObject *self, struct gg_pool_stats *stats)
{
    struct py_state *state = py_state_of(self);
    *stats = (struct gg_pool_stats){.struct_size = sizeof *stats};
    if (py_device_open(state, as_pool(self)->device))
        return -1;
    return py_check(state, gg_pool_stats(as_pool(self)->device, as_pool(self)->kind, stats));
}

static PyStructSequence_Field fields[] = {
    {"used_blocks", py_doc_PoolStats_used_blocks},
    {"used_bytes", py_doc_PoolStats_used_bytes},
    {"used_peak", py_doc_PoolStats_used_peak},
    {"cached_blocks", py_doc_PoolStats_cached_blocks},
    {"cached_bytes", py_doc_PoolStats_cached_bytes},
    {"retired_blocks", py_doc_PoolStats_retired_blocks},
    {"retired_bytes", py_doc_PoolStats_retired_bytes},
    {"reserved_bytes", py_doc_PoolStats_reserved_bytes},
    {"reserved_peak", py_doc_PoolStats_reserved_peak},
    {"allocations", py_doc_PoolStats_allocations},
    {"driver_calls", py_doc_PoolStats_driver_calls},
    {NULL, NULL},
};

static PyStructSequence_Desc stats_desc = {
    .name = "gpuglue.PoolStats",
    .doc = py_doc_PoolStats,
    .fields = fields,
    .n_in_sequence = 11,
};

static PyObject *pool_stats(PyObject *self, PyObject *Py_UNUSED(unused))
{
    struct gg_pool_stats stats;
    if (pool_read_stats(self, &stats))
        return NULL;
    const uint64_t numbers[] = {
        stats.used_blocks,   stats.used_bytes,     stats.used_peak,     stats.cached_blocks,
        stats.cached_bytes,  stats.retired_blocks, stats.retired_bytes, stats.reserved_bytes,
        stats.reserved_peak, stats.allocations,    stats.driver_calls,
    };
    PyObject *values[sizeof numbers / sizeof numbers[0]];
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        values[i] = PyLong_FromUnsignedLongLong(numbers[i]);
    return py_structseq_new(py_state_of(self)->pool_stats_type, values,
                            (Py_ssize_t)(sizeof values / sizeof values[0]));
}

/* ---- limits; None is "no limit" ---- */

static int pool_read_bytes(PyObject *self, PyObject *value, const char *what, uint64_t none,
                           uint64_t *out)
{
    if (!value)
        return PY_FAIL(PyExc_AttributeError, "%s cannot be deleted: set it to None", what);
    *out = none;
    return value == Py_None ? 0 : py_uint64(py_state_of(self), value, what, out);
}

static PyObject *pool_bytes_or_none(uint64_t bytes, uint64_t none)
{
    return bytes == none ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(bytes);
}

static PyObject *pool_limit(PyObject *self, void *Py_UNUSED(unused))
{
    struct gg_pool_stats stats;
    return pool_read_stats(self, &stats) ? NULL : pool_bytes_or_none(stats.limit, 0);
}

static PyObject *pool_release_threshold(PyObject *self, void *Py_UNUSED(unused))
{
    struct gg_pool_stats stats;
    return pool_read_stats(self, &stats) ? NULL
                                         : pool_bytes_or_none(stats.release_threshold, UINT64_MAX);
}

/* Without the GIL: this may free memory, which takes time. */
static int pool_set(PyObject *self, uint64_t bytes,
                    gg_status (*op)(gg_device *, enum gg_memory_kind, uint64_t))
{
    struct py_pool *pool = as_pool(self);
    py_owners_drain();
    gg_status status;
    PY_WITHOUT_GIL(status = op(pool->device, pool->kind, bytes));
    return py_check(py_state_of(self), status);
}

static int pool_set_limit(PyObject *self, PyObject *value, void *Py_UNUSED(unused))
{
    uint64_t bytes;
    if (pool_read_bytes(self, value, "limit", 0, &bytes))
        return -1;
    if (!bytes && value != Py_None)
        return PY_FAIL(py_state_of(self)->invalid_argument,
                       "limit must be 1 byte or more, or None for no limit");
    return pool_set(self, bytes, gg_pool_set_limit);
}

static int pool_set_release_threshold(PyObject *self, PyObject *value, void *Py_UNUSED(unused))
{
    uint64_t bytes;
    if (pool_read_bytes(self, value, "release_threshold", UINT64_MAX, &bytes))
        return -1;
    return pool_set(self, bytes, gg_pool_set_release_threshold);
}

static PY_FASTCALL(pool_trim)
{
    static const char *const names[] = {"keep"};
    PyObject *value;
    uint64_t keep = 0;
    if (py_parse("trim", names, 1, 1, 0, args, nargs, kwnames, &value) ||
        (value && py_uint64(py_state_of(self), value, "keep", &keep)) ||
        pool_set(self, keep, gg_pool_trim))
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

static PyMethodDef methods[] = {
    {"trim", PY_METHOD(pool_trim), METH_FASTCALL | METH_KEYWORDS, py_doc_Pool_trim},
    {"stats", pool_stats, METH_NOARGS, py_doc_Pool_stats},
    PY_FOREIGN_DIR,
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"limit", pool_limit, pool_set_limit, py_doc_Pool_limit, NULL},
    {"release_threshold", pool_release_threshold, pool_set_release_threshold,
     py_doc_Pool_release_threshold, NULL},
    PY_FOREIGN("set_limit", "limit = nbytes"),
    PY_FOREIGN("used_bytes", "stats().used_bytes"),
    PY_FOREIGN("total_bytes", "stats().reserved_bytes"),
    PY_FOREIGN("free_all_blocks", "trim()"),
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)py_doc_Pool},
    {Py_tp_dealloc, PY_SLOT(py_object_free)},
    {Py_tp_repr, PY_SLOT(pool_repr)},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0, NULL},
};

static PyObject *trim(PyObject *module, PyObject *Py_UNUSED(unused))
{
    py_owners_drain();
    gg_status status;
    PY_WITHOUT_GIL(status = gg_trim());
    return py_none(PyModule_GetState(module), status);
}

static PyMethodDef functions[] = {
    {"trim", trim, METH_NOARGS, py_doc_trim},
    {NULL, NULL, 0, NULL},
};

int py_pool_add(PyObject *module, struct py_state *state)
{
    if (py_structseq_add(module, "MemoryInfo", &memory_desc, &state->memory_info_type) ||
        py_structseq_add(module, "PoolStats", &stats_desc, &state->pool_stats_type) ||
        py_type_add(module, "gpuglue.Pool", sizeof(struct py_pool),
                    Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots,
                    &state->pool_type))
        return -1;
    return PyModule_AddFunctions(module, functions);
}
