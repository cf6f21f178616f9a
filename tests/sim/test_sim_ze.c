/* The simulated Level Zero driver keeps the rules of the specification: argv[1] is the library, argv[2] "old"
 * or "new". It is called as a loader would be, without one. */
#include "sim_control.h"

#include <level_zero/ze_api.h>

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DRIVER(name) __typeof__(name) *name;
static struct {
#include "test_sim_ze.def"
    ze_result_t (*zeInitDrivers)(uint32_t *, ze_driver_handle_t *, void *);
    ze_result_t (*zeCommandListHostSynchronize)(ze_command_list_handle_t, uint64_t);
} ze;
#undef DRIVER

#define GOOD(call) assert_int_equal(call, ZE_RESULT_SUCCESS)
enum { BYTES = 4096, IN_ORDER = 2 };

static bool is_new;
static ze_driver_handle_t driver;
static ze_device_handle_t device[2];
static ze_context_handle_t context;
static ze_event_pool_handle_t pool;
static uint32_t next_index;

static void *find(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "no %s\n", name);
        exit(2);
    }
    return found;
}

static void open_driver(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
#define DRIVER(name) *(void **)&ze.name = find(library, #name);
#include "test_sim_ze.def"
#undef DRIVER
    *(void **)&ze.zeInitDrivers = find(library, "zeInitDrivers");
    *(void **)&ze.zeCommandListHostSynchronize = find(library, "zeCommandListHostSynchronize");
}

/* ---- making things */

static int set_up(void **state)
{
    const ze_context_desc_t contexts = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    const ze_event_pool_desc_t pools = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
                                        .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE,
                                        .count = 64};
    uint32_t count = 1, devices = 2;
    (void)state;
    next_index = 0;
    return ze.zeInit(ZE_INIT_FLAG_GPU_ONLY) || ze.zeDriverGet(&count, &driver) ||
           ze.zeDeviceGet(driver, &devices, device) ||
           ze.zeContextCreate(driver, &contexts, &context) ||
           ze.zeEventPoolCreate(context, &pools, 0, NULL, &pool);
}

static int tear_down(void **state)
{
    (void)state;
    ze.sim_hold(0);
    return ze.zeEventPoolDestroy(pool) || ze.zeContextDestroy(context) || ze.sim_alive("stream") ||
           ze.sim_alive("event") || ze.sim_alive("device");
}

static ze_command_list_handle_t new_list(int which, uint32_t flags)
{
    const ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                          .ordinal = 1,
                                          .flags = flags,
                                          .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS};
    ze_command_list_handle_t list = NULL;
    GOOD(ze.zeCommandListCreateImmediate(context, device[which], &desc, &list));
    return list;
}

static ze_event_handle_t new_event(void)
{
    const ze_event_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC,
                                  .index = next_index++,
                                  .signal = ZE_EVENT_SCOPE_FLAG_HOST,
                                  .wait = ZE_EVENT_SCOPE_FLAG_HOST};
    ze_event_handle_t event = NULL;
    GOOD(ze.zeEventCreate(pool, &desc, &event));
    return event;
}

static char *new_memory(int which)
{
    const ze_device_mem_alloc_desc_t on_device = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    const ze_host_mem_alloc_desc_t on_host = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    void *pointer = NULL;
    if (which < 0)
        GOOD(ze.zeMemAllocHost(context, &on_host, BYTES, 64, &pointer));
    else
        GOOD(ze.zeMemAllocDevice(context, &on_device, BYTES, 64, device[which], &pointer));
    return pointer;
}

static void finish(ze_command_list_handle_t list)
{
    ze_event_handle_t event = new_event();
    GOOD(ze.zeCommandListAppendBarrier(list, event, 0, NULL));
    GOOD(ze.zeEventHostSynchronize(event, UINT64_MAX));
    GOOD(ze.zeEventDestroy(event));
    next_index--;
}

static void copy(ze_command_list_handle_t list, void *dst, const void *src)
{
    GOOD(ze.zeCommandListAppendMemoryCopy(list, dst, src, BYTES, NULL, 0, NULL));
}

/* ---- rules */

static void what_stands_between_two_barriers_is_permuted(void **state)
{
    ze_command_list_handle_t list = new_list(0, 0);
    char *host = new_memory(-1), *first = new_memory(0), *second = new_memory(0);
    int wrong = 0;
    (void)state;
    for (int i = 0; i < 40; i++) { /* a chain of three copies without barriers */
        memset(host, i, BYTES);
        copy(list, first, host);
        copy(list, second, first);
        copy(list, host, second);
        finish(list);
        wrong += host[0] != (char)i;
    }
    assert_true(wrong > 0);
    for (int i = 0; i < 40; i++) {
        memset(host, i, BYTES);
        copy(list, first, host);
        GOOD(ze.zeCommandListAppendBarrier(list, NULL, 0, NULL));
        copy(list, second, first);
        GOOD(ze.zeCommandListAppendBarrier(list, NULL, 0, NULL));
        copy(list, host, second);
        finish(list);
        assert_int_equal(host[0], (char)i);
    }
    GOOD(ze.zeMemFree(context, host));
    GOOD(ze.zeMemFree(context, first));
    GOOD(ze.zeMemFree(context, second));
    GOOD(ze.zeCommandListDestroy(list));
}

static void a_list_in_order_is_one_from_api_1_7_on(void **state)
{
    const ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                          .ordinal = 1,
                                          .flags = IN_ORDER,
                                          .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS};
    ze_command_list_handle_t list = NULL;
    (void)state;
    if (!is_new) {
        assert_int_equal(ze.zeCommandListCreateImmediate(context, device[0], &desc, &list),
                         ZE_RESULT_ERROR_INVALID_ENUMERATION);
        assert_null(list);
        return;
    }
    list = new_list(0, IN_ORDER);
    char *host = new_memory(-1), *memory = new_memory(0);
    for (int i = 0; i < 40; i++) {
        memset(host, i, BYTES);
        copy(list, memory, host);
        copy(list, host, memory);
        finish(list);
        assert_int_equal(host[BYTES - 1], (char)i);
    }
    GOOD(ze.zeCommandListHostSynchronize(list, UINT64_MAX));
    GOOD(ze.zeMemFree(context, host));
    GOOD(ze.zeMemFree(context, memory));
    GOOD(ze.zeCommandListDestroy(list));
}

static void an_event_has_two_states_and_a_waiter_reads_them_late(void **state)
{
    ze_command_list_handle_t one = new_list(0, 0), other = new_list(1, 0);
    ze_event_handle_t event = new_event(), after = new_event();
    (void)state;
    assert_int_equal(ze.zeEventQueryStatus(event), ZE_RESULT_NOT_READY);
    GOOD(ze.zeCommandListAppendSignalEvent(one, event));
    GOOD(ze.zeEventHostSynchronize(event, UINT64_MAX));
    GOOD(ze.zeEventQueryStatus(event));
    ze.sim_hold(1);
    GOOD(ze.zeCommandListAppendBarrier(other, after, 1, &event));
    GOOD(ze.zeEventHostReset(event)); /* too soon: the waiter has not looked yet */
    ze.sim_hold(0);
    assert_int_equal(ze.zeEventHostSynchronize(after, 50000000), ZE_RESULT_NOT_READY);
    GOOD(ze.zeEventHostSignal(event));
    GOOD(ze.zeEventHostSynchronize(after, UINT64_MAX));
    finish(one);
    finish(other);
    GOOD(ze.zeEventDestroy(event));
    GOOD(ze.zeEventDestroy(after));
    GOOD(ze.zeCommandListDestroy(one));
    GOOD(ze.zeCommandListDestroy(other));
}

static void pageable_memory_is_read_when_the_copy_runs(void **state)
{
    static char pageable[BYTES];
    ze_command_list_handle_t list = new_list(0, 0);
    char *memory = new_memory(0), *host = new_memory(-1);
    (void)state;
    ze.sim_hold(1);
    memset(pageable, 1, BYTES);
    copy(list, memory, pageable);
    memset(pageable, 2, BYTES);
    ze.sim_hold(0);
    GOOD(ze.zeCommandListAppendBarrier(list, NULL, 0, NULL));
    copy(list, host, memory);
    finish(list);
    assert_int_equal(host[0], 2);
    GOOD(ze.zeMemFree(context, host));
    GOOD(ze.zeMemFree(context, memory));
    GOOD(ze.zeCommandListDestroy(list));
}

static void the_clock_wraps_and_has_two_units(void **state)
{
    ze_device_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
    ze_command_list_handle_t list = new_list(0, 0);
    uint64_t *time = (uint64_t *)(void *)new_memory(-1);
    (void)state;
    GOOD(ze.zeDeviceGetProperties(device[0], &properties));
    assert_int_equal(properties.timerResolution, 83);
    properties.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2;
    GOOD(ze.zeDeviceGetProperties(device[0], &properties));
    assert_int_equal(properties.timerResolution, 12000000);
    GOOD(ze.zeCommandListAppendWriteGlobalTimestamp(list, time, NULL, 0, NULL));
    finish(list);
    assert_int_equal(*time >> properties.timestampValidBits, 0);
    GOOD(ze.zeMemFree(context, time));
    GOOD(ze.zeCommandListDestroy(list));
}

static void what_is_newer_than_the_driver_is_not_supported(void **state)
{
    struct {
        uint32_t stype;
        const void *next;
        uint32_t flags;
    } desc = {0x20021, NULL, 1};
    uint32_t count = 0;
    (void)state;
    assert_int_equal(ze.zeInitDrivers(&count, NULL, &desc),
                     is_new ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
    assert_int_equal(count, is_new ? 1 : 0);
}

static void wrong_types_flags_sizes_and_handles_are_refused(void **state)
{
    const ze_device_mem_alloc_desc_t good = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    const ze_device_mem_alloc_desc_t bad = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC};
    ze_command_list_handle_t list = new_list(0, 0);
    char *theirs = new_memory(1), *host = new_memory(-1);
    void *pointer = &pointer;
    (void)state;
    assert_int_equal(ze.zeMemAllocDevice(context, &bad, 64, 64, device[0], &pointer),
                     ZE_RESULT_ERROR_INVALID_ENUMERATION);
    assert_int_equal(ze.zeMemAllocDevice(context, &good, (size_t)1 << 40, 64, device[0], &pointer),
                     ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
    assert_int_equal(ze.zeMemAllocDevice(context, &good, 64, 3, device[0], &pointer),
                     ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT);
    assert_int_equal(ze.zeMemAllocDevice(context, &good, 64, 64, NULL, &pointer),
                     ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    assert_ptr_equal(pointer, &pointer);
    assert_int_equal(ze.zeCommandListAppendMemoryCopy(list, theirs, host, 64, NULL, 0, NULL),
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ze.zeCommandListAppendSignalEvent(list, (ze_event_handle_t)(void *)host),
                     ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT);
    assert_int_equal(ze.zeEventPoolDestroy(pool), ZE_RESULT_SUCCESS);
    GOOD(ze.zeMemFree(context, theirs));
    GOOD(ze.zeMemFree(context, host));
    assert_int_equal(ze.zeMemFree(context, host), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    GOOD(ze.zeCommandListDestroy(list));
    assert_int_equal(ze.zeCommandListDestroy(list), ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    const ze_event_pool_desc_t pools = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .count = 1};
    GOOD(ze.zeEventPoolCreate(context, &pools, 0, NULL, &pool));
}

static void a_pool_with_events_is_in_use(void **state)
{
    ze_event_handle_t event = new_event();
    (void)state;
    assert_int_equal(ze.zeEventPoolDestroy(pool), ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE);
    assert_int_equal(ze.zeContextDestroy(context), ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE);
    GOOD(ze.zeEventDestroy(event));
}

#define RULE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        RULE(what_stands_between_two_barriers_is_permuted),
        RULE(a_list_in_order_is_one_from_api_1_7_on),
        RULE(an_event_has_two_states_and_a_waiter_reads_them_late),
        RULE(pageable_memory_is_read_when_the_copy_runs),
        RULE(the_clock_wraps_and_has_two_units),
        RULE(what_is_newer_than_the_driver_is_not_supported),
        RULE(wrong_types_flags_sizes_and_handles_are_refused),
        RULE(a_pool_with_events_is_in_use),
    };
    if (argc < 3) {
        fprintf(stderr, "usage: %s path/of/libze_sim.so.1 old|new\n", argv[0]);
        return 2;
    }
    is_new = !strcmp(argv[2], "new");
    open_driver(argv[1]);
    return cmocka_run_group_tests_name(argv[2], tests, NULL, NULL);
}
