/* test_newer.c: a program whose structs are larger than the library's, as those of a later version would be. */
#include "guard.h"

#include <gpuglue/backend.h>

/* Part of ABI 1: structs without a size, which are passed by pointer or in arrays. They cannot change. */
_Static_assert(sizeof(struct gg_copy_operand) == 40, "gg_copy_operand has no size");
_Static_assert(sizeof(struct gg_parameter) == 16, "gg_parameter has no size");
_Static_assert(sizeof(struct gg_symbol) == 24, "gg_symbol has no size");

static gg_device *device;

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

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(larger_structs_are_filled_as_far_as_the_library_knows_them),
        cmocka_unit_test(a_larger_tracer_is_used),
        cmocka_unit_test(a_larger_allocator_is_used),
    };
    return cmocka_run_group_tests(tests, open_device, NULL);
}
