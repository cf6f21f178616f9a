/* module.c: the module itself: its state, its slots and the order in which its parts are added. */
#include "py.h"

PyDoc_STRVAR(module_doc, "The compiled half of gpuglue: use the names that `gpuglue` exports.");

int py_type_add(PyObject *module, PyType_Spec *spec, PyTypeObject **out)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (!type)
        return -1;
    *out = (PyTypeObject *)type;
    return PyModule_AddType(module, *out);
}

static int module_exec(PyObject *module)
{
    static int (*const parts[])(PyObject *, struct py_state *) = {
        py_errors_add,  py_reports_add,   py_registry_add, py_device_add, py_stream_add,
        py_event_add,   py_timer_add,     py_current_add,  py_memory_add, py_foreign_add,
        py_pointer_add, py_allocator_add, py_pool_add,     py_copy_add,   py_array_add,
        py_kernel_add,  py_capi_add,      py_ipc_add,
    };
    struct py_state *state = PyModule_GetState(module);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i](module, state))
            return -1;
    gg_set_wait_hook(py_interrupted);
    return PyModule_AddStringConstant(module, "__version__", gg_version());
}

/* Where the state holds references. */
static const size_t held[] = {
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
    offsetof(struct py_state, ipc_type),          offsetof(struct py_state, pool_stats_type),
    offsetof(struct py_state, module_type),       offsetof(struct py_state, kernel_type),
    offsetof(struct py_state, raw_type),          offsetof(struct py_state, local_type),
    offsetof(struct py_state, interface_keys[0]), offsetof(struct py_state, interface_keys[1]),
    offsetof(struct py_state, interface_keys[2]), offsetof(struct py_state, interface_keys[3]),
    offsetof(struct py_state, interface_keys[4]), offsetof(struct py_state, interface_keys[5]),
    offsetof(struct py_state, interface_keys[6]), offsetof(struct py_state, allocator),
    offsetof(struct py_state, launch_options[0]), offsetof(struct py_state, launch_options[1]),
    offsetof(struct py_state, launch_options[2]), offsetof(struct py_state, launch_options[3]),
};

static PyObject **held_at(PyObject *module, size_t i)
{
    return (PyObject **)(void *)((char *)PyModule_GetState(module) + held[i]);
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++)
        Py_VISIT(*held_at(module, i));
    return 0;
}

static int module_clear(PyObject *module)
{
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++)
        Py_CLEAR(*held_at(module, i));
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

/* Slots that Python 3.11 does not know would be errors there, hence filled in at run time: 3 is
 * Py_mod_multiple_interpreters (0: not supported), 4 is Py_mod_gil (0: used; the state relies on it). */
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
