/* stats.c: Device.stats(): load, memory, power, temperature, clocks and processes. */
#include "base/errors.h"
#include "base/reports.h"
#include "runtime/device.h"

#include <math.h>

#define PROCESSES_FIRST 64u

static PyStructSequence_Field stats_fields[] = {
    {"compute_utilization", py_doc_DeviceStats_compute_utilization},
    {"memory_utilization", py_doc_DeviceStats_memory_utilization},
    {"memory_used", py_doc_DeviceStats_memory_used},
    {"memory_total", py_doc_DeviceStats_memory_total},
    {"power", py_doc_DeviceStats_power},
    {"temperature", py_doc_DeviceStats_temperature},
    {"compute_clock", py_doc_DeviceStats_compute_clock},
    {"memory_clock", py_doc_DeviceStats_memory_clock},
    {"throttle_reasons", py_doc_DeviceStats_throttle_reasons},
    {"processes", py_doc_DeviceStats_processes},
    {"source", py_doc_DeviceStats_source},
    {NULL, NULL},
};

static PyStructSequence_Desc stats_desc = {
    .name = "gpuglue.DeviceStats",
    .doc = py_doc_DeviceStats,
    .fields = stats_fields,
    .n_in_sequence = 11,
};

static PyStructSequence_Field process_fields[] = {
    {"pid", py_doc_ProcessStats_pid},
    {"memory", py_doc_ProcessStats_memory},
    {NULL, NULL},
};

static PyStructSequence_Desc process_desc = {
    .name = "gpuglue.ProcessStats",
    .doc = py_doc_ProcessStats,
    .fields = process_fields,
    .n_in_sequence = 2,
};

static PyObject *stats_number(double value)
{
    return isnan(value) ? Py_NewRef(Py_None) : PyFloat_FromDouble(value);
}

static PyObject *stats_bytes(uint64_t value)
{
    return value == UINT64_MAX ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(value);
}

static PyObject *stats_reasons(uint32_t reasons)
{
    if (reasons & GG_THROTTLE_UNKNOWN)
        return Py_NewRef(Py_None);
    PyObject *list = PyList_New(0);
    for (uint32_t bit = 1; list && bit && bit <= reasons; bit <<= 1) {
        const char *name = reasons & bit ? gg_throttle_name(bit) : NULL;
        PyObject *word = name ? PyUnicode_FromString(name) : NULL;
        if (name && (!word || PyList_Append(list, word)))
            Py_CLEAR(list);
        Py_XDECREF(word);
    }
    PyObject *words = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return words;
}

static PyObject *stats_processes(struct py_state *state, const struct gg_device_stats *stats)
{
    if (stats->process_count < 0)
        return Py_NewRef(Py_None);
    const uint32_t all = (uint32_t)stats->process_count;
    const Py_ssize_t count = (Py_ssize_t)(all < stats->process_room ? all : stats->process_room);
    PyObject *result = PyTuple_New(count);
    for (Py_ssize_t i = 0; result && i < count; i++) {
        PyObject *values[] = {PyLong_FromUnsignedLong(stats->processes[i].pid),
                              stats_bytes(stats->processes[i].memory)};
        PyObject *process = py_structseq_new(state->process_stats_type, values, 2);
        if (!process || PyTuple_SetItem(result, i, process))
            Py_CLEAR(result);
    }
    return result;
}

static PyObject *stats_wrap(struct py_state *state, const struct gg_device_stats *stats)
{
    PyObject *values[] = {
        stats_number(stats->compute_utilization),
        stats_number(stats->memory_utilization),
        stats_bytes(stats->memory_used),
        stats_bytes(stats->memory_total),
        stats_number(stats->power),
        stats_number(stats->temperature),
        stats_number(stats->compute_clock),
        stats_number(stats->memory_clock),
        stats_reasons(stats->throttle_reasons),
        stats_processes(state, stats),
        py_str(stats->source),
    };
    return py_structseq_new(state->device_stats_type, values,
                            (Py_ssize_t)(sizeof values / sizeof values[0]));
}

/* With room for all processes; those that start meanwhile are left out. */
static gg_status stats_read(gg_device *device, struct gg_device_stats *stats)
{
    gg_status status = GG_OK;
    uint32_t room = PROCESSES_FIRST;
    for (int attempt = 0; attempt < 3; attempt++) {
        free(stats->processes);
        *stats = (struct gg_device_stats){.struct_size = sizeof *stats, .process_room = room};
        stats->processes = calloc(room, sizeof *stats->processes);
        status = gg_device_stats(device, stats);
        if (status || stats->process_count <= (int32_t)room)
            break;
        room = (uint32_t)stats->process_count + PROCESSES_FIRST;
    }
    if (!stats->processes)
        stats->process_room = 0;
    return status;
}

PyObject *py_device_stats(PyObject *self, PyObject *Py_UNUSED(unused))
{
    struct py_state *state = py_state_of(self);
    struct gg_device_stats stats = {.processes = NULL};
    gg_status status;
    PY_WITHOUT_GIL(status = stats_read(((struct py_device *)self)->device, &stats));
    PyObject *result = status ? py_raise(state, status) : stats_wrap(state, &stats);
    free(stats.processes);
    return result;
}

int py_stats_add(PyObject *module, struct py_state *state)
{
    if (py_structseq_add(module, "ProcessStats", &process_desc, &state->process_stats_type))
        return -1;
    return py_structseq_add(module, "DeviceStats", &stats_desc, &state->device_stats_type);
}
