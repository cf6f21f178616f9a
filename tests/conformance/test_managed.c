/* test_managed.c: registered host memory, managed memory, and the attributes of a pointer. */
#include "conformance.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static gg_memory *const untouched = (gg_memory *)(uintptr_t)16;
static atomic_int released;

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Whole pages, to be registered, which the test frees itself. */
static unsigned char *pages(struct fixture *f, size_t count)
{
    need(f, GG_OP_mem_register);
    void *memory = aligned_alloc(page_size(), count * page_size());
    assert_non_null(memory);
    memset(memory, 7, count * page_size());
    return memory;
}

static gg_memory *registered(struct fixture *f, void *pointer, size_t nbytes)
{
    gg_memory *memory = NULL;
    atomic_store(&released, 0);
    assert_int_equal(
        gg_memory_host_register(f->device, pointer, nbytes, count_release, &released, &memory),
        GG_OK);
    return memory;
}

/* Unlock it now. */
static void close_memory(struct fixture *f, gg_memory *memory)
{
    gg_memory_release(memory);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
}

/* ---- registered memory ---- */

static void registered_memory_is_pinned(void **state)
{
    struct fixture *f = *state;
    unsigned char *bytes = pages(f, 4);
    size_t nbytes = 3 * page_size() - 10;
    gg_memory *memory = registered(f, bytes + 5, nbytes), *device = new_memory(f, nbytes);
    assert_int_equal(gg_memory_get_kind(memory), GG_MEMORY_PINNED);
    assert_ptr_equal(gg_memory_pointer(memory), bytes + 5);
    assert_int_equal(gg_memory_size(memory), nbytes);
    void *gate = hold(f, f->stream);
    assert_int_equal(copy(at(device, 0), host_at(bytes + 5), nbytes, f->stream,
                          GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC),
                     GG_OK); /* it is recognised by its address */
    assert_true(busy(f->stream));
    gate_open(gate);
    finish(f->stream);
    assert_filled(f, device, nbytes, 7);
    close_memory(f, memory);
    assert_int_equal(atomic_load(&released), 1);
    free(bytes);
}

static void registered_memory_is_unlocked_when_its_work_is_done(void **state)
{
    struct fixture *f = *state;
    unsigned char *bytes = pages(f, 2);
    gg_memory *memory = registered(f, bytes, page_size()), *device = new_memory(f, page_size());
    void *gate = hold(f, f->stream);
    assert_int_equal(copy(at(device, 0), at(memory, 0), page_size(), f->stream, GG_COPY_ASYNC),
                     GG_OK);
    gg_memory_release(memory);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(atomic_load(&released), 0);
    gate_open(gate);
    finish(f->stream);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(atomic_load(&released), 1);
    memory = registered(f, bytes, page_size()); /* and may be registered again */
    close_memory(f, memory);
    free(bytes);
}

static void a_page_cannot_be_registered_twice(void **state)
{
    struct fixture *f = *state;
    unsigned char *bytes = pages(f, 6);
    size_t page = page_size();
    gg_memory *memory = registered(f, bytes + 2 * page + 100, page), *other = untouched;
    const struct {
        size_t offset, size;
    } bad[] = {{2 * page + 100, page},
               {2 * page, 10},
               {3 * page + 4000, 8},
               {0, 6 * page},
               {page, page + 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(gg_memory_host_register(f->device, bytes + bad[i].offset, bad[i].size,
                                                 NULL, NULL, &other),
                         GG_ERR_INVALID_ARGUMENT);
        assert_message_has("gpuglue has already pinned");
        assert_ptr_equal(other, untouched);
    }
    assert_int_equal(gg_memory_host_register(f->device, bytes, 2 * page, NULL, NULL, &other), GG_OK);
    close_memory(f, other);
    close_memory(f, memory);
    free(bytes);
}

/* Unlocking may wait for the whole device, so the pages are locked still. */
static void closed_memory_can_be_registered_again_while_other_work_runs(void **state)
{
    struct fixture *f = *state;
    unsigned char *bytes = pages(f, 4);
    gg_memory *other = untouched;
    void *gate = hold(f, f->second);
    for (int again = 0; again < 3; again++)
        gg_memory_release(registered(f, bytes, 2 * page_size()));
    gg_memory *memory = registered(f, bytes, 2 * page_size() - 100), *device = new_memory(f, 100);
    assert_int_equal(gg_memory_size(memory), 2 * page_size() - 100);
    assert_int_equal(
        copy(at(device, 0), host_at(bytes), 100, f->stream, GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC),
        GG_OK);
    gg_memory_release(memory);
    for (size_t first = 0; first < 2; first++) { /* a part of it, or more pages than it */
        assert_int_equal(gg_memory_host_register(f->device, bytes + first * page_size(),
                                                 (1 + first) * page_size(), NULL, NULL, &other),
                         GG_ERR_INVALID_ARGUMENT);
        assert_message_has("was closed, and will be unlocked when the device is idle");
    }
    gate_open(gate);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(atomic_load(&released),
                     2); /* the earlier registration released its owner, too */
    free(bytes);
}

/* A round trip, whether the call may return early or not. */
static void assert_copied(struct fixture *f, gg_memory *device, unsigned char *bytes, size_t nbytes)
{
    for (uint32_t flags = 0; flags <= GG_COPY_ASYNC; flags += GG_COPY_ASYNC) {
        memset(bytes, 3, nbytes);
        assert_int_equal(copy(at(device, 0), host_at(bytes), nbytes, f->stream, flags), GG_OK);
        memset(bytes, 0, nbytes);
        assert_int_equal(copy(host_at(bytes), at(device, 0), nbytes, f->stream, flags), GG_OK);
        finish(f->stream);
        assert_int_equal(bytes[0], 3);
        assert_memory_equal(bytes, bytes + 1, nbytes - 1);
    }
    assert_int_equal(copy(at(device, 0), host_at(bytes), nbytes, f->stream,
                          GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC),
                     GG_ERR_UNSUPPORTED);
}

/* Drivers refuse a range that begins inside locked memory and ends outside. */
static void memory_that_shares_a_page_with_registered_memory_is_copied(void **state)
{
    struct fixture *f = *state;
    const size_t page = page_size(), nbytes = 40 * page;
    unsigned char *bytes = pages(f, 40);
    gg_memory *memory = registered(f, bytes + 100, page), *device = new_memory(f, nbytes);
    assert_copied(f, device, bytes, nbytes);
    assert_copied(f, device, bytes + 500, nbytes - 500);
    assert_copied(f, device, bytes + page + 200, nbytes - page - 200);
    close_memory(f, memory);
    free(bytes);
}

static void an_empty_range_cannot_be_registered(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = untouched;
    char byte;
    assert_int_equal(gg_memory_host_register(f->device, &byte, 0, NULL, NULL, &memory),
                     GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_memory_host_register(f->device, NULL, 8, NULL, NULL, &memory),
                     GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_memory_host_register(f->device, &byte, SIZE_MAX - 8, NULL, NULL, &memory),
                     GG_ERR_INVALID_ARGUMENT);
    assert_ptr_equal(memory, untouched);
}

static void unsupported_registration_is_reported(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = untouched;
    unsigned char bytes[8];
    if (gg_device_supports(f->device, GG_OP_mem_register))
        skip_because("the device registers memory");
    assert_int_equal(gg_memory_host_register(f->device, bytes, 8, NULL, NULL, &memory),
                     GG_ERR_UNSUPPORTED);
    assert_ptr_equal(memory, untouched);
}

/* ---- managed memory ---- */

/* Skips the test if the device reports that it has none. */
static gg_memory *managed(struct fixture *f, size_t nbytes)
{
    gg_memory *memory = untouched;
    gg_status status = gg_memory_alloc(f->device, GG_MEMORY_MANAGED, nbytes, NULL, &memory);
    if (status == GG_ERR_UNSUPPORTED) {
        assert_message_has("managed memory");
        assert_ptr_equal(memory, untouched);
        skip_because("managed_memory is not supported");
    }
    assert_int_equal(status, GG_OK);
    assert_true(f->memory_count < OWNED_ROOM);
    return f->memories[f->memory_count++] = memory;
}

static void device_and_host_can_access_managed_memory(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = managed(f, MANY_BYTES), *device = new_memory(f, MANY_BYTES);
    assert_int_equal(gg_memory_get_kind(memory), GG_MEMORY_MANAGED);
    assert_int_equal((uintptr_t)gg_memory_pointer(memory) % 256, 0);
    memset(gg_memory_pointer(memory), 0x31, MANY_BYTES);
    assert_int_equal(copy(at(device, 0), at(memory, 0), MANY_BYTES, f->stream, GG_COPY_ASYNC),
                     GG_OK);
    assert_filled(f, device, MANY_BYTES, 0x31);
    assert_int_equal(fill_bytes(memory, 0x32, f->stream), GG_OK);
    finish(f->stream);
    assert_int_equal(((unsigned char *)gg_memory_pointer(memory))[MANY_BYTES - 1], 0x32);
}

static void a_device_reports_whether_it_has_managed_memory(void **state)
{
    struct fixture *f = *state;
    int64_t has = -1;
    need(f, GG_OP_device_attribute);
    assert_int_equal(gg_device_attribute(f->device, GG_ATTR_MANAGED_MEMORY, &has), GG_OK);
    gg_memory *memory = NULL;
    const gg_status status =
        gg_memory_alloc(f->device, GG_MEMORY_MANAGED, MANY_BYTES, NULL, &memory);
    assert_int_equal(status, has ? GG_OK : GG_ERR_UNSUPPORTED);
    gg_memory_release(memory);
}

static void a_prefetch_is_ordered_on_its_stream(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = managed(f, MANY_BYTES);
    need(f, GG_OP_mem_prefetch);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_memory_prefetch(memory, 0, f->stream), GG_OK);
    assert_true(busy(f->stream));
    gate_open(gate);
    finish(f->stream);
    assert_int_equal(gg_memory_prefetch(memory, 1, NULL), GG_OK);
}

static void managed_memory_accepts_every_advice(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = managed(f, MANY_BYTES);
    need(f, GG_OP_mem_advise);
    for (int advice = GG_ADVICE_READ_MOSTLY; advice <= GG_ADVICE_NOT_COARSE_GRAINED; advice++)
        for (int for_host = 0; for_host < 2; for_host++)
            assert_int_equal(gg_memory_advise(memory, (enum gg_advice)advice, for_host), GG_OK);
    assert_int_equal(gg_memory_advise(memory, (enum gg_advice)0, 0), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_memory_advise(memory, (enum gg_advice)9, 0), GG_ERR_INVALID_ARGUMENT);
}

static void prefetch_and_advise_require_managed_memory(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 100);
    assert_int_equal(gg_memory_prefetch(memory, 0, f->stream), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_memory_advise(memory, GG_ADVICE_READ_MOSTLY, 0), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("expected managed memory");
}

/* ---- attributes of a pointer ---- */

static struct gg_pointer_info info_of(const void *pointer, gg_device **device)
{
    struct gg_pointer_info info = {.struct_size = sizeof info};
    assert_int_equal(gg_pointer_query(pointer, device, &info), GG_OK);
    return info;
}

static void a_pointer_has_a_device_and_a_kind(void **state)
{
    struct fixture *f = *state;
    gg_device *device = NULL;
    need(f, GG_OP_pointer_info);
    gg_memory *memory = new_memory(f, 5000), *pinned = new_pinned(f, 5000, 0);
    char *inside = (char *)gg_memory_pointer(memory) + 4999;
    struct gg_pointer_info info = info_of(inside, &device);
    assert_ptr_equal(device, f->device);
    assert_int_equal(info.kind, GG_MEMORY_DEVICE);
    assert_int_equal(info.device, gg_device_ordinal(f->device));
    if (info.base) {
        assert_true((char *)info.base <= inside);
        assert_true(inside < (char *)info.base + info.size);
    }
    info = info_of(gg_memory_pointer(pinned), &device);
    assert_int_equal(info.kind, GG_MEMORY_PINNED);
    assert_non_null(device);
}

static void memory_unknown_to_the_driver_is_host_memory(void **state)
{
    struct fixture *f = *state;
    gg_device *device = f->device;
    need(f, GG_OP_pointer_info);
    struct gg_pointer_info info = info_of(&released, &device);
    assert_int_equal(info.kind, GG_MEMORY_HOST);
    assert_null(device);
    assert_int_equal(info.device, -1);
}

static void memory_that_was_freed_to_the_driver_is_unknown(void **state)
{
    struct fixture *f = *state;
    gg_device *device = NULL;
    gg_memory *memory = NULL;
    need(f, GG_OP_pointer_info);
    assert_int_equal(
        gg_memory_alloc(f->device, GG_MEMORY_DEVICE, MANY_BYTES * 5, f->stream, &memory), GG_OK);
    void *pointer = gg_memory_pointer(memory);
    gg_memory_release(memory);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(info_of(pointer, &device).kind, GG_MEMORY_HOST);
}

static void a_query_of_a_null_pointer_is_refused(void **state)
{
    struct gg_pointer_info info = {.struct_size = sizeof info};
    gg_device *device = NULL;
    (void)state;
    assert_int_equal(gg_pointer_query(NULL, &device, &info), GG_ERR_INVALID_ARGUMENT);
    info.struct_size = 4;
    assert_int_equal(gg_pointer_query(&info, &device, &info), GG_ERR_INVALID_ARGUMENT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(registered_memory_is_pinned),
    cmocka_unit_test(registered_memory_is_unlocked_when_its_work_is_done),
    cmocka_unit_test(a_page_cannot_be_registered_twice),
    cmocka_unit_test(memory_that_shares_a_page_with_registered_memory_is_copied),
    cmocka_unit_test(an_empty_range_cannot_be_registered),
    cmocka_unit_test(unsupported_registration_is_reported),
    cmocka_unit_test(device_and_host_can_access_managed_memory),
    cmocka_unit_test(a_device_reports_whether_it_has_managed_memory),
    cmocka_unit_test(a_prefetch_is_ordered_on_its_stream),
    cmocka_unit_test(managed_memory_accepts_every_advice),
    cmocka_unit_test(prefetch_and_advise_require_managed_memory),
    cmocka_unit_test(a_pointer_has_a_device_and_a_kind),
    cmocka_unit_test(memory_unknown_to_the_driver_is_host_memory),
    cmocka_unit_test(memory_that_was_freed_to_the_driver_is_unknown),
    cmocka_unit_test(a_query_of_a_null_pointer_is_refused),
    cmocka_unit_test(closed_memory_can_be_registered_again_while_other_work_runs),
};
SUITE(managed, tests);
