/* test_sim_process.c: process-wide behaviour: init, visibility masks, fork, exit, crashes and
 * hangs. */
#include "test_sim_driver.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition) \
    if (!(condition))    \
    return __LINE__ & 0xff

static int count_before_init(void)
{
    int count = 7;
    CHECK(cu.cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(count == 7);
    CHECK(cu.cuInit(1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cu.cuInit(0) == CUDA_SUCCESS);
    CHECK(cu.cuDeviceGetCount(&count) == CUDA_SUCCESS && count == 2);
    CHECK(cu.cuDeviceGetCount(NULL) == CUDA_ERROR_INVALID_VALUE);
    return 0;
}

static void before_init_everything_answers_not_initialised(void **state)
{
    (void)state;
    assert_int_equal(in_child(count_before_init), 0);
}

static int init_under_masks(const char *mask, int expected)
{
    int count = 7;
    setenv("CUDA_VISIBLE_DEVICES", mask, 1);
    if (!expected) {
        CHECK(cu.cuInit(0) == CUDA_ERROR_NO_DEVICE);
        CHECK(cu.cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED);
        return 0;
    }
    CHECK(cu.cuInit(0) == CUDA_SUCCESS);
    CHECK(cu.cuDeviceGetCount(&count) == CUDA_SUCCESS && count == expected);
    return 0;
}

static int empty_mask(void)
{
    return init_under_masks("", 0);
}

static int negative_mask(void)
{
    return init_under_masks("-1", 0);
}

static int absent_mask(void)
{
    return init_under_masks("99", 0);
}

static int second_only(void)
{
    char name[64];
    CHECK(!init_under_masks("1,99,0", 1));
    CHECK(cu.cuDeviceGetName(name, sizeof name, 0) == CUDA_SUCCESS);
    CHECK(strchr(name, '1'));
    return 0;
}

static void a_mask_without_devices_fails_init(void **state)
{
    (void)state;
    assert_int_equal(in_child(empty_mask), 0);
    assert_int_equal(in_child(negative_mask), 0);
    assert_int_equal(in_child(absent_mask), 0);
    assert_int_equal(in_child(second_only), 0);
}

static int grandchild(void)
{
    int count = 7;
    CUcontext context;
    CHECK(cu.cuInit(0) == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(cu.cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(cu.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(cu.cuStreamQuery(NULL) == CUDA_ERROR_NOT_INITIALIZED);
    return 0;
}

static int fork_after_init(void)
{
    CHECK(cu.cuInit(0) == CUDA_SUCCESS);
    return in_child(grandchild);
}

static void a_child_of_an_initialised_process_is_refused(void **state)
{
    (void)state;
    assert_int_equal(in_child(fork_after_init), 0);
}

static int read_and_exit(volatile int *pinned)
{
    while (*pinned != 42)
        usleep(200);
    return 0;
}

static volatile int *shared_word;

static int read_in_grandchild(void)
{
    return read_and_exit(shared_word);
}

static int share_pinned_memory(void)
{
    void *state = NULL;
    CHECK(!fresh_context(&state));
    shared_word = new_pinned(sizeof *shared_word);
    *shared_word = 42;
    return in_child(read_in_grandchild);
}

static void pinned_memory_is_shared_with_a_child(void **state)
{
    (void)state;
    assert_int_equal(in_child(share_pinned_memory), 0);
}

static int threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = -2; /* . and .. */
    while (tasks && readdir(tasks))
        count++;
    if (tasks)
        closedir(tasks);
    return count;
}

#ifdef __SANITIZE_THREAD__ /* it starts one more thread */
enum { NEW_THREADS = 2 };
#else
enum { NEW_THREADS = 1 };
#endif

static int init_starts_one_thread(void)
{
    int before = threads();
    CHECK(cu.cuInit(0) == CUDA_SUCCESS);
    CHECK(threads() == before + NEW_THREADS);
    return 0;
}

static void only_init_starts_a_thread(void **state)
{
    (void)state;
    assert_int_equal(in_child(init_starts_one_thread), 0);
}

/* A thread names itself when it begins. */
static int threads_named(const char *name)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    for (const struct dirent *task; tasks && (task = readdir(tasks));) {
        char path[300], line[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(path, "r");
        if (!file)
            continue;
        count += fgets(line, sizeof line, file) && !strncmp(line, name, strlen(name));
        fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return count;
}

/* On one processor, where a new thread usually runs later than the one that started it. */
static int init_returns_when_the_thread_runs(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    CHECK(!sched_setaffinity(0, sizeof one, &one));
    CHECK(cu.cuInit(0) == CUDA_SUCCESS);
    CHECK(threads_named("gpuglue-sim") == 1);
    return 0;
}

static void the_thread_has_begun_when_init_returns(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++)
        assert_int_equal(in_child(init_returns_when_the_thread_runs), 0);
}

static int crash(void)
{
    setenv("GPUGLUE_SIM_CRASH", "cuInit", 1);
    signal(SIGABRT, SIG_DFL);
    return (int)cu.cuInit(0);
}

static int hang(void)
{
    setenv("GPUGLUE_SIM_HANG", "cuInit", 1);
    signal(SIGALRM, SIG_DFL);
    alarm(1);
    return (int)cu.cuInit(0);
}

static void a_named_call_can_crash_or_hang(void **state)
{
    (void)state;
    assert_int_equal(in_child(crash), -SIGABRT);
    assert_int_equal(in_child(hang), -SIGALRM);
}

static int touch_device_memory(void)
{
    void *state = NULL;
    CHECK(!fresh_context(&state));
    signal(SIGSEGV, SIG_DFL);
    *(volatile char *)(uintptr_t)new_memory(64) = 1;
    return 0;
}

static void the_host_cannot_touch_device_memory(void **state)
{
    (void)state;
    assert_int_equal(in_child(touch_device_memory), -SIGSEGV);
}

static int leave_a_leak(void)
{
    void *state = NULL;
    CHECK(!fresh_context(&state));
    new_memory(64);
    cu.cuStreamDestroy_v2(new_stream(0));
    exit(0);
}

static void the_report_counts_calls_and_live_objects(void **state)
{
    char path[] = "/tmp/sim-report-XXXXXX", text[4096] = "";
    int file = mkstemp(path);
    (void)state;
    setenv("GPUGLUE_SIM_REPORT", path, 1);
    assert_int_equal(in_child(leave_a_leak), 0);
    unsetenv("GPUGLUE_SIM_REPORT");
    assert_true(read(file, text, sizeof text - 1) > 0);
    close(file);
    unlink(path);
    assert_non_null(strstr(text, "\"device\": 1"));
    assert_non_null(strstr(text, "\"stream\": 0"));
    assert_non_null(strstr(text, "\"cuMemAlloc_v2\": 1"));
}

int run_process_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_init_everything_answers_not_initialised),
        cmocka_unit_test(a_mask_without_devices_fails_init),
        cmocka_unit_test(a_child_of_an_initialised_process_is_refused),
        cmocka_unit_test(pinned_memory_is_shared_with_a_child),
        cmocka_unit_test(only_init_starts_a_thread),
        cmocka_unit_test(the_thread_has_begun_when_init_returns),
        cmocka_unit_test(a_named_call_can_crash_or_hang),
        cmocka_unit_test(the_host_cannot_touch_device_memory),
        cmocka_unit_test(the_report_counts_calls_and_live_objects),
    };
    return cmocka_run_group_tests_name("processes", tests, NULL, NULL);
}
