/* test_readback.c: readback memory: reused, pinned from its second use on, kept up to a
 * limit, released. */
#include "conformance.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NBYTES ((size_t)3 << 20)

struct result {
    unsigned char *bytes;
    int32_t fresh;
};

static struct result new_readback(struct fixture *f, size_t nbytes)
{
    struct result result = {NULL, -1};
    void *memory = NULL;
    assert_int_equal(gg_readback_alloc(f->device, nbytes, &memory, &result.fresh), GG_OK);
    result.bytes = memory;
    return result;
}

static void readback_memory_has_the_requested_size_and_is_aligned(void **state)
{
    static const size_t sizes[] = {0, 1, 4096, NBYTES, NBYTES + 1};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct result result = new_readback(f, sizes[i]);
        assert_true(gg_readback_size(result.bytes) >= sizes[i]);
        assert_int_equal((uintptr_t)result.bytes % (2u << 20), 0);
        assert_ptr_equal(gg_readback_device(result.bytes), f->device);
        memset(result.bytes, 1, sizes[i]);
        gg_readback_free(result.bytes);
    }
    gg_readback_free(NULL);
}

static void freed_readback_memory_is_reused(void **state)
{
    struct fixture *f = *state;
    gg_device_trim(f->device);
    struct result first = new_readback(f, NBYTES);
    assert_int_equal(first.fresh, 1);
    gg_readback_free(first.bytes);
    struct result second = new_readback(f, NBYTES);
    assert_ptr_equal(second.bytes, first.bytes);
    assert_int_equal(second.fresh, 0);
    struct result other = new_readback(f, NBYTES); /* the first is in use */
    assert_ptr_not_equal(other.bytes, first.bytes);
    gg_readback_free(second.bytes);
    gg_readback_free(other.bytes);
}

static void a_much_larger_block_is_not_used_for_a_readback(void **state)
{
    struct fixture *f = *state;
    gg_device_trim(f->device);
    struct result large = new_readback(f, 8 * NBYTES);
    gg_readback_free(large.bytes);
    struct result small = new_readback(f, NBYTES);
    assert_ptr_not_equal(small.bytes, large.bytes);
    gg_readback_free(small.bytes);
}

/* From its second use on the device can access it directly, so a copy to it need not wait. */
static void readback_memory_is_pinned_from_its_second_use_on(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, NBYTES);
    need(f, GG_OP_mem_register);
    gg_device_trim(f->device);
    assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
    for (int use = 1; use <= 3; use++) {
        struct result result = new_readback(f, NBYTES);
        gg_status status = copy(host_at(result.bytes), at(memory, 0), NBYTES, f->stream,
                                GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC);
        assert_int_equal(status, use == 1 ? GG_ERR_UNSUPPORTED : GG_OK);
        finish(f->stream);
        gg_readback_free(result.bytes);
    }
}

static void every_use_of_readback_memory_has_its_own_bytes(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, NBYTES);
    for (int use = 1; use <= 4; use++) {
        struct result result = new_readback(f, NBYTES);
        assert_int_equal(fill_bytes(memory, (unsigned char)use, f->stream), GG_OK);
        assert_int_equal(copy(host_at(result.bytes), at(memory, 0), NBYTES, f->stream,
                              result.fresh ? GG_COPY_DST_UNTOUCHED : 0),
                         GG_OK);
        for (size_t i = 0; i < NBYTES; i++)
            assert_int_equal(result.bytes[i], use);
        gg_readback_free(result.bytes);
    }
}

static void an_impossible_readback_is_out_of_memory(void **state)
{
    struct fixture *f = *state;
    void *memory = NULL;
    int32_t fresh = 7;
    assert_int_equal(gg_readback_alloc(f->device, SIZE_MAX - 5, &memory, &fresh),
                     GG_ERR_OUT_OF_MEMORY);
    assert_int_equal(gg_readback_alloc(f->device, (size_t)1 << 60, &memory, &fresh),
                     GG_ERR_OUT_OF_MEMORY);
    assert_null(memory);
    assert_int_equal(fresh, 7);
}

static void *use_readbacks(void *argument)
{
    struct fixture *f = argument;
    for (int i = 0; i < 50; i++) {
        void *memory = NULL;
        int32_t fresh;
        if (gg_readback_alloc(f->device, NBYTES + (size_t)(i % 3) * NBYTES, &memory, &fresh))
            return f;
        memset(memory, i, NBYTES);
        gg_readback_free(memory);
    }
    return NULL;
}

static void threads_may_use_readback_memory(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_readbacks, f), 0);
    for (int i = 0; i < 4; i++) {
        void *failed = f;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

static void readback_memory_is_little_larger_than_requested(void **state)
{
    struct fixture *f = *state;
    gg_device_trim(f->device);
    for (size_t nbytes = MANY_BYTES + 100; nbytes < 40 * MANY_BYTES; nbytes += nbytes / 3) {
        struct result result = new_readback(f, nbytes);
        assert_true(gg_readback_size(result.bytes) - nbytes <= nbytes / 8);
        gg_readback_free(result.bytes);
    }
}

/* gpuglue locked it, without the user's knowledge. */
static void readback_memory_can_be_registered(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 5000);
    need(f, GG_OP_mem_register);
    assert_int_equal(gg_fill(memory, 0, "x", 1, 5000, f->stream), GG_OK);
    finish(f->stream);
    gg_device_trim(f->device);
    for (int use = 1; use <= 3; use++) {
        struct result result = new_readback(f, NBYTES);
        gg_memory *registered = NULL;
        assert_int_equal(
            gg_memory_host_register(f->device, result.bytes + 4100, 5000, NULL, NULL, &registered),
            GG_OK);
        assert_ptr_equal(gg_memory_pointer(registered), result.bytes + 4100);
        assert_int_equal(copy(at(registered, 0), at(memory, 0), 5000, f->stream,
                              GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC),
                         GG_OK);
        gg_memory_release(registered);
        finish(f->stream);
        gg_device_trim(f->device);
        gg_readback_free(result.bytes);
    }
}

/* ---- processes of their own ---- */

static gg_device *device_of_scenario(void)
{
    gg_device *device = NULL;
    return gg_device_get(NULL, 0, &device) ? NULL : device;
}

static int keep_nothing(void)
{
    gg_device *device = device_of_scenario();
    for (int i = 0; i < 3; i++) {
        void *memory;
        int32_t fresh;
        if (!device || gg_readback_alloc(device, NBYTES, &memory, &fresh))
            return 1;
        if (!fresh) {
            printf("readback memory was kept\n");
            return 1;
        }
        gg_readback_free(memory);
    }
    gg_shutdown(GG_FOREVER);
    return 0;
}

static void assert_right_with_cache(const char *scenario, const char *mib)
{
    char output[1000];
    int code = start_scenario(scenario, "GPUGLUE_RESULT_CACHE", mib, output, sizeof output);
    if (code)
        fail_msg("exit %d: %s", code, output);
}

static void the_variable_limits_the_kept_memory(void **state)
{
    (void)state;
    assert_right_with_cache("keep_nothing", "0");
}

static int fork_with_readbacks(void)
{
    gg_device *device = device_of_scenario();
    void *held, *kept;
    int32_t fresh;
    int ended = 1;
    for (int i = 0; i < 2; i++) { /* so that one is pinned */
        if (!device || gg_readback_alloc(device, NBYTES, &kept, &fresh) ||
            gg_readback_alloc(device, NBYTES, &held, &fresh))
            return 1;
        gg_readback_free(kept);
        if (!i)
            gg_readback_free(held);
    }
    memset(held, 3, NBYTES);
    pid_t child = fork();
    if (!child) {
        bool same = ((unsigned char *)held)[NBYTES - 1] == 3;
        gg_readback_free(held);
        _exit(same && gg_readback_alloc(device, NBYTES, &kept, &fresh) == GG_ERR_FORKED ? 0 : 1);
    }
    if (child < 0 || waitpid(child, &ended, 0) != child || ended ||
        ((unsigned char *)held)[NBYTES - 1] != 3)
        return 1;
    gg_shutdown(GG_FOREVER);
    gg_readback_free(held); /* after the shutdown */
    return 0;
}

static void a_forked_child_may_free_readback_memory_of_its_parent(void **state)
{
    (void)state;
    assert_scenario_is_silent("fork_with_readbacks");
}

static int free_a_large_one(void)
{
    gg_device *device = device_of_scenario();
    void *small = NULL, *large = NULL, *again = NULL;
    int32_t fresh;
    if (!device || gg_readback_alloc(device, NBYTES, &small, &fresh) ||
        gg_readback_alloc(device, 4 * NBYTES, &large, &fresh))
        return 1;
    gg_readback_free(small);
    gg_readback_free(large);
    if (gg_readback_alloc(device, NBYTES, &again, &fresh) || again != small || fresh) {
        printf("the small block was released\n");
        return 1;
    }
    gg_readback_free(again);
    gg_shutdown(GG_FOREVER);
    return 0;
}

/* Two of three fit. */
static int keep_two(void)
{
    gg_device *device = device_of_scenario();
    void *result[3];
    int32_t fresh;
    int made = 0;
    for (int round = 0; round < 2; round++) {
        made = 0;
        for (int i = 0; i < 3; i++, made += fresh)
            if (!device || gg_readback_alloc(device, 4 << 20, &result[i], &fresh))
                return 1;
        for (int i = 0; i < 3; i++)
            gg_readback_free(result[i]);
    }
    if (made != 1)
        printf("%d of 3 were new\n", made);
    gg_shutdown(GG_FOREVER);
    return made != 1;
}

static void the_oldest_readback_memory_is_evicted_first(void **state)
{
    (void)state;
    assert_right_with_cache("keep_two", "8");
}

static void readback_memory_above_the_limit_evicts_nothing(void **state)
{
    (void)state;
    assert_right_with_cache("free_a_large_one", "8");
}

static bool grows(unsigned char *bytes, size_t nbytes, unsigned char value)
{
    void *larger = NULL;
    bytes[NBYTES - 1] = value;
    if (gg_readback_resize(bytes, nbytes, &larger))
        return false;
    bool same = ((unsigned char *)larger)[NBYTES - 1] == value;
    memset(larger, 0, nbytes);
    gg_readback_free(larger);
    return same;
}

static int resize_everywhere(void)
{
    gg_device *device = device_of_scenario();
    void *result[3];
    int32_t fresh;
    int ended = 1;
    for (int i = 0; i < 3; i++)
        if (!device || gg_readback_alloc(device, NBYTES, &result[i], &fresh))
            return 1;
    pid_t child = fork();
    if (!child)
        _exit(grows(result[0], 3 * NBYTES, 1) ? 0 : 1);
    if (child < 0 || waitpid(child, &ended, 0) != child || ended || !grows(result[1], 3 * NBYTES, 2))
        return 1;
    gg_readback_free(result[0]);
    gg_shutdown(GG_FOREVER);
    return grows(result[2], 3 * NBYTES, 3) ? 0 : 1;
}

static void readback_memory_can_grow_in_a_forked_child_and_after_the_shutdown(void **state)
{
    (void)state;
    assert_scenario_is_silent("resize_everywhere");
}

static const struct scenario scenarios[] = {
    {"keep_nothing", keep_nothing},           {"fork_with_readbacks", fork_with_readbacks},
    {"free_a_large_one", free_a_large_one},   {"keep_two", keep_two},
    {"resize_everywhere", resize_everywhere},
};

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(readback_memory_has_the_requested_size_and_is_aligned),
    cmocka_unit_test(freed_readback_memory_is_reused),
    cmocka_unit_test(a_much_larger_block_is_not_used_for_a_readback),
    cmocka_unit_test(readback_memory_is_pinned_from_its_second_use_on),
    cmocka_unit_test(every_use_of_readback_memory_has_its_own_bytes),
    cmocka_unit_test(an_impossible_readback_is_out_of_memory),
    cmocka_unit_test(threads_may_use_readback_memory),
    cmocka_unit_test(the_variable_limits_the_kept_memory),
    cmocka_unit_test(a_forked_child_may_free_readback_memory_of_its_parent),
    cmocka_unit_test(readback_memory_is_little_larger_than_requested),
    cmocka_unit_test(readback_memory_can_be_registered),
    cmocka_unit_test(the_oldest_readback_memory_is_evicted_first),
    cmocka_unit_test(readback_memory_above_the_limit_evicts_nothing),
    cmocka_unit_test(readback_memory_can_grow_in_a_forked_child_and_after_the_shutdown),
};
SUITE_AND_SCENARIOS(readback, tests, scenarios);
