/* module.c: the module: its parts, its references and its slots. */
#include "base/reports.h"
#include "array/array.h"
#include "runtime/device.h"
#include "runtime/event.h"
#include "runtime/pool.h"
#include "runtime/registry.h"
#include "memory/alloc.h"
#include "memory/allocator.h"
#include "memory/buffer.h"
#include "memory/pointer.h"
#include "copy/fill.h"
#include "interop/asarray.h"
#include "kernel/launch_args.h"
#include "kernel/module.h"
#include "module/parts.h"

PyDoc_STRVAR(module_doc, "The extension module of gpuglue: use the names that `gpuglue` exports.");

static int module_exec(PyObject *module)
{
    static int (*const parts[])(PyObject *, struct py_state *) = {
        py_errors_add,    py_reports_add, py_device_add,         py_stream_add, py_event_add,
        py_timer_add,     py_buffer_add,  py_pointer_add,        py_pool_add,   py_array_add,
        py_module_add,    py_kernel_add,  py_argument_types_add, py_ipc_add,    py_capi_add,
        py_lifecycle_add, py_trace_add,   py_stats_add,          py_await_add,  py_comm_add,
        py_graph_add,
    };
    static PyMethodDef *const functions[] = {
        py_registry_functions, py_default_backend_functions, py_current_functions,
        py_alloc_functions,    py_host_register_functions,   py_allocator_functions,
        py_copy_functions,     py_raw_bytes_functions,       py_array_functions,
        py_like_functions,     py_pickle_functions,          py_asarray_functions,
        py_image_functions,    py_module_functions,          py_collective_functions,
    };
    struct py_state *state = PyModule_GetState(module);
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0)
        return PY_FAIL(
            PyExc_ImportError,
            "gpuglue supports the main interpreter only, but this is a sub-interpreter: "
            "use threads or processes (under mod_wsgi: WSGIApplicationGroup %%{GLOBAL})");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i](module, state))
            return -1;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (PyModule_AddFunctions(module, functions[i]))
            return -1;
    return PyModule_AddStringConstant(module, "__version__", gg_version());
}

/* The references that the state holds. */
static const size_t references[] = {
    offsetof(struct py_state, device_type),       offsetof(struct py_state, stream_type),
    offsetof(struct py_state, event_type),        offsetof(struct py_state, timer_type),
    offsetof(struct py_state, buffer_type),       offsetof(struct py_state, array_type),
    offsetof(struct py_state, flags_type),        offsetof(struct py_state, backend_info_type),
    offsetof(struct py_state, memory_info_type),  offsetof(struct py_state, error),
    offsetof(struct py_state, pointer_info_type), offsetof(struct py_state, out_of_memory),
    offsetof(struct py_state, invalid_argument),  offsetof(struct py_state, backend_unavailable),
    offsetof(struct py_state, unsupported),       offsetof(struct py_state, device_error),
    offsetof(struct py_state, device_lost),       offsetof(struct py_state, fork_error),
    offsetof(struct py_state, no_device_warning), offsetof(struct py_state, pool_type),
    offsetof(struct py_state, device_stats_type), offsetof(struct py_state, process_stats_type),
    offsetof(struct py_state, ipc_type),          offsetof(struct py_state, pool_stats_type),
    offsetof(struct py_state, module_type),       offsetof(struct py_state, kernel_type),
    offsetof(struct py_state, raw_argument_type), offsetof(struct py_state, local_memory_type),
    offsetof(struct py_state, interface_keys[0]), offsetof(struct py_state, interface_keys[1]),
    offsetof(struct py_state, interface_keys[2]), offsetof(struct py_state, interface_keys[3]),
    offsetof(struct py_state, interface_keys[4]), offsetof(struct py_state, interface_keys[5]),
    offsetof(struct py_state, interface_keys[6]), offsetof(struct py_state, allocator),
    offsetof(struct py_state, launch_options[0]), offsetof(struct py_state, launch_options[1]),
    offsetof(struct py_state, launch_options[2]), offsetof(struct py_state, launch_options[3]),
    offsetof(struct py_state, callback_wait),     offsetof(struct py_state, communicator_error),
    offsetof(struct py_state, graph_type),        offsetof(struct py_state, callback_errors),
};

static PyObject **module_reference(PyObject *module, size_t i)
{
    return (PyObject **)(void *)((char *)PyModule_GetState(module) + references[i]);
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    for (size_t i = 0; i < sizeof references / sizeof references[0]; i++)
        Py_VISIT(*module_reference(module, i));
    return 0;
}

static int module_clear(PyObject *module)
{
    for (size_t i = 0; i < sizeof references / sizeof references[0]; i++)
        Py_CLEAR(*module_reference(module, i));
    return 0;
}

static void module_free(void *module)
{
    struct py_state *state = PyModule_GetState(module);
    module_clear(module);
    for (Py_ssize_t i = 0; i < state->device_count; i++)
        Py_DECREF((PyObject *)state->devices[i]);
    free(state->devices);
}

/* Slots unknown to Python 3.11 would be errors there, so they are set at run time: 3 is Py_mod_multiple_interpreters
 * (0: not supported), 4 is Py_mod_gil (0: used; the state relies on it). */
static PyModuleDef_Slot slots[4];

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "gpuglue._core",
    .m_doc = module_doc,
    .m_size = sizeof(struct py_state),
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__core(void)
{
    int count = 0;
    slots[count++] = (PyModuleDef_Slot){Py_mod_exec, PY_SLOT(module_exec)};
    if (Py_Version >= 0x030c0000)
        slots[count++] = (PyModuleDef_Slot){3, (void *)0};
    if (Py_Version >= 0x030d0000)
        slots[count++] = (PyModuleDef_Slot){4, (void *)0};
    slots[count] = (PyModuleDef_Slot){0, NULL};
    return PyModuleDef_Init(&definition);
}
