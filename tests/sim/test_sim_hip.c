/* test_sim_hip.c: the simulated HIP runtime follows the rules of the real runtime. argv[1] is the
 * library, SIM_HIP its version. */
#include "test_sim_hip.h"

#include <stdio.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

enum { SIZE = 4096, LATER = SIM_HIP >= 6 };

/* ---- process start */

static int no_device_is_answered(void)
{
    int count = 7;
    void *memory = NULL;
    hipError_t none = LATER ? hipErrorNoDevice : hipErrorInvalidDevice;
    return hip.hipInit(0) == none && hip.hipGetDeviceCount(&count) == hipErrorNoDevice && !count &&
           hip.hipMalloc(&memory, SIZE) == none && !memory;
}
static void without_a_device_each_version_has_its_own_code(void **state)
{
    (void)state;
    assert_int_equal(in_child("GPUGLUE_SIM_DEVICES", "0", no_device_is_answered), 0);
    assert_int_equal(in_child("HIP_VISIBLE_DEVICES", "", no_device_is_answered), 0);
    assert_int_equal(in_child("CUDA_VISIBLE_DEVICES", "9", no_device_is_answered), 0);
}

static int second_device_is_the_first(void)
{
    char bus[32] = "";
    return !hip.hipDeviceGetPCIBusId(bus, sizeof bus, 0) && !strcmp(bus, "0000:41:00.0");
}
static void the_mask_renumbers_devices(void **state)
{
    (void)state;
    assert_int_equal(in_child("HIP_VISIBLE_DEVICES", "1", second_device_is_the_first), 0);
}

static int works_without_init(void)
{
    void *memory = NULL;
    return !hip.hipMalloc(&memory, SIZE) && memory && !hip.hipFree(memory);
}
static void any_call_initialises(void **state)
{
    (void)state;
    assert_int_equal(in_child("GPUGLUE_SIM_SEED", "1", works_without_init), 0);
}

static int is_refused(void)
{
    int device = 7;
    return hip.hipGetDevice(&device) == hipErrorNotInitialized && device == 7;
}
static int query_a_destroyed_stream(void)
{
    hipStream_t stream = new_stream(0);
    hip.hipStreamDestroy(stream);
    return hip.hipStreamQuery(stream) == hipErrorContextIsDestroyed;
}

static int ask_a_destroyed_stream_for_its_capture(void)
{
    hipStreamCaptureStatus capture;
    hipStream_t stream = new_stream(0);
    hip.hipStreamDestroy(stream);
    return hip.hipStreamIsCapturing(stream, &capture) ==
           (FROM_57 ? hipErrorContextIsDestroyed : hipErrorInvalidValue);
}

/* Here the event is looked at first, and from 5.7 on both have one code. */
static int make_a_destroyed_stream_wait(void)
{
    hipEvent_t event;
    hipStream_t stream = new_stream(0);
    hip.hipStreamDestroy(stream);
    return !hip.hipEventCreateWithFlags(&event, 0) &&
           hip.hipStreamWaitEvent(stream, NULL, 0) == hipErrorInvalidHandle &&
           hip.hipStreamWaitEvent(stream, event, 0) ==
               (FROM_57 ? hipErrorInvalidHandle : hipErrorContextIsDestroyed);
}

static void a_stream_that_was_destroyed_is_an_error_and_from_7_on_ends_the_process(void **state)
{
    int (*const uses[])(void) = {query_a_destroyed_stream, ask_a_destroyed_stream_for_its_capture,
                                 make_a_destroyed_stream_wait};
    (void)state;
    for (int i = 0; i < 3; i++) {
        const int status = in_child("GPUGLUE_SIM_SEED", "1", uses[i]);
        if (SIM_HIP < 7)
            assert_int_equal(status, 0);
        else
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

static int query_an_event_whose_stream_was_destroyed(void)
{
    hipEvent_t event;
    hipStream_t stream = new_stream(0);
    hip.hipEventCreateWithFlags(&event, 0);
    hip.hipEventRecord(event, stream);
    hip.hipStreamDestroy(stream);
    return hip.hipEventQuery(event) == hipSuccess;
}

static void a_query_of_an_event_whose_stream_was_destroyed_ends_the_process(void **state)
{
    const int status = in_child("GPUGLUE_SIM_SEED", "1", query_an_event_whose_stream_was_destroyed);
    (void)state;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void a_forked_child_is_refused(void **state)
{
    int device;
    (void)state;
    assert_int_equal(hip.hipGetDevice(&device), hipSuccess);
    assert_int_equal(in_child("GPUGLUE_SIM_SEED", "1", is_refused), 0);
}

/* ---- devices */

static void symbols_are_those_of_the_version(void **state)
{
    int version = 0;
    (void)state;
    assert_int_equal(hip.hipRuntimeGetVersion(&version), hipSuccess);
    assert_int_equal(version / 10000000, SIM_HIP);
    assert_int_equal(hip.hipLaunchHostFunc != NULL, FROM_57);
    assert_int_equal(hip.hipDrvGetErrorName != NULL, FROM_57);
    assert_int_equal(hip.hipGetDevicePropertiesR0600 != NULL, LATER);
    assert_int_equal(hip.hipStreamGetDevice != NULL, FROM_57);
    assert_int_equal(hip.hipExtGetLastError != NULL, LATER);
}

static void the_architecture_is_at_its_offset_in_each_layout(void **state)
{
    char fresh[4096];
    hipDeviceProp_t old;
    hipError_t (*ask)(void *properties, int device);
    (void)state;
    assert_int_equal(hip.hipGetDeviceProperties(&old, 0), hipSuccess);
    assert_string_equal(old.gcnArchName, "gfx942:sramecc+:xnack-");
    if (!LATER)
        return;
    memset(fresh, 0, sizeof fresh);
    memcpy(&ask, &hip.hipGetDevicePropertiesR0600, sizeof ask);
    assert_int_equal(ask(fresh, 0), hipSuccess);
    assert_string_equal(fresh + 1160, "gfx942:sramecc+:xnack-");
    assert_string_not_equal(fresh + 396, "gfx942:sramecc+:xnack-");
    assert_int_equal(fresh[1472], 0);
}

static void the_current_device_is_each_threads_own_and_0_at_first(void **state)
{
    int device = 7;
    (void)state;
    assert_int_equal(hip.hipGetDevice(&device), hipSuccess);
    assert_int_equal(device, 0);
    assert_int_equal(hip.hipSetDevice(1), hipSuccess);
    assert_int_equal(hip.hipGetDevice(&device), hipSuccess);
    assert_int_equal(device, 1);
    assert_int_equal(hip.hipSetDevice(2), hipErrorInvalidDevice);
    assert_int_equal(hip.hipGetDevice(&device), hipSuccess);
    assert_int_equal(device, 1);
}

static void invalid_queries_write_nothing(void **state)
{
    int value = 5;
    (void)state;
    assert_int_equal(hip.hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 0), hipSuccess);
    assert_int_equal(value, 64);
    assert_int_equal(hip.hipDeviceGetAttribute(&value, (hipDeviceAttribute_t)99999, 0),
                     hipErrorInvalidValue);
    assert_int_equal(hip.hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 2),
                     hipErrorInvalidDevice);
    assert_int_equal(value, 64);
}

static void the_last_error_is_that_of_the_last_call_and_from_7_on_the_last_failure(void **state)
{
    (void)state;
    hip.hipGetLastError();
    assert_int_equal(hip.hipSetDevice(99), hipErrorInvalidDevice);
    assert_int_equal(hip.hipSetDevice(0), hipSuccess);
    assert_int_equal(hip.hipPeekAtLastError(), SIM_HIP < 7 ? hipSuccess : hipErrorInvalidDevice);
    assert_int_equal(hip.hipSetDevice(99), hipErrorInvalidDevice);
    assert_int_equal(hip.hipPeekAtLastError(), hipErrorInvalidDevice);
    assert_int_equal(hip.hipGetLastError(), hipErrorInvalidDevice);
    assert_int_equal(hip.hipGetLastError(), hipSuccess);
    assert_string_equal(hip.hipGetErrorName(hipErrorInvalidDevice), "hipErrorInvalidDevice");
}

/* ---- memory */

static void memory_of_no_bytes_is_null_and_freeing_null_is_nothing(void **state)
{
    void *memory = &memory;
    (void)state;
    assert_int_equal(hip.hipMalloc(&memory, 0), hipSuccess);
    assert_null(memory);
    assert_int_equal(hip.hipFree(NULL), hipSuccess);
    assert_int_equal(hip.hipHostFree(NULL), hipSuccess);
    assert_int_equal(hip.hipMalloc(&memory, (size_t)1 << 50), hipErrorOutOfMemory);
    assert_null(memory);
}

static void memory_is_freed_once_and_by_its_own_function(void **state)
{
    char *memory = new_memory(SIZE), *pinned = new_pinned(SIZE);
    (void)state;
    assert_int_equal(hip.hipHostFree(memory), hipErrorInvalidValue);
    assert_int_equal(hip.hipFree(pinned), hipErrorInvalidValue);
    assert_int_equal(hip.hipFree(memory + 1), hipErrorInvalidValue);
    assert_int_equal(hip.hipFree(memory), hipSuccess);
    assert_int_equal(hip.hipFree(memory), hipErrorInvalidValue);
    assert_int_equal(hip.hipHostFree(pinned), hipSuccess);
}

static int kind_of(const void *pointer)
{
    hipPointerAttribute_t found;
    memset(&found, 0x7F, sizeof found);
    if (hip.hipPointerGetAttributes(&found, pointer))
        return found.device == 0x7F7F7F7F ? -1 : -2;
    return found.isManaged ? 100 + (int)found.memoryType : (int)found.memoryType;
}

static void kinds_of_memory_have_the_numbers_of_the_version(void **state)
{
    char *memory = new_memory(SIZE), *pinned = new_pinned(SIZE), here[8];
    void *managed = NULL, *base = NULL;
    size_t size = 0;
    (void)state;
    assert_int_equal(hip.hipMallocManaged(&managed, SIZE, hipMemAttachGlobal), hipSuccess);
    assert_int_equal(kind_of(pinned), LATER ? 1 : 0);
    assert_int_equal(kind_of(memory + 8), LATER ? 2 : 1);
    assert_int_equal(kind_of(managed), LATER ? 103 : FROM_57 ? 104 : 101);
    assert_int_equal(kind_of(here), LATER ? 0 : -1);
    assert_int_equal(hip.hipMemGetAddressRange(&base, &size, memory + 8), hipSuccess);
    assert_ptr_equal(base, memory);
    assert_int_equal(size, SIZE);
}

/* Its own handle is refused with another code than a wrong flag. */
static void memory_of_another_process_is_opened_with_the_flag_of_the_version(void **state)
{
    hipIpcMemHandle_t handle;
    void *opened = NULL;
    (void)state;
    assert_int_equal(hip.hipIpcGetMemHandle(&handle, new_memory(SIZE)), hipSuccess);
    assert_int_equal(hip.hipIpcOpenMemHandle(&opened, handle, LATER), hipErrorInvalidContext);
    assert_int_equal(hip.hipIpcOpenMemHandle(&opened, handle, !LATER), hipErrorInvalidValue);
}

static void rows_of_a_pitch_are_copied(void **state)
{
    char *memory = new_memory(64), *pinned = new_pinned(64);
    (void)state;
    memset(pinned, 0, 64);
    memcpy(pinned, "abcd", 4);
    assert_int_equal(hip.hipMemsetD8Async(memory, '.', 64, NULL), hipSuccess);
    assert_int_equal(hip.hipMemcpy2DAsync(memory, 16, pinned, 2, 2, 2, hipMemcpyHostToDevice, NULL),
                     hipSuccess);
    assert_int_equal(hip.hipMemcpy(pinned, memory, 20, hipMemcpyDeviceToHost), hipSuccess);
    assert_memory_equal(pinned, "ab..............cd..", 20);
    assert_int_equal(hip.hipMemcpy2DAsync(memory, 1, pinned, 2, 2, 2, hipMemcpyHostToDevice, NULL),
                     hipErrorInvalidValue);
}

static void slices_of_a_pitch_are_copied(void **state)
{
    char *memory = new_memory(64), *pinned = new_pinned(64);
    struct hipMemcpy3DParms box = {.srcPtr = {pinned, 2, 2, 2},
                                   .dstPtr = {memory, 4, 2, 3},
                                   .extent = {2, 2, 2},
                                   .kind = hipMemcpyHostToDevice};
    (void)state;
    memcpy(pinned, "abcdefgh", 8);
    assert_int_equal(hip.hipMemsetD8Async(memory, '.', 64, NULL), hipSuccess);
    assert_int_equal(hip.hipMemcpy3DAsync(&box, NULL), hipSuccess);
    assert_int_equal(hip.hipMemcpy(pinned, memory, 20, hipMemcpyDeviceToHost), hipSuccess);
    assert_memory_equal(pinned, "ab..cd......ef..gh..", 20);
    box.dstPtr.ysize = 1; /* fewer rows per slice than are copied */
    assert_int_equal(hip.hipMemcpy3DAsync(&box, NULL), hipErrorInvalidValue);
}

static void copies_check_their_operands_and_their_direction(void **state)
{
    char *memory = new_memory(SIZE), *pinned = new_pinned(SIZE);
    (void)state;
    assert_int_equal(hip.hipMemcpyHtoDAsync(memory, memory, 8, NULL), hipErrorInvalidValue);
    assert_int_equal(hip.hipMemcpyHtoDAsync(memory + SIZE - 4, pinned, 8, NULL),
                     hipErrorInvalidValue);
    assert_int_equal(hip.hipMemcpyDtoHAsync(pinned, pinned + SIZE, 8, NULL), hipErrorInvalidValue);
    assert_int_equal(hip.hipMemcpyAsync(memory, pinned, 8, (hipMemcpyKind)9, NULL),
                     hipErrorInvalidMemcpyDirection);
    assert_int_equal(hip.hipMemcpyHtoDAsync(memory, NULL, 0, NULL), hipSuccess);
}

static void faults_are_injected_and_a_lost_device_stays_lost(void **state)
{
    void *memory = NULL;
    (void)state;
    hip.sim_fail("hipMalloc:2=2,hipStreamQuery:1=719");
    assert_int_equal(hip.hipMalloc(&memory, SIZE), hipSuccess);
    assert_int_equal(hip.hipMalloc(&memory, SIZE), hipErrorOutOfMemory);
    assert_int_equal(hip.hipStreamQuery(NULL), hipErrorLaunchFailure);
    assert_int_equal(hip.hipMalloc(&memory, SIZE), hipErrorLaunchFailure);
    assert_int_equal(hip.hipSetDevice(1), hipSuccess);
    assert_int_equal(hip.hipMalloc(&memory, SIZE), hipSuccess);
}

/* The other device is lost while it copies between blocks of this one. */
static void memory_that_a_lost_device_uses_may_be_freed_at_once(void **state)
{
    enum { MANY = 64 << 20 };
    char *from = NULL, *to = NULL;
    (void)state;
    assert_int_equal(hip.hipHostMalloc((void **)&from, MANY, 0), hipSuccess);
    assert_int_equal(hip.hipHostMalloc((void **)&to, MANY, 0), hipSuccess);
    memset(from, 1, MANY);
    memset(to, 0, MANY);
    assert_int_equal(hip.hipSetDevice(1), hipSuccess);
    assert_int_equal(hip.hipMemcpyAsync(to, from, MANY, hipMemcpyHostToHost, NULL), hipSuccess);
    const volatile char *bytes = to;
    while (!bytes[MANY / 2]) /* a copy may begin and end with either end */
        usleep(10);
    hip.sim_fail("hipStreamQuery:1=719");
    assert_int_equal(hip.hipStreamQuery(NULL), hipErrorLaunchFailure);
    assert_int_equal(hip.hipSetDevice(0), hipSuccess);
    assert_int_equal(hip.hipHostFree(from), hipSuccess);
    assert_null(memchr(to, 0, MANY));
    assert_int_equal(hip.hipHostFree(to), hipSuccess);
}

static const struct CMUnitTest process_tests[] = {
    cmocka_unit_test(without_a_device_each_version_has_its_own_code),
    cmocka_unit_test(the_mask_renumbers_devices),
    cmocka_unit_test(any_call_initialises),
    cmocka_unit_test(a_stream_that_was_destroyed_is_an_error_and_from_7_on_ends_the_process),
    cmocka_unit_test(a_query_of_an_event_whose_stream_was_destroyed_ends_the_process),
    cmocka_unit_test(a_forked_child_is_refused),
};

static const struct CMUnitTest device_tests[] = {
    HIP_TEST(symbols_are_those_of_the_version),
    HIP_TEST(the_architecture_is_at_its_offset_in_each_layout),
    HIP_TEST(the_current_device_is_each_threads_own_and_0_at_first),
    HIP_TEST(invalid_queries_write_nothing),
    HIP_TEST(the_last_error_is_that_of_the_last_call_and_from_7_on_the_last_failure),
    HIP_TEST(memory_of_no_bytes_is_null_and_freeing_null_is_nothing),
    HIP_TEST(memory_is_freed_once_and_by_its_own_function),
    HIP_TEST(kinds_of_memory_have_the_numbers_of_the_version),
    HIP_TEST(memory_of_another_process_is_opened_with_the_flag_of_the_version),
    HIP_TEST(rows_of_a_pitch_are_copied),
    HIP_TEST(slices_of_a_pitch_are_copied),
    HIP_TEST(copies_check_their_operands_and_their_direction),
    HIP_TEST(faults_are_injected_and_a_lost_device_stays_lost),
    HIP_TEST(memory_that_a_lost_device_uses_may_be_freed_at_once),
};

int main(int argc, char **argv)
{
    int failed;
    if (argc < 2) {
        fprintf(stderr, "usage: %s path/of/libamdhip64.so.N\n", argv[0]);
        return 2;
    }
    open_runtime(argv[1]);
    failed = cmocka_run_group_tests_name("process", process_tests, NULL, NULL);
    failed += cmocka_run_group_tests_name("devices and memory", device_tests, NULL, NULL);
    return failed + run_stream_tests();
}
