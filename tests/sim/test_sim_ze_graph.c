/* test_sim_ze_graph.c: the simulated Level Zero driver records lists as sim_ze_graph.c says. argv[1] is the library, argv[2] "old"
 * or "new". */
#include "sim_control.h"

#include <level_zero/ze_api.h>

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DRIVER(name) __typeof__(name) *name;
static struct {
#include "test_sim_ze.def"
    ze_result_t (*zeCommandListHostSynchronize)(ze_command_list_handle_t, uint64_t);
    /* of later headers */
    ze_result_t (*zeCommandListBeginGraphCaptureExt)(ze_command_list_handle_t, const void *);
    ze_result_t (*zeCommandListEndGraphCaptureExt)(ze_command_list_handle_t, const void *, void **);
    ze_result_t (*zeGraphInstantiateExt)(void *, const void *, void **);
    ze_result_t (*zeCommandListAppendGraphExt)(ze_command_list_handle_t, void *, const void *,
                                               ze_event_handle_t, uint32_t, ze_event_handle_t *);
    ze_result_t (*zeExecutableGraphDestroyExt)(void *);
    ze_result_t (*zeGraphDestroyExt)(void *);
} ze;
#undef DRIVER

#define GOOD(call) assert_int_equal(call, ZE_RESULT_SUCCESS)
enum {
    BYTES = 64,
    IN_ORDER = 2,
    CAPTURE_UNSUPPORTED = 0x78000025,
    NOT_CAPTURING = 0x78000028,
    GRAPH_PROPERTIES = 0x20047,
    IMMUTABLE = 1
};

static ze_device_handle_t device;
static ze_context_handle_t context;
static char *memory;

static void open_driver(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
#define DRIVER(name) *(void **)&ze.name = dlsym(library, #name);
#include "test_sim_ze.def"
    DRIVER(zeCommandListHostSynchronize)
    DRIVER(zeCommandListBeginGraphCaptureExt)
    DRIVER(zeCommandListEndGraphCaptureExt)
    DRIVER(zeGraphInstantiateExt)
    DRIVER(zeCommandListAppendGraphExt)
    DRIVER(zeExecutableGraphDestroyExt)
    DRIVER(zeGraphDestroyExt)
#undef DRIVER
}

static int set_up(void **state)
{
    const ze_context_desc_t contexts = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    const ze_host_mem_alloc_desc_t host = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    ze_driver_handle_t driver = NULL;
    uint32_t count = 1, devices = 1;
    void *pointer = NULL;
    (void)state;
    if (ze.zeInit(ZE_INIT_FLAG_GPU_ONLY) || ze.zeDriverGet(&count, &driver) ||
        ze.zeDeviceGet(driver, &devices, &device) ||
        ze.zeContextCreate(driver, &contexts, &context) ||
        ze.zeMemAllocHost(context, &host, BYTES, 64, &pointer))
        return 1;
    memory = pointer;
    memset(memory, 0, BYTES);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return ze.zeMemFree(context, memory) || ze.zeContextDestroy(context) ||
           ze.sim_alive("stream") || ze.sim_alive("graph") || ze.sim_alive("exec");
}

static ze_command_list_handle_t new_list(uint32_t flags)
{
    const ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                          .ordinal = 1,
                                          .flags = flags,
                                          .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS};
    ze_command_list_handle_t list = NULL;
    GOOD(ze.zeCommandListCreateImmediate(context, device, &desc, &list));
    return list;
}

static ze_result_t fill(ze_command_list_handle_t list, char value)
{
    return ze.zeCommandListAppendMemoryFill(list, memory, &value, 1, BYTES, NULL, 0, NULL);
}

static void finish(ze_command_list_handle_t list)
{
    GOOD(ze.zeCommandListHostSynchronize(list, UINT64_MAX));
}

static void *record_fill(ze_command_list_handle_t list, char value)
{
    void *graph = NULL;
    GOOD(ze.zeCommandListBeginGraphCaptureExt(list, NULL));
    GOOD(fill(list, value));
    GOOD(ze.zeCommandListEndGraphCaptureExt(list, NULL, &graph));
    return graph;
}

static void a_recorded_list_runs_at_each_launch(void **state)
{
    ze_command_list_handle_t list = new_list(IN_ORDER), other = new_list(IN_ORDER);
    void *graph = record_fill(list, 3), *executable = NULL;
    (void)state;
    GOOD(ze.zeGraphInstantiateExt(graph, NULL, &executable));
    GOOD(ze.zeCommandListDestroy(list));
    for (int i = 0; i < 2; i++) {
        GOOD(fill(other, 1));
        finish(other);
        assert_int_equal(memory[0], 1);
        GOOD(ze.zeCommandListAppendGraphExt(other, executable, NULL, NULL, 0, NULL));
        finish(other);
        assert_int_equal(memory[BYTES - 1], 3);
    }
    assert_int_equal(ze.zeGraphDestroyExt(graph), ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE);
    GOOD(ze.zeExecutableGraphDestroyExt(executable));
    GOOD(ze.zeGraphDestroyExt(graph));
    GOOD(ze.zeCommandListDestroy(other));
}

static void a_captured_list_refuses_waits_and_launches_and_goes_on(void **state)
{
    ze_command_list_handle_t list = new_list(IN_ORDER);
    void *first = record_fill(list, 3), *graph = NULL, *executable = NULL;
    (void)state;
    GOOD(ze.zeGraphInstantiateExt(first, NULL, &executable));
    GOOD(ze.zeCommandListBeginGraphCaptureExt(list, NULL));
    assert_int_equal(ze.zeCommandListBeginGraphCaptureExt(list, NULL),
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ze.zeCommandListHostSynchronize(list, 0), CAPTURE_UNSUPPORTED);
    assert_int_equal(ze.zeCommandListAppendGraphExt(list, executable, NULL, NULL, 0, NULL),
                     CAPTURE_UNSUPPORTED);
    GOOD(fill(list, 5));
    GOOD(ze.zeCommandListEndGraphCaptureExt(list, NULL, &graph));
    assert_int_equal(ze.zeCommandListEndGraphCaptureExt(list, NULL, &graph), NOT_CAPTURING);
    finish(list);
    assert_int_equal(memory[0], 0);
    GOOD(ze.zeExecutableGraphDestroyExt(executable));
    GOOD(ze.zeGraphDestroyExt(first));
    GOOD(ze.zeGraphDestroyExt(graph));
    GOOD(ze.zeCommandListDestroy(list));
}

static void a_graph_is_launched_on_lists_of_the_same_kind(void **state)
{
    ze_command_list_handle_t list = new_list(IN_ORDER), loose = new_list(0);
    void *graph = record_fill(list, 3), *executable = NULL;
    (void)state;
    GOOD(ze.zeGraphInstantiateExt(graph, NULL, &executable));
    assert_int_equal(ze.zeCommandListAppendGraphExt(loose, executable, NULL, NULL, 0, NULL),
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    GOOD(ze.zeExecutableGraphDestroyExt(executable));
    GOOD(ze.zeGraphDestroyExt(graph));
    GOOD(ze.zeCommandListDestroy(loose));
    GOOD(ze.zeCommandListDestroy(list));
}

static uint32_t graph_flags(void)
{
    struct {
        uint32_t stype;
        void *next;
        uint32_t flags;
    } graphs = {.stype = GRAPH_PROPERTIES};
    ze_device_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES,
                                         .pNext = &graphs};
    GOOD(ze.zeDeviceGetProperties(device, &properties));
    return graphs.flags;
}

static void a_device_reports_whether_it_has_graphs(void **state)
{
    (void)state;
    assert_int_equal(graph_flags(), IMMUTABLE);
    setenv("GPUGLUE_SIM_ZE_GRAPHS", "0", 1);
    assert_int_equal(graph_flags(), 0);
    unsetenv("GPUGLUE_SIM_ZE_GRAPHS");
}

static void an_older_driver_records_nothing(void **state)
{
    ze_command_list_handle_t list = new_list(0);
    (void)state;
    assert_int_equal(ze.zeCommandListBeginGraphCaptureExt(list, NULL),
                     ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
    GOOD(ze.zeCommandListDestroy(list));
}

#define RULE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest of_new[] = {
        RULE(a_recorded_list_runs_at_each_launch),
        RULE(a_captured_list_refuses_waits_and_launches_and_goes_on),
        RULE(a_graph_is_launched_on_lists_of_the_same_kind),
        RULE(a_device_reports_whether_it_has_graphs),
    };
    const struct CMUnitTest of_old[] = {RULE(an_older_driver_records_nothing)};
    if (argc < 3) {
        fprintf(stderr, "usage: %s path/of/libze_sim.so.1 old|new\n", argv[0]);
        return 2;
    }
    open_driver(argv[1]);
    if (strcmp(argv[2], "new"))
        return cmocka_run_group_tests_name("old", of_old, NULL, NULL);
    return cmocka_run_group_tests_name("new", of_new, NULL, NULL);
}
