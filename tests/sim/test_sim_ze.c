/* test_sim_ze.c: the simulated Level Zero driver follows the specification. argv[1] is the library,
 * argv[2] "old" or "new". The tests call it directly, without a loader. */
#include "sim_control.h"

#include <level_zero/ze_api.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define DRIVER(name) __typeof__(name) *name;
static struct {
#include "test_sim_ze.def"
    ze_result_t (*zeInitDrivers)(uint32_t *, ze_driver_handle_t *, void *);
    ze_result_t (*zeCommandListHostSynchronize)(ze_command_list_handle_t, uint64_t);
} ze;
#undef DRIVER

#define GOOD(call) assert_int_equal(call, ZE_RESULT_SUCCESS)
enum { BYTES = 4096, IN_ORDER = 2, OFFLOAD = 4 };

static bool is_new;
static void *library;
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
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
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

/* ---- helpers */

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

static void appends_between_two_barriers_run_in_any_order(void **state)
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
    GOOD(ze.zeEventHostReset(event)); /* too early: the wait has not run yet */
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

/* The group 0. */
static void a_copy_queue_takes_copies_and_fills_of_bytes_and_no_kernels(void **state)
{
    const ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                          .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS};
    const ze_group_count_t groups = {1, 1, 1};
    const int word = 0x01010101;
    ze_command_list_handle_t list = NULL;
    char *memory = new_memory(0), *host = new_memory(-1);
    (void)state;
    GOOD(ze.zeCommandListCreateImmediate(context, device[0], &desc, &list));
    assert_int_equal(ze.zeCommandListAppendMemoryFill(list, memory, &word, 4, BYTES, NULL, 0, NULL),
                     ZE_RESULT_ERROR_INVALID_SIZE);
    GOOD(ze.zeCommandListAppendMemoryFill(list, memory, &word, 1, BYTES, NULL, 0, NULL));
    GOOD(ze.zeCommandListAppendBarrier(list, NULL, 0, NULL));
    copy(list, host, memory);
    finish(list);
    assert_int_equal(host[BYTES - 1], 1);
    assert_int_equal(ze.zeCommandListAppendLaunchKernel(list, NULL, &groups, NULL, 0, NULL),
                     ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE);
    GOOD(ze.zeMemFree(context, host));
    GOOD(ze.zeMemFree(context, memory));
    GOOD(ze.zeCommandListDestroy(list));
}

static void the_driver_chooses_the_engine_of_copies_from_api_1_14_on(void **state)
{
    const ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                          .ordinal = 1,
                                          .flags = OFFLOAD,
                                          .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS};
    ze_command_list_handle_t list = NULL;
    (void)state;
    assert_int_equal(ze.zeCommandListCreateImmediate(context, device[0], &desc, &list),
                     is_new ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ENUMERATION);
    if (is_new)
        GOOD(ze.zeCommandListDestroy(list));
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

static void functions_newer_than_the_driver_are_not_supported(void **state)
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
    char *foreign = new_memory(1), *host = new_memory(-1);
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
    assert_int_equal(ze.zeCommandListAppendMemoryCopy(list, foreign, host, 64, NULL, 0, NULL),
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ze.zeCommandListAppendSignalEvent(list, (ze_event_handle_t)(void *)host),
                     ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT);
    assert_int_equal(ze.zeEventPoolDestroy(pool), ZE_RESULT_SUCCESS);
    GOOD(ze.zeMemFree(context, foreign));
    GOOD(ze.zeMemFree(context, host));
    assert_int_equal(ze.zeMemFree(context, host), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    GOOD(ze.zeCommandListDestroy(list));
    assert_int_equal(ze.zeCommandListDestroy(list), ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    const ze_event_pool_desc_t pools = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .count = 1};
    GOOD(ze.zeEventPoolCreate(context, &pools, 0, NULL, &pool));
}

static void a_handle_to_memory_has_a_file_that_ends_with_the_memory(void **state)
{
    ze_ipc_mem_handle_t handles[2] = {{{0}}, {{0}}};
    char *memory = new_memory(0), *host = new_memory(-1);
    void *opened = NULL;
    int files[2], process;
    (void)state;
    for (int i = 0; i < 2; i++) {
        GOOD(ze.zeMemGetIpcHandle(context, memory, &handles[i]));
        memcpy(&files[i], handles[i].data, sizeof files[i]);
        assert_true(fcntl(files[i], F_GETFD) >= 0);
    }
    memcpy(&process, handles[0].data + 16, sizeof process);
    assert_int_equal(process, is_new ? getpid() : 0);
    assert_int_equal(files[0] == files[1], is_new);
    assert_int_equal(ze.zeMemGetIpcHandle(context, host, &handles[1]),
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    memset(handles[1].data, 0, sizeof handles[1].data); /* the file 0 is no memory */
    assert_int_equal(ze.zeMemOpenIpcHandle(context, device[0], handles[1], 0, &opened),
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    assert_null(opened);
    GOOD(ze.zeMemFree(context, memory));
    GOOD(ze.zeMemFree(context, host));
    assert_int_equal(fcntl(files[0], F_GETFD), -1);
    assert_int_equal(fcntl(files[1], F_GETFD), -1);
}

static void advice_needs_shared_memory_and_is_newer_for_the_host(void **state)
{
    const ze_device_mem_alloc_desc_t on_device = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    const ze_host_mem_alloc_desc_t on_host = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    ze_memory_allocation_properties_t properties = {
        .stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
    const ze_memory_advice_t for_host = (ze_memory_advice_t)8;
    ze_command_list_handle_t list = new_list(0, 0);
    char *memory = new_memory(0);
    void *shared = NULL;
    (void)state;
    GOOD(ze.zeMemAllocShared(context, &on_device, &on_host, BYTES, 64, device[0], &shared));
    GOOD(ze.zeMemGetAllocProperties(context, shared, &properties, NULL));
    assert_int_equal(properties.type, ZE_MEMORY_TYPE_SHARED);
    GOOD(ze.zeCommandListAppendMemoryPrefetch(list, shared, BYTES));
    GOOD(ze.zeCommandListAppendMemAdvise(list, device[0], shared, BYTES, 0));
    assert_int_equal(ze.zeCommandListAppendMemAdvise(list, device[0], memory, BYTES, 0),
                     ZE_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ze.zeCommandListAppendMemAdvise(list, device[0], shared, BYTES, for_host),
                     is_new ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ENUMERATION);
    finish(list);
    GOOD(ze.zeMemFree(context, shared));
    GOOD(ze.zeMemFree(context, memory));
    GOOD(ze.zeCommandListDestroy(list));
}

static void *extension(const char *name)
{
    void *found = NULL;
    assert_int_equal(ze.zeDriverGetExtensionFunctionAddress(driver, name, &found),
                     is_new ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT);
    return found;
}

static void imports_of_host_memory_are_not_counted_and_may_not_overlap(void **state)
{
    static char bytes[4 * BYTES];
    ze_memory_allocation_properties_t properties = {
        .stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
    ze_result_t (*import)(ze_driver_handle_t, void *, size_t);
    ze_result_t (*release)(ze_driver_handle_t, void *);
    ze_result_t (*base_of)(ze_driver_handle_t, void *, void **);
    void *base = NULL;
    (void)state;
    *(void **)&import = extension("zexDriverImportExternalPointer");
    *(void **)&release = extension("zexDriverReleaseImportedPointer");
    *(void **)&base_of = extension("zexDriverGetHostPointerBaseAddress");
    if (!is_new)
        return;
    GOOD(import(driver, bytes + BYTES, 2 * BYTES));
    GOOD(import(driver, bytes + 2 * BYTES, BYTES)); /* a part of it */
    assert_int_equal(import(driver, bytes, 2 * BYTES), ZE_RESULT_ERROR_INVALID_SIZE);
    assert_int_equal(import(driver, bytes + 2 * BYTES, 2 * BYTES),
                     ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE);
    assert_int_equal(import(driver, bytes, 0), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    GOOD(base_of(driver, bytes + 3 * BYTES - 1, &base));
    assert_ptr_equal(base, bytes + BYTES);
    GOOD(ze.zeMemGetAllocProperties(context, bytes + BYTES, &properties, NULL));
    assert_int_equal(properties.type, ZE_MEMORY_TYPE_UNKNOWN);
    GOOD(release(driver, bytes + 2 * BYTES));
    assert_int_equal(release(driver, bytes + BYTES), ZE_RESULT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(base_of(driver, bytes + BYTES, &base), ZE_RESULT_ERROR_INVALID_ARGUMENT);
}

static void *wait_for_list(void *list)
{
    ze.zeCommandListHostSynchronize(list, UINT64_MAX);
    return NULL;
}

/* The wait status of a new process, which has to start the driver itself. */
static int run_in_child(void (*program)(void))
{
    int status = 0;
    const pid_t child = fork();
    if (!child) {
        signal(SIGSEGV, SIG_DFL);
        alarm(60); /* a safety net: SIGALRM */
        program();
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void use_a_list_in_two_threads(void)
{
    pthread_t waiter;
    void *state = NULL;
    if (set_up(&state))
        _exit(2);
    ze_command_list_handle_t list = new_list(0, IN_ORDER);
    ze.sim_hold(1);
    ze.zeCommandListAppendBarrier(list, NULL, 0, NULL);
    pthread_create(&waiter, NULL, wait_for_list, list);
    for (;;) /* until the other thread waits */
        ze.zeCommandListAppendBarrier(list, NULL, 0, NULL);
}

static void a_list_in_two_threads_ends_the_process(void **state)
{
    (void)state;
    const int status = run_in_child(use_a_list_in_two_threads);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* In a new process, which loses its device while a copy of this size runs. */
static void free_memory_of_a_running_copy(void)
{
    enum { MANY = 64 << 20 };
    const ze_host_mem_alloc_desc_t on_host = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    void *state = NULL, *from = NULL, *to = NULL;
    if (set_up(&state) || ze.zeMemAllocHost(context, &on_host, MANY, 64, &from) ||
        ze.zeMemAllocHost(context, &on_host, MANY, 64, &to))
        _exit(2);
    ze_command_list_handle_t list = new_list(0, 0);
    memset(from, 1, MANY);
    memset(to, 0, MANY);
    ze.zeCommandListAppendMemoryCopy(list, to, from, MANY, NULL, 0, NULL);
    const volatile char *bytes = to;
    while (!bytes[MANY / 2]) /* a copy may begin and end with either end */
        usleep(10);
    ze.sim_fail("zeCommandListAppendBarrier:1=1879048193");
    if (ze.zeCommandListAppendBarrier(list, NULL, 0, NULL) != ZE_RESULT_ERROR_DEVICE_LOST)
        _exit(3);
    if (ze.zeMemFree(context, from))
        _exit(4);
    _exit(memchr(to, 0, MANY) ? 5 : 0);
}

/* As newer loaders do when the process ends. The threads of the library still exist. */
static void close_the_library_with_unfinished_work(void)
{
    void *state = NULL;
    if (set_up(&state))
        _exit(2);
    ze.sim_hold(1);
    ze.zeCommandListAppendBarrier(new_list(0, 0), NULL, 0, NULL);
    dlclose(library);
    usleep(100000);
    _exit(0);
}

static void the_library_may_be_closed_with_unfinished_work(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(close_the_library_with_unfinished_work), 0);
}

static atomic_int refusals; /* of new threads */

/* Instead of the C library's. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *argument)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return atomic_fetch_sub(&refusals, 1) > 0 ? EAGAIN : real(thread, attributes, start, argument);
}

static void finish_work_with_few_threads(void)
{
    void *state = NULL;
    if (set_up(&state))
        _exit(2);
    atomic_store(&refusals, 3);
    finish(new_list(0, 0));
    _exit(atomic_load(&refusals) > 0 ? 3 : 0);
}

static void work_runs_as_soon_as_a_thread_can_be_started(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(finish_work_with_few_threads), 0);
}

static void memory_of_a_lost_device_may_be_freed_at_once(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(free_memory_of_a_running_copy), 0);
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
    const struct CMUnitTest early[] = {
        cmocka_unit_test(memory_of_a_lost_device_may_be_freed_at_once),
        cmocka_unit_test(the_library_may_be_closed_with_unfinished_work),
        cmocka_unit_test(work_runs_as_soon_as_a_thread_can_be_started),
        cmocka_unit_test(a_list_in_two_threads_ends_the_process), /* 1.3 has no wait for a list */
    };
    const struct CMUnitTest tests[] = {
        RULE(appends_between_two_barriers_run_in_any_order),
        RULE(a_list_in_order_is_one_from_api_1_7_on),
        RULE(an_event_has_two_states_and_a_waiter_reads_them_late),
        RULE(a_copy_queue_takes_copies_and_fills_of_bytes_and_no_kernels),
        RULE(the_driver_chooses_the_engine_of_copies_from_api_1_14_on),
        RULE(pageable_memory_is_read_when_the_copy_runs),
        RULE(the_clock_wraps_and_has_two_units),
        RULE(functions_newer_than_the_driver_are_not_supported),
        RULE(wrong_types_flags_sizes_and_handles_are_refused),
        RULE(a_pool_with_events_is_in_use),
        RULE(imports_of_host_memory_are_not_counted_and_may_not_overlap),
        RULE(a_handle_to_memory_has_a_file_that_ends_with_the_memory),
        RULE(advice_needs_shared_memory_and_is_newer_for_the_host),
    };
    if (argc < 3) {
        fprintf(stderr, "usage: %s path/of/libze_sim.so.1 old|new\n", argv[0]);
        return 2;
    }
    is_new = !strcmp(argv[2], "new");
    open_driver(argv[1]);
    /* Before this process uses the driver: a child forked later could not. */
    const int failed = _cmocka_run_group_tests("process", early, is_new ? 4 : 3, NULL, NULL);
    return failed + cmocka_run_group_tests_name(argv[2], tests, NULL, NULL);
}
