/* test_newer.c: a program whose structs are larger than the library's, as those of a later version would be. The argument is
 * the file of the host kernels. */
#include "guard.h"

#include <gpuglue/backend.h>
#include <gpuglue/comm_device.h>
#include <gpuglue/stats.h>

/* Part of ABI 1: structs without a size, which are passed by pointer or in arrays. They cannot change. */
_Static_assert(sizeof(struct gg_copy_operand) == 40, "gg_copy_operand has no size");
_Static_assert(sizeof(struct gg_parameter) == 16, "gg_parameter has no size");
_Static_assert(sizeof(struct gg_symbol) == 24, "gg_symbol has no size");

static gg_device *device;
static const char *kernels_path;

static int open_device(void **state)
{
    (void)state;
    return gg_device_get("host", 0, &device) != GG_OK;
}

/* The library reports how much it wrote, and leaves the rest. */
#define CHECK_ANSWER(type, call)                                   \
    do {                                                           \
        GUARDED(struct type) theirs;                               \
        GUARD_SET(theirs);                                         \
        theirs.struct_size = sizeof theirs;                        \
        assert_int_equal(call, GG_OK);                             \
        assert_int_equal(theirs.struct_size, sizeof(struct type)); \
        GUARD_CHECK(theirs, sizeof(struct type));                  \
    } while (0)

static void larger_structs_are_filled_as_far_as_the_library_knows_them(void **state)
{
    gg_device *found;
    char local;
    (void)state;
    CHECK_ANSWER(gg_device_info, gg_device_info(device, &theirs.known));
    CHECK_ANSWER(gg_memory_stats, gg_device_memory_stats(device, &theirs.known));
    CHECK_ANSWER(gg_pool_stats, gg_pool_stats(device, GG_MEMORY_DEVICE, &theirs.known));
    CHECK_ANSWER(gg_pointer_info, gg_pointer_query(&local, &found, &theirs.known));
    CHECK_ANSWER(gg_error, gg_last_error(&theirs.known));
}

static void larger_statistics_are_filled_as_far_as_the_library_knows_them(void **state)
{
    GUARDED(struct gg_device_stats) theirs;
    (void)state;
    GUARD_SET(theirs);
    theirs.known = (struct gg_device_stats){.struct_size = sizeof theirs};
    assert_int_equal(gg_device_stats(device, &theirs.known), GG_OK);
    assert_int_equal(theirs.struct_size, sizeof(struct gg_device_stats));
    GUARD_CHECK(theirs, sizeof(struct gg_device_stats));
}

/* It is opened as far as the check for the own process. */
static void a_larger_handle_is_filled_and_read(void **state)
{
    struct gg_error error = {.struct_size = sizeof error};
    GUARDED(struct gg_ipc_handle) theirs;
    gg_memory *memory, *opened = NULL;
    (void)state;
    GUARD_SET(theirs);
    theirs.struct_size = sizeof theirs;
    assert_int_equal(gg_memory_alloc(device, GG_MEMORY_DEVICE, 100, NULL, &memory), GG_OK);
    assert_int_equal(gg_ipc_export(memory, &theirs.known), GG_OK);
    assert_int_equal(theirs.struct_size, sizeof(struct gg_ipc_handle));
    GUARD_CHECK(theirs, sizeof(struct gg_ipc_handle));
    theirs.struct_size = sizeof theirs;
    assert_int_equal(gg_ipc_open(&theirs.known, &opened), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_last_error(&error), GG_OK);
    assert_non_null(strstr(error.message, "is from this process"));
    gg_memory_release(memory);
}

static void launch(gg_kernel *kernel, gg_memory *memory, uint64_t value)
{
    void *pointer = gg_memory_pointer(memory);
    const void *const arguments[] = {&pointer, &value};
    const size_t sizes[] = {sizeof pointer, sizeof value};
    GUARDED(struct gg_launch) theirs;
    GUARD_SET(theirs);
    theirs.known = (struct gg_launch){.struct_size = sizeof theirs,
                                      .grid = {1, 1, 1},
                                      .block = {1, 1, 1},
                                      .argument_count = 2,
                                      .arguments = arguments,
                                      .sizes = sizes,
                                      .memories = &memory,
                                      .memory_count = 1};
    assert_int_equal(gg_kernel_launch(kernel, &theirs.known, NULL), GG_OK);
    assert_int_equal(gg_memory_wait(memory), GG_OK);
}

static void a_larger_launch_is_used(void **state)
{
    static char bytes[1 << 20];
    gg_module *module;
    gg_kernel *kernel;
    gg_memory *memory;
    FILE *file = fopen(kernels_path, "rb");
    (void)state;
    assert_non_null(file);
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    assert_true(feof(file));
    fclose(file);
    assert_int_equal(gg_module_load(device, bytes, size, &module), GG_OK);
    assert_int_equal(gg_module_kernel(module, "write_word", &kernel), GG_OK);
    assert_int_equal(gg_memory_alloc(device, GG_MEMORY_PINNED, 8, NULL, &memory), GG_OK);
    launch(kernel, memory, 12345);
    assert_int_equal(*(uint64_t *)gg_memory_pointer(memory), 12345);
    gg_memory_release(memory);
    gg_kernel_release(kernel);
    gg_module_release(module);
}

static void larger_options_of_communicators_are_used(void **state)
{
    GUARDED(struct gg_comm_options) one;
    GUARDED(struct gg_comm_all_options) all;
    gg_comm *comm = NULL, *comms[2] = {NULL, NULL};
    (void)state;
    GUARD_SET(one);
    one.known = (struct gg_comm_options){
        .struct_size = sizeof one, .size = 1, .port = 1, .timeout_ns = GG_FOREVER};
    assert_int_equal(gg_comm_create(&one.known, &comm), GG_OK);
    GUARD_SET(all);
    all.known =
        (struct gg_comm_all_options){.struct_size = sizeof all, .size = 2, .timeout_ns = GG_FOREVER};
    assert_int_equal(gg_comm_create_all(&all.known, comms), GG_OK);
    gg_comm_release(comm);
    gg_comm_release(comms[0]);
    gg_comm_release(comms[1]);
}

static int traced;
static void trace_post(void *user, const struct gg_trace *trace)
{
    (void)user;
    (void)trace;
    traced++;
}

static void a_larger_tracer_is_used(void **state)
{
    static GUARDED(struct gg_tracer) tracer;
    (void)state;
    GUARD_SET(tracer);
    tracer.known = (struct gg_tracer){.struct_size = sizeof tracer, .post = trace_post};
    assert_int_equal(gg_set_tracer(&tracer.known), GG_OK);
    assert_int_equal(gg_device_synchronize(device), GG_OK);
    assert_int_equal(gg_set_tracer(NULL), GG_OK);
    assert_true(traced > 0);
}

static gg_status user_alloc(void *user, gg_device *on, size_t nbytes, gg_stream *stream, void **out)
{
    (void)user;
    (void)on;
    (void)nbytes;
    (void)stream;
    (void)out;
    return GG_ERR_OUT_OF_MEMORY;
}
static void user_free(void *user, gg_device *on, void *pointer, size_t nbytes)
{
    (void)user;
    (void)on;
    (void)pointer;
    (void)nbytes;
}

static void a_larger_allocator_is_used(void **state)
{
    GUARDED(struct gg_allocator) allocator;
    gg_memory *memory;
    (void)state;
    GUARD_SET(allocator);
    allocator.known = (struct gg_allocator){
        .struct_size = sizeof allocator, .alloc = user_alloc, .free = user_free};
    assert_int_equal(gg_set_allocator(&allocator.known), GG_OK);
    assert_int_equal(gg_memory_alloc(device, GG_MEMORY_DEVICE, 8, NULL, &memory),
                     GG_ERR_OUT_OF_MEMORY);
    assert_int_equal(gg_set_allocator(NULL), GG_OK);
}

int main(int count, char **arguments)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(larger_structs_are_filled_as_far_as_the_library_knows_them),
        cmocka_unit_test(larger_statistics_are_filled_as_far_as_the_library_knows_them),
        cmocka_unit_test(a_larger_handle_is_filled_and_read),
        cmocka_unit_test(a_larger_launch_is_used),
        cmocka_unit_test(larger_options_of_communicators_are_used),
        cmocka_unit_test(a_larger_tracer_is_used),
        cmocka_unit_test(a_larger_allocator_is_used),
    };
    kernels_path = count > 1 ? arguments[1] : "";
    return cmocka_run_group_tests(tests, open_device, NULL);
}
