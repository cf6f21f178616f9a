/* test_memory.c: blocks of device and pinned memory: allocated, wrapped, kept alive as long as
 * work needs them. */
#include "conformance.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static gg_memory *const untouched = (gg_memory *)(uintptr_t)16;
static const enum gg_memory_kind kinds[] = {GG_MEMORY_DEVICE, GG_MEMORY_PINNED};

static struct gg_memory_stats stats_of(gg_device *device)
{
    struct gg_memory_stats stats = {.struct_size = sizeof stats};
    assert_int_equal(gg_device_memory_stats(device, &stats), GG_OK);
    return stats;
}

static gg_memory *alloc(struct fixture *f, enum gg_memory_kind kind, size_t nbytes)
{
    gg_memory *memory = NULL;
    assert_int_equal(gg_memory_alloc(f->device, kind, nbytes, NULL, &memory), GG_OK);
    return memory;
}

static void memory_is_aligned_to_256_bytes(void **state)
{
    struct fixture *f = *state;
    const size_t sizes[] = {1, 255, 256, 257, 4097, MANY_BYTES + 1};
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            gg_memory *memory = alloc(f, kinds[k], sizes[i]);
            assert_non_null(gg_memory_pointer(memory));
            assert_int_equal((uintptr_t)gg_memory_pointer(memory) % 256, 0);
            gg_memory_release(memory);
        }
}

static void memory_reports_its_device_kind_and_size(void **state)
{
    struct fixture *f = *state;
    for (size_t k = 0; k < 2; k++) {
        gg_memory *memory = alloc(f, kinds[k], 123);
        assert_ptr_equal(gg_memory_device(memory), f->device);
        assert_int_equal(gg_memory_get_kind(memory), kinds[k]);
        assert_int_equal(gg_memory_size(memory), 123);
        assert_true(gg_memory_numa_node(memory) >= -1);
        gg_memory_release(memory);
    }
}

static void zero_bytes_give_a_block_with_a_null_pointer(void **state)
{
    struct fixture *f = *state;
    for (size_t k = 0; k < 2; k++) {
        gg_memory *memory = alloc(f, kinds[k], 0);
        assert_null(gg_memory_pointer(memory));
        assert_int_equal(gg_memory_numa_node(memory), -1);
        assert_int_equal(gg_memory_size(memory), 0);
        gg_memory_release(memory);
    }
}

static void the_host_can_access_pinned_memory(void **state)
{
    struct fixture *f = *state;
    gg_memory *pinned = new_pinned(f, 1000, 0x5a);
    assert_filled(f, pinned, 1000, 0x5a);
    memset(gg_memory_pointer(pinned), 0x17, 1000);
    assert_filled(f, pinned, 1000, 0x17);
}

static void two_blocks_do_not_share_bytes(void **state)
{
    struct fixture *f = *state;
    gg_memory *a = new_memory(f, 3000), *b = new_memory(f, 3000);
    assert_int_equal(fill_bytes(a, 1, f->stream), GG_OK);
    assert_int_equal(fill_bytes(b, 2, f->stream), GG_OK);
    assert_filled(f, a, 3000, 1);
    assert_filled(f, b, 3000, 2);
}

static void a_kind_that_cannot_be_allocated_is_refused(void **state)
{
    struct fixture *f = *state;
    const int bad[] = {GG_MEMORY_HOST, 99, -1};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        gg_memory *memory = untouched;
        assert_fails(gg_memory_alloc(f->device, (enum gg_memory_kind)bad[i], 16, NULL, &memory));
        assert_ptr_equal(memory, untouched);
    }
}

/* ---- out of memory ---- */

static void assert_too_much(struct fixture *f, enum gg_memory_kind kind, size_t nbytes)
{
    gg_memory *memory = untouched;
    char asked[32];
    snprintf(asked, sizeof asked, "%zu", nbytes);
    assert_int_equal(gg_memory_alloc(f->device, kind, nbytes, NULL, &memory), GG_ERR_OUT_OF_MEMORY);
    assert_ptr_equal(memory, untouched);
    assert_message_has(asked);
    assert_int_equal(last_error().status, GG_ERR_OUT_OF_MEMORY);
}

static void twice_the_total_memory_is_out_of_memory_with_the_sizes(void **state)
{
    struct fixture *f = *state;
    struct gg_device_info info = {.struct_size = sizeof info};
    assert_int_equal(gg_device_info(f->device, &info), GG_OK);
    assert_too_much(f, GG_MEMORY_DEVICE, (size_t)info.total_memory * 2);
}

/* Level Zero's drivers allocate only a part of it at once unless a descriptor lifts the limit. */
static void a_third_of_the_free_memory_is_one_block(void **state)
{
    struct fixture *f = *state;
    uint64_t free_bytes = 0, total = 0;
    gg_memory *memory = untouched;
    need(f, GG_OP_device_memory_info);
    assert_int_equal(gg_device_memory_info(f->device, &free_bytes, &total), GG_OK);
    assert_int_equal(
        gg_memory_alloc(f->device, GG_MEMORY_DEVICE, (size_t)(free_bytes / 3), NULL, &memory),
        GG_OK);
    assert_int_equal(gg_memory_size(memory), free_bytes / 3);
    gg_memory_release(memory);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
}

static void an_impossible_size_is_out_of_memory(void **state)
{
    struct fixture *f = *state;
    const size_t sizes[] = {(size_t)1 << 60, SIZE_MAX, SIZE_MAX - 255, (size_t)PTRDIFF_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_too_much(f, GG_MEMORY_DEVICE, sizes[i]);
        assert_too_much(f, GG_MEMORY_PINNED, sizes[i]);
    }
}

static void out_of_memory_is_reported_while_a_stream_is_blocked(void **state)
{
    struct fixture *f = *state;
    gg_memory *released, *memory = untouched;
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, MANY_BYTES, NULL, &released),
                     GG_OK);
    assert_int_equal(fill_bytes(released, 1, f->second), GG_OK);
    finish(f->second);
    gg_memory_release(released); /* idle, but its release may mean a wait for every stream */
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, (size_t)1 << 60, NULL, &memory),
                     GG_ERR_OUT_OF_MEMORY);
    assert_true(busy(f->stream));
    gate_open(gate);
    finish(f->stream);
}

static void the_device_works_after_out_of_memory(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = untouched;
    assert_fails(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, (size_t)1 << 60, NULL, &memory));
    memory = new_memory(f, 64);
    assert_int_equal(fill_bytes(memory, 3, f->stream), GG_OK);
    assert_filled(f, memory, 64, 3);
}

/* ---- lifetime ---- */

static void release_of_null_is_allowed(void **state)
{
    (void)state;
    gg_memory_release(NULL);
    gg_stream_release(NULL);
    gg_event_release(NULL);
}

static void a_retained_block_is_not_freed(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 100);
    gg_memory_retain(memory);
    gg_memory_release(memory);
    assert_int_equal(fill_bytes(memory, 9, f->stream), GG_OK);
    assert_filled(f, memory, 100, 9);
}

static void idle_memory_is_released(void **state)
{
    struct fixture *f = *state;
    uint64_t blocks = stats_of(f->device).blocks, bytes = stats_of(f->device).bytes;
    gg_memory *memory = alloc(f, GG_MEMORY_DEVICE, 5000);
    assert_int_equal(stats_of(f->device).blocks, blocks + 1);
    assert_int_equal(stats_of(f->device).bytes, bytes + 5000);
    gg_memory_release(memory);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(stats_of(f->device).blocks, blocks);
    assert_int_equal(stats_of(f->device).retired_blocks, 0);
}

static void release_never_waits_and_queued_work_keeps_its_memory(void **state)
{
    struct fixture *f = *state;
    gg_memory *pinned = new_pinned(f, 4096, 0), *memory = alloc(f, GG_MEMORY_DEVICE, 4096);
    void *gate = hold(f, f->stream);
    assert_int_equal(fill_bytes(memory, 0x42, f->stream), GG_OK);
    assert_int_equal(copy(at(pinned, 0), at(memory, 0), 4096, f->stream, GG_COPY_ASYNC), GG_OK);
    gg_memory_release(memory);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_true(stats_of(f->device).retired_blocks > 0);
    gate_open(gate);
    finish(f->stream);
    assert_filled(f, pinned, 4096, 0x42);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(stats_of(f->device).retired_blocks, 0);
}

static void a_new_stream_never_inherits_the_work_of_a_released_one(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = alloc(f, GG_MEMORY_DEVICE, 4096);
    gg_stream *released = NULL;
    void *gate;
    assert_int_equal(gg_stream_create(f->device, 1, 0, &released), GG_OK);
    gate = hold(f, released);
    assert_int_equal(fill_bytes(memory, 1, released), GG_OK);
    gg_stream_release(released);
    finish(new_stream(f)); /* its handle may be the old one's */
    gg_memory_release(memory);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_true(stats_of(f->device).retired_blocks > 0);
    gate_open(gate);
}

static void released_memory_is_kept_for_its_recorded_uses(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = alloc(f, GG_MEMORY_DEVICE, 4096);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_memory_record_use(memory, f->stream), GG_OK);
    gg_memory_release(memory);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_true(stats_of(f->device).retired_blocks > 0);
    gate_open(gate);
    finish(f->stream);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(stats_of(f->device).retired_blocks, 0);
}

static void *release_in_thread(void *memory)
{
    gg_memory_release(memory);
    return NULL;
}

static void any_thread_may_release_memory(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = alloc(f, GG_MEMORY_DEVICE, 4096);
    pthread_t thread;
    assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
    assert_int_equal(pthread_create(&thread, NULL, release_in_thread, memory), 0);
    pthread_join(thread, NULL);
    finish(f->stream);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(stats_of(f->device).retired_blocks, 0);
}

static void stats_require_a_large_enough_struct(void **state)
{
    struct fixture *f = *state;
    struct gg_memory_stats stats = {.struct_size = sizeof stats - 1, .blocks = 77};
    assert_int_equal(gg_device_memory_stats(f->device, &stats), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("expected at least");
    assert_int_equal(stats.blocks, 77);
}

static void stats_report_to_a_newer_caller_how_much_was_written(void **state)
{
    struct fixture *f = *state;
    struct {
        struct gg_memory_stats stats;
        uint64_t newer;
    } theirs = {.stats.struct_size = sizeof theirs, .newer = 5};
    assert_int_equal(gg_device_memory_stats(f->device, &theirs.stats), GG_OK);
    assert_int_equal(theirs.stats.struct_size, sizeof theirs.stats);
    assert_int_equal(theirs.newer, 5);
}

/* ---- wrapped memory ---- */

static void wrapped_memory_is_used_like_any_other(void **state)
{
    struct fixture *f = *state;
    gg_memory *owner = new_memory(f, 512), *wrapped = NULL;
    assert_int_equal(gg_memory_wrap(f->device, GG_MEMORY_DEVICE, gg_memory_pointer(owner), 512,
                                    NULL, NULL, &wrapped),
                     GG_OK);
    assert_int_equal(fill_bytes(wrapped, 0x33, f->stream), GG_OK);
    finish(f->stream);
    gg_memory_release(wrapped);
    assert_filled(f, owner, 512, 0x33);
}

static void the_owner_of_wrapped_memory_is_released_once_and_after_the_work(void **state)
{
    struct fixture *f = *state;
    gg_memory *owner = new_memory(f, 512), *wrapped = NULL;
    atomic_int released = 0;
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_memory_wrap(f->device, GG_MEMORY_DEVICE, gg_memory_pointer(owner), 512,
                                    count_release, &released, &wrapped),
                     GG_OK);
    assert_int_equal(fill_bytes(wrapped, 0x33, f->stream), GG_OK);
    gg_memory_release(wrapped);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(atomic_load(&released), 0);
    gate_open(gate);
    finish(f->stream);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(atomic_load(&released), 1);
}

static void a_null_pointer_cannot_be_wrapped(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = untouched;
    atomic_int released = 0;
    assert_int_equal(
        gg_memory_wrap(f->device, GG_MEMORY_DEVICE, NULL, 512, count_release, &released, &memory),
        GG_ERR_INVALID_ARGUMENT);
    assert_ptr_equal(memory, untouched);
    assert_int_equal(atomic_load(&released), 0);
}

static void a_stream_of_another_device_is_refused_for_memory(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = untouched;
    gg_stream *stream = NULL;
    assert_int_equal(gg_device_default_stream(other_device(f), &stream), GG_OK);
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, 16, stream, &memory),
                     GG_ERR_INVALID_ARGUMENT);
    assert_ptr_equal(memory, untouched);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(memory_is_aligned_to_256_bytes),
    cmocka_unit_test(memory_reports_its_device_kind_and_size),
    cmocka_unit_test(zero_bytes_give_a_block_with_a_null_pointer),
    cmocka_unit_test(the_host_can_access_pinned_memory),
    cmocka_unit_test(two_blocks_do_not_share_bytes),
    cmocka_unit_test(a_kind_that_cannot_be_allocated_is_refused),
    cmocka_unit_test(twice_the_total_memory_is_out_of_memory_with_the_sizes),
    cmocka_unit_test(a_third_of_the_free_memory_is_one_block),
    cmocka_unit_test(an_impossible_size_is_out_of_memory),
    cmocka_unit_test(out_of_memory_is_reported_while_a_stream_is_blocked),
    cmocka_unit_test(the_device_works_after_out_of_memory),
    cmocka_unit_test(release_of_null_is_allowed),
    cmocka_unit_test(a_retained_block_is_not_freed),
    cmocka_unit_test(idle_memory_is_released),
    cmocka_unit_test(release_never_waits_and_queued_work_keeps_its_memory),
    cmocka_unit_test(a_new_stream_never_inherits_the_work_of_a_released_one),
    cmocka_unit_test(released_memory_is_kept_for_its_recorded_uses),
    cmocka_unit_test(any_thread_may_release_memory),
    cmocka_unit_test(stats_require_a_large_enough_struct),
    cmocka_unit_test(stats_report_to_a_newer_caller_how_much_was_written),
    cmocka_unit_test(wrapped_memory_is_used_like_any_other),
    cmocka_unit_test(the_owner_of_wrapped_memory_is_released_once_and_after_the_work),
    cmocka_unit_test(a_null_pointer_cannot_be_wrapped),
    cmocka_unit_test(a_stream_of_another_device_is_refused_for_memory),
};
SUITE(memory, tests);
