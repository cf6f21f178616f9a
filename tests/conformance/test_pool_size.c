/* test_pool_size.c: how much free memory is kept, limits, and where memory runs out. */
#include "pool_blocks.h"

#include <stdio.h>

/* ---- how much is kept ---- */

static void a_trim_gives_everything_back(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < SIZES; i++)
        come_and_go(f, sizes[i], f->stream);
    gg_memory_release(alloc_pinned(f, 5000));
    assert_true(figures(f).cached_blocks >= 2);
    assert_int_equal(gg_trim(), GG_OK);
    assert_int_equal(figures(f).held_bytes, 0);
    assert_int_equal(figures(f).cached_bytes, 0);
    assert_int_equal(figures_of(f->device, GG_MEMORY_PINNED).held_bytes, 0);
}

static void a_trim_keeps_what_it_is_told_and_what_is_used(void **state)
{
    struct fixture *f = *state;
    gg_memory *used = alloc(f, 100, f->stream);
    keep(f, used);
    for (size_t i = 1; i <= 4; i++)
        come_and_go(f, i * BLOCK, f->stream);
    assert_int_equal(gg_pool_trim(f->device, GG_MEMORY_DEVICE, 7 * BLOCK), GG_OK);
    assert_true(figures(f).cached_bytes <= 7 * BLOCK && figures(f).cached_bytes >= 3 * BLOCK);
    assert_int_equal(gg_pool_trim(f->device, GG_MEMORY_DEVICE, 0), GG_OK);
    assert_int_equal(figures(f).cached_bytes, 0);
    assert_int_equal(fill_bytes(used, 3, f->stream), GG_OK);
    assert_filled(f, used, 100, 3);
}

static void a_trim_while_work_runs_waits_for_nothing(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = alloc(f, BLOCK, f->stream);
    keep(f, memory);
    come_and_go(f, BLOCK, f->second);
    void *gate = hold(f, f->stream);
    assert_int_equal(fill_bytes(memory, 9, f->stream), GG_OK);
    assert_int_equal(gg_trim(), GG_OK);
    assert_true(busy(f->stream));
    gate_open(gate);
    assert_filled(f, memory, BLOCK, 9);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(figures(f).cached_blocks + figures(f).retired_blocks, 0);
}

static void blocks_above_256_mib_are_not_kept(void **state)
{
    struct fixture *f = *state;
    uint64_t held = figures(f).held_bytes;
    gg_memory *memory = NULL;
    if (gg_memory_alloc(f->device, GG_MEMORY_DEVICE, ((size_t)256 << 20) + 1, f->stream, &memory))
        skip(); /* not so much memory */
    gg_memory_release(memory);
    assert_int_equal(figures(f).cached_blocks, 0);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(figures(f).held_bytes, held);
}

static void no_more_is_kept_than_the_pool_may_keep(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(gg_pool_set_keep(f->device, GG_MEMORY_DEVICE, 4 * BLOCK), GG_OK);
    for (size_t i = 1; i <= 4; i++)
        come_and_go(f, i * BLOCK, f->stream);
    finish(f->stream); /* a wait comes by the retired objects */
    uint64_t cached = figures(f).cached_bytes;
    assert_int_equal(gg_pool_set_keep(f->device, GG_MEMORY_DEVICE, UINT64_MAX), GG_OK);
    assert_true(cached <= 4 * BLOCK);
}

/* ---- limits ---- */

static void end_of_limit(struct fixture *f)
{
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, 0), GG_OK);
}

static void an_allocation_beyond_the_limit_is_out_of_memory(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = NULL;
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, 8 * BLOCK), GG_OK);
    gg_status first = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, 6 * BLOCK, f->stream, &memory);
    gg_memory *second = NULL;
    gg_status refused = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, 6 * BLOCK, f->stream, &second);
    struct gg_error error = last_error();
    gg_memory_release(memory);
    gg_status again = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, 5 * BLOCK, f->second, &second);
    if (!again)
        keep(f, second);
    end_of_limit(f);
    assert_int_equal(first, GG_OK);
    assert_int_equal(refused, GG_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(error.message, "limit is 25165824"));
    assert_non_null(strstr(error.message, "18874368 bytes in 1 blocks are in use"));
    assert_int_equal(again, GG_OK); /* what was free, and of another size, went back */
}

static void a_limit_below_what_is_used_is_refused(void **state)
{
    struct fixture *f = *state;
    keep(f, alloc(f, BLOCK, f->stream));
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, BLOCK - 1),
                     GG_ERR_INVALID_ARGUMENT);
    assert_message_has("3145727");
    assert_message_has("in use");
    assert_int_equal(figures(f).limit, 0);
}

/* Where there is no more memory a busy stream's block is taken, by a stream that waits for it. */
static void at_the_limit_a_busy_streams_block_is_waited_for_on_the_device(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = alloc(f, BLOCK, f->stream), *next = NULL;
    void *pointer = gg_memory_pointer(memory), *gate = hold(f, f->stream);
    assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
    gg_memory_release(memory);
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, figures(f).held_bytes), GG_OK);
    gg_status status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, BLOCK, f->second, &next);
    end_of_limit(f);
    assert_int_equal(status, GG_OK);
    keep(f, next);
    assert_ptr_equal(gg_memory_pointer(next), pointer);
    assert_int_equal(fill_bytes(next, 2, f->second), GG_OK);
    assert_waits(f->second);
    gate_open(gate);
    assert_filled(f, next, BLOCK, 2);
}

static void at_the_limit_a_block_with_several_users_is_waited_for_on_the_device(void **state)
{
    struct fixture *f = *state;
    gg_stream *third = new_stream(f);
    gg_memory *memory = alloc(f, BLOCK, f->stream), *next = NULL;
    void *pointer = gg_memory_pointer(memory), *gate = hold(f, third);
    assert_int_equal(fill_bytes(memory, 1, third), GG_OK);
    gg_memory_release(memory);
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, figures(f).held_bytes), GG_OK);
    gg_status status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, BLOCK, f->second, &next);
    end_of_limit(f);
    assert_int_equal(status, GG_OK);
    keep(f, next);
    assert_ptr_equal(gg_memory_pointer(next), pointer);
    assert_int_equal(fill_bytes(next, 2, f->second), GG_OK);
    assert_waits(f->second);
    gate_open(gate);
    assert_filled(f, next, BLOCK, 2);
}

/* ---- bad input ---- */

static void other_kinds_have_no_pool(void **state)
{
    struct fixture *f = *state;
    struct gg_pool_stats stats = {.struct_size = sizeof stats};
    assert_int_equal(gg_pool_stats(f->device, GG_MEMORY_HOST, &stats), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_pool_trim(f->device, GG_MEMORY_MANAGED, 0), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_pool_set_limit(f->device, (enum gg_memory_kind)9, 1),
                     GG_ERR_INVALID_ARGUMENT);
    stats.struct_size = 8;
    assert_int_equal(gg_pool_stats(f->device, GG_MEMORY_DEVICE, &stats), GG_ERR_INVALID_ARGUMENT);
}

/* ---- GPUGLUE_ALLOCATOR ---- */

static int keep_nothing(void)
{
    gg_device *device;
    gg_memory *memory = NULL;
    struct gg_pool_stats figures = {.struct_size = sizeof figures};
    if (gg_device_get(NULL, 0, &device))
        return 1;
    for (int i = 0; i < 10; i++) {
        if (gg_memory_alloc(device, GG_MEMORY_DEVICE, 100, NULL, &memory))
            return 2;
        gg_memory_release(memory);
    }
    if (gg_device_synchronize(device) || gg_pool_stats(device, GG_MEMORY_DEVICE, &figures))
        return 3;
    return figures.driver_calls == 20 && !figures.held_bytes ? 0 : 4;
}

static void the_direct_allocator_keeps_nothing(void **state)
{
    char output[256];
    (void)state;
    assert_int_equal(
        start_scenario("keep_nothing", "GPUGLUE_ALLOCATOR", "direct", output, sizeof output), 0);
}

/* ---- the user's allocator ---- */

static struct lender {
    gg_memory *whole;
    int allocs, frees;
    size_t given;
    gg_status answer;
    bool lies;
    gg_stream *stream;
} lender;

static gg_status lend(void *user, gg_device *device, size_t nbytes, gg_stream *stream, void **out)
{
    struct lender *self = user;
    (void)device;
    self->allocs++;
    self->given = nbytes;
    self->stream = stream;
    if (!self->answer)
        *out = self->lies ? NULL : gg_memory_pointer(self->whole);
    return self->answer;
}

static void take_back(void *user, gg_device *device, void *pointer, size_t nbytes)
{
    struct lender *self = user;
    (void)device;
    self->frees += pointer == gg_memory_pointer(self->whole) && nbytes == self->given;
}

static void lend_by_table(struct fixture *f)
{
    static const struct gg_allocator allocator = {
        .struct_size = sizeof allocator, .user = &lender, .alloc = lend, .free = take_back};
    lender = (struct lender){.whole = new_memory(f, BLOCK)};
    assert_int_equal(gg_set_allocator(&allocator), GG_OK);
}

static void memory_comes_from_the_users_allocator_and_goes_back_after_the_work(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = NULL;
    lend_by_table(f);
    gg_status status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, 1000, f->stream, &memory);
    gg_set_allocator(NULL);
    assert_int_equal(status, GG_OK);
    assert_ptr_equal(gg_memory_pointer(memory), gg_memory_pointer(lender.whole));
    assert_ptr_equal(lender.stream, f->stream);
    void *gate = hold(f, f->second);
    assert_int_equal(fill_bytes(memory, 1, f->second), GG_OK);
    gg_memory_release(memory);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(lender.frees, 0);
    gate_open(gate);
    finish(f->second);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(lender.frees, 1);
}

static void the_users_memory_is_handed_out_in_the_order_of_its_stream(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = NULL;
    lend_by_table(f);
    void *gate = hold(f, f->stream); /* whoever had it before is at work there */
    gg_status status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, 1000, f->stream, &memory);
    gg_set_allocator(NULL);
    assert_int_equal(status, GG_OK);
    keep(f, memory);
    assert_int_equal(fill_bytes(memory, 1, f->second), GG_OK);
    assert_waits(f->second);
    gate_open(gate);
    finish(f->second);
}

static void assert_lender_is_told(struct fixture *f, size_t nbytes, gg_status expected,
                                  const char *message)
{
    gg_memory *const untouched = (gg_memory *)(uintptr_t)16;
    gg_memory *memory = untouched;
    gg_status status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, nbytes, NULL, &memory);
    gg_set_allocator(NULL);
    assert_int_equal(status, expected);
    assert_ptr_equal(memory, untouched);
    assert_message_has(message);
}

static void what_the_users_allocator_gives_is_checked(void **state)
{
    struct fixture *f = *state;
    lend_by_table(f);
    lender.answer = GG_ERR_OUT_OF_MEMORY;
    assert_lender_is_told(f, 1000, GG_ERR_OUT_OF_MEMORY, "has no 1000 bytes");
    lend_by_table(f);
    lender.lies = true;
    assert_lender_is_told(f, 1000, GG_ERR_INVALID_ARGUMENT, "NULL pointer");
    need(f, GG_OP_pointer_info);
    lend_by_table(f);
    assert_lender_is_told(f, (size_t)1 << 40, GG_ERR_INVALID_ARGUMENT, "fewer bytes");
    assert_int_equal(lender.frees, 1);
}

static void an_allocator_needs_both_functions(void **state)
{
    const struct gg_allocator half = {.struct_size = sizeof half, .alloc = lend};
    const struct gg_allocator small = {.struct_size = 8, .alloc = lend, .free = take_back};
    (void)state;
    assert_int_equal(gg_set_allocator(&half), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_set_allocator(&small), GG_ERR_INVALID_ARGUMENT);
}

static int no_call_failed(const char *what)
{
    printf("%s: %s\n", what, last_error().message);
    return 1;
}

/* From the vendor's own pool, in the order of a stream: written and read back, on that stream and on
 * another, which waits for the allocation by itself. */
static int use_the_vendors_pool(void)
{
    gg_device *device;
    gg_stream *streams[2];
    gg_memory *pinned = NULL;
    if (gg_device_get(NULL, 0, &device) ||
        gg_stream_create(device, GG_STREAM_NONBLOCKING, 0, &streams[0]) ||
        gg_stream_create(device, GG_STREAM_NONBLOCKING, 0, &streams[1]) ||
        gg_memory_alloc(device, GG_MEMORY_PINNED, 4000, NULL, &pinned))
        return no_call_failed("set-up");
    for (int i = 0; i < 200; i++) {
        gg_memory *memory = NULL;
        gg_stream *home = streams[i % 2], *other = streams[i / 2 % 2];
        gg_status status = gg_memory_alloc(device, GG_MEMORY_DEVICE, 4000, home, &memory);
        if (status == GG_ERR_UNSUPPORTED && !gg_device_supports(device, GG_OP_mem_alloc_async))
            return 77;
        if (status || fill_bytes(memory, (unsigned char)i, other) ||
            copy(at(pinned, 0), at(memory, 0), 4000, other, GG_COPY_ASYNC))
            return no_call_failed("use");
        gg_memory_release(memory);
        if (gg_stream_wait(other, GG_FOREVER))
            return no_call_failed("wait");
        if (((unsigned char *)gg_memory_pointer(pinned))[3999] != (unsigned char)i)
            return no_call_failed("other bytes");
    }
    struct gg_pool_stats figures = {.struct_size = sizeof figures};
    if (gg_device_synchronize(device) || gg_device_trim(device) ||
        gg_pool_stats(device, GG_MEMORY_DEVICE, &figures))
        return no_call_failed("the end");
    return figures.driver_calls == 400 && !figures.held_bytes ? 0 : 2;
}

static void the_async_allocator_takes_from_the_vendors_pool_or_says_that_there_is_none(void **state)
{
    char output[512];
    (void)state;
    int result =
        start_scenario("use_the_vendors_pool", "GPUGLUE_ALLOCATOR", "async", output, sizeof output);
    if (result == 77)
        skip();
    assert_string_equal(output, "");
    assert_int_equal(result, 0);
}

static const struct scenario scenarios[] = {{"use_the_vendors_pool", use_the_vendors_pool},
                                            {"keep_nothing", keep_nothing}};

int main(int argc, char **argv)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trim_gives_everything_back),
        cmocka_unit_test(a_trim_keeps_what_it_is_told_and_what_is_used),
        cmocka_unit_test(a_trim_while_work_runs_waits_for_nothing),
        cmocka_unit_test(blocks_above_256_mib_are_not_kept),
        cmocka_unit_test(no_more_is_kept_than_the_pool_may_keep),
        cmocka_unit_test(an_allocation_beyond_the_limit_is_out_of_memory),
        cmocka_unit_test(a_limit_below_what_is_used_is_refused),
        cmocka_unit_test(at_the_limit_a_busy_streams_block_is_waited_for_on_the_device),
        cmocka_unit_test(at_the_limit_a_block_with_several_users_is_waited_for_on_the_device),
        cmocka_unit_test(other_kinds_have_no_pool),
        cmocka_unit_test(the_direct_allocator_keeps_nothing),
        cmocka_unit_test(memory_comes_from_the_users_allocator_and_goes_back_after_the_work),
        cmocka_unit_test(what_the_users_allocator_gives_is_checked),
        cmocka_unit_test(an_allocator_needs_both_functions),
        cmocka_unit_test(the_async_allocator_takes_from_the_vendors_pool_or_says_that_there_is_none),
        cmocka_unit_test(the_users_memory_is_handed_out_in_the_order_of_its_stream),
    };
    int scenario = run_scenario(argc, argv, scenarios, sizeof scenarios / sizeof scenarios[0]);
    if (scenario >= 0)
        return scenario;
    return run_suite(argc, argv, "pool_size", tests, sizeof tests / sizeof tests[0]);
}
