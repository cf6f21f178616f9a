/* test_ipc.c: device memory that another process opens by a handle. The other process is this
 * program again, with the handles as hexadecimal digits in an environment variable. */
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>

#define VARIABLE "GPUGLUE_TEST_HANDLES"
#define BYTES ((size_t)100000)
#define MOST 4

/* ---- handles ---- */

static struct gg_ipc_handle export_of(gg_memory *memory)
{
    struct gg_ipc_handle handle = {.struct_size = sizeof handle};
    gg_status status = gg_ipc_export(memory, &handle);
    if (status)
        fail_msg("%s", last_error().message);
    return handle;
}

static void write_digits(const struct gg_ipc_handle *handles, size_t count, char *out)
{
    const unsigned char *bytes = (const unsigned char *)handles;
    for (size_t i = 0; i < count * sizeof *handles; i++)
        sprintf(out + 2 * i, "%02x", bytes[i]);
}

static size_t read_digits(struct gg_ipc_handle *handles)
{
    const char *text = getenv(VARIABLE);
    unsigned char *bytes = (unsigned char *)handles;
    const size_t count = text ? strlen(text) / 2 : 0;
    unsigned value;
    for (size_t i = 0; i < count && i < MOST * sizeof *handles; i++) {
        if (sscanf(text + 2 * i, "%2x", &value) != 1)
            return 0;
        bytes[i] = (unsigned char)value;
    }
    return count / sizeof *handles;
}

/* Another process with these handles; it must succeed. */
static void run_elsewhere(const char *scenario, const struct gg_ipc_handle *handles, size_t count)
{
    char digits[2 * MOST * sizeof *handles + 1] = "", output[1000];
    write_digits(handles, count, digits);
    int code = start_scenario(scenario, VARIABLE, digits, output, sizeof output);
    if (code || output[0])
        fail_msg("%s ended with %d: %s", scenario, code, output);
}

/* ---- the other process ---- */

static gg_memory *opened[MOST];
static gg_stream *stream_here;

static int complain(const char *what)
{
    printf("%s: %s\n", what, last_error().message);
    return 1;
}

static int open_all(size_t expected)
{
    struct gg_ipc_handle handles[MOST];
    if (read_digits(handles) != expected)
        return complain("the handles did not arrive");
    for (size_t i = 0; i < expected; i++)
        if (gg_ipc_open(&handles[i], &opened[i]))
            return complain("open");
    if (gg_stream_create(gg_memory_device(opened[0]), 0, 0, &stream_here))
        return complain("stream");
    return 0;
}

static int look_for(gg_memory *memory, unsigned char value)
{
    const size_t size = gg_memory_size(memory);
    unsigned char *got = calloc(1, size);
    int wrong = !got || copy(host_at(got), at(memory, 0), size, NULL, 0) ? 1 : 0;
    for (size_t i = 0; i < size && !wrong; i++)
        wrong = got[i] != value;
    free(got);
    return wrong ? complain("what was opened is not what was exported") : 0;
}

static int end_here(void)
{
    gg_stream_release(stream_here);
    gg_shutdown(GG_FOREVER);
    return 0;
}

static int read_and_write(void)
{
    if (open_all(1) || look_for(opened[0], 7))
        return 1;
    if (gg_memory_size(opened[0]) != BYTES || gg_memory_get_kind(opened[0]) != GG_MEMORY_DEVICE)
        return complain("size or kind");
    if (gg_fill(opened[0], 0, "\x09", 1, BYTES, NULL) ||
        gg_device_synchronize(gg_memory_device(opened[0])))
        return complain("fill");
    gg_memory_release(opened[0]);
    return end_here();
}

/* Parts of one block, and one of them twice. */
static int share_a_mapping(void)
{
    if (open_all(3) || look_for(opened[0], 1) || look_for(opened[1], 2) || look_for(opened[2], 1))
        return 1;
    if (gg_memory_pointer(opened[0]) != gg_memory_pointer(opened[2]))
        return complain("the same memory has two addresses");
    gg_memory_release(opened[0]);
    gg_device_trim(gg_memory_device(opened[1]));
    if (look_for(opened[2], 1))
        return 1;
    gg_memory_release(opened[2]);
    gg_device_trim(gg_memory_device(opened[1]));
    if (look_for(opened[1], 2))
        return 1;
    gg_memory_release(opened[1]);
    return end_here();
}

/* Once closed it can be opened again. */
static int open_again(void)
{
    struct gg_ipc_handle handle;
    for (int i = 0; i < 3; i++) {
        if (read_digits(&handle) != 1 || gg_ipc_open(&handle, &opened[0]))
            return complain("open");
        if (look_for(opened[0], 7))
            return 1;
        gg_device *device = gg_memory_device(opened[0]);
        gg_memory_release(opened[0]);
        gg_device_synchronize(device);
        gg_device_trim(device);
    }
    return end_here();
}

static int close_in_use(void)
{
    struct gate *gate = gate_new();
    if (open_all(1))
        return 1;
    gg_device *device = gg_memory_device(opened[0]);
    if (gg_stream_host_func(stream_here, gate_wait, gate))
        return complain("no host function");
    if (gg_fill(opened[0], 0, "\x05", 1, BYTES, stream_here))
        return complain("fill");
    gg_memory_release(opened[0]);
    if (gg_device_trim(device))
        return complain("trim");
    gate_open(gate);
    if (gg_stream_wait(stream_here, GG_FOREVER) || gg_device_trim(device))
        return complain("wait");
    gate_free(gate);
    return end_here();
}

static int pass_it_on(void)
{
    struct gg_ipc_handle handle = {.struct_size = sizeof handle};
    if (open_all(1))
        return 1;
    if (gg_ipc_export(opened[0], &handle) != GG_ERR_INVALID_ARGUMENT ||
        !strstr(last_error().message, "pass on that handle"))
        return complain("what was opened was exported");
    gg_memory_release(opened[0]);
    return end_here();
}

/* The first handles claim more than was exported; the last one is true. */
static int refuse_claims(void)
{
    struct gg_ipc_handle handles[MOST];
    gg_memory *none = NULL;
    if (read_digits(handles) != 3)
        return complain("the handles did not arrive");
    for (int i = 0; i < 2; i++)
        if (gg_ipc_open(&handles[i], &none) != GG_ERR_INVALID_ARGUMENT || none)
            return complain("more was opened than was exported");
    if (!strstr(last_error().message, "the driver has mapped"))
        return complain("the reason is missing");
    if (gg_ipc_open(&handles[2], &opened[0]) || look_for(opened[0], 7))
        return complain("the true handle");
    gg_memory_release(opened[0]);
    return end_here();
}

/* An exporter that ends, and prints its handle. */
static int export_and_end(void)
{
    gg_device *device = NULL;
    gg_memory *memory = NULL;
    struct gg_ipc_handle handle = {.struct_size = sizeof handle};
    char digits[2 * sizeof handle + 1] = "";
    if (gg_device_get(backend_name(), 0, &device) ||
        gg_memory_alloc(device, GG_MEMORY_DEVICE, BYTES, NULL, &memory) ||
        gg_ipc_export(memory, &handle))
        return complain("export");
    write_digits(&handle, 1, digits);
    fputs(digits, stdout);
    gg_memory_release(memory);
    return end_here();
}

/* ---- this process ---- */

static gg_memory *filled(struct fixture *f, size_t nbytes, unsigned char value)
{
    gg_memory *memory = new_memory(f, nbytes);
    struct gg_device_info info = {.struct_size = sizeof info};
    need(f, GG_OP_ipc_export);
    need(f, GG_OP_ipc_open);
    need_sizes(f, memory);
    assert_int_equal(gg_device_info(f->device, &info), GG_OK);
    if (!(info.flags & GG_DEVICE_HAS_UUID))
        skip_because("the device has no UUID");
    assert_int_equal(fill_bytes(memory, value, f->stream), GG_OK);
    finish(f->stream);
    return memory;
}

static void another_process_reads_and_writes_exported_memory(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = filled(f, BYTES, 7);
    const struct gg_ipc_handle handle = export_of(memory);
    assert_int_equal(handle.nbytes, BYTES);
    run_elsewhere("read_and_write", &handle, 1);
    assert_filled(f, memory, BYTES, 9);
}

static void a_block_with_its_own_driver_allocation_is_exported(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = filled(f, (size_t)5 << 20, 7);
    const struct gg_ipc_handle handle = export_of(memory);
    assert_int_equal(handle.offset, 0);
    run_elsewhere("open_again", &handle, 1);
}

static void parts_of_one_block_share_a_mapping(void **state)
{
    struct fixture *f = *state;
    gg_memory *one = filled(f, 3000, 1), *two = filled(f, 3000, 2);
    const struct gg_ipc_handle handles[] = {export_of(one), export_of(two), export_of(one)};
    assert_memory_equal(handles[0].native, handles[1].native, sizeof handles[0].native);
    assert_int_not_equal(handles[0].offset, handles[1].offset);
    run_elsewhere("share_a_mapping", handles, 3);
}

static void opened_memory_that_is_released_in_use_is_closed_after_its_work(void **state)
{
    struct fixture *f = *state;
    need(f, GG_OP_stream_host_func);
    gg_memory *memory = filled(f, BYTES, 7);
    const struct gg_ipc_handle handle = export_of(memory);
    run_elsewhere("close_in_use", &handle, 1);
    assert_filled(f, memory, BYTES, 5);
}

static void opened_memory_cannot_be_exported(void **state)
{
    struct fixture *f = *state;
    const struct gg_ipc_handle handle = export_of(filled(f, BYTES, 7));
    run_elsewhere("pass_it_on", &handle, 1);
}

static void a_process_cannot_open_its_own_handle(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = filled(f, BYTES, 7), *out = memory;
    const struct gg_ipc_handle handle = export_of(memory);
    assert_int_equal(gg_ipc_open(&handle, &out), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("is from this process");
    assert_ptr_equal(out, memory);
}

static void only_device_memory_is_exported(void **state)
{
    struct fixture *f = *state;
    struct gg_ipc_handle handle = {.struct_size = sizeof handle, .nbytes = 3};
    gg_memory *pinned = new_pinned(f, 100, 0), *empty = new_memory(f, 0);
    need(f, GG_OP_ipc_export);
    assert_int_equal(gg_ipc_export(pinned, &handle), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("expected device memory");
    assert_int_equal(gg_ipc_export(empty, &handle), GG_ERR_INVALID_ARGUMENT);
    handle.struct_size = 8;
    assert_int_equal(gg_ipc_export(new_memory(f, 8), &handle), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(handle.nbytes, 3);
}

/* It comes as far as the check for the own process. */
static void a_handle_with_fields_of_a_later_version_is_accepted(void **state)
{
    struct fixture *f = *state;
    struct {
        struct gg_ipc_handle handle;
        uint64_t later;
    } longer = {.handle = {.struct_size = sizeof longer.handle}};
    gg_memory *here = NULL;
    longer.handle = export_of(filled(f, BYTES, 7));
    longer.handle.struct_size = sizeof longer;
    assert_int_equal(gg_ipc_open(&longer.handle, &here), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("is from this process");
}

static void a_damaged_handle_is_refused(void **state)
{
    struct fixture *f = *state;
    const struct gg_ipc_handle good = export_of(filled(f, BYTES, 7));
    gg_memory *out = NULL;
    struct gg_ipc_handle bad[7];
    for (int i = 0; i < 7; i++)
        bad[i] = good;
    bad[0].magic++;
    bad[1].struct_size--;
    memset(bad[2].backend, 'x', sizeof bad[2].backend);
    bad[3].nbytes = 0;
    bad[4].nbytes = UINT64_MAX;
    bad[5].offset = good.block;
    bad[6].nbytes = good.block + 1;
    for (int i = 0; i < 7; i++) {
        assert_int_equal(gg_ipc_open(&bad[i], &out), GG_ERR_INVALID_ARGUMENT);
        assert_message_has("damaged, or from another version of gpuglue");
    }
    assert_null(out);
}

static void a_handle_of_another_version_is_refused_with_both_versions(void **state)
{
    struct fixture *f = *state;
    struct gg_ipc_handle other = export_of(filled(f, BYTES, 7));
    gg_memory *out = NULL;
    assert_int_equal(other.version, GG_IPC_VERSION);
    other.version = GG_IPC_VERSION + 1;
    assert_int_equal(gg_ipc_open(&other, &out), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("the handle has version 2, expected 1");
    assert_null(out);
}

/* So that a variable that is not initialised has this value. */
static __attribute__((noinline)) void fill_the_stack(int value)
{
    volatile char deep[16384];
    for (size_t i = 0; i < sizeof deep; i++)
        deep[i] = (char)value;
}

static void handles_to_one_block_are_equal(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = filled(f, BYTES, 7);
    struct gg_ipc_handle handles[2];
    for (int i = 0; i < 2; i++) {
        fill_the_stack(i + 1);
        handles[i] = export_of(memory);
    }
    assert_memory_equal(handles[0].native, handles[1].native, sizeof handles[0].native);
}

static void a_handle_that_claims_more_than_its_block_is_refused(void **state)
{
    struct fixture *f = *state;
    const struct gg_ipc_handle good = export_of(filled(f, BYTES, 7));
    struct gg_ipc_handle handles[] = {good, good, good};
    handles[0].block = 0;
    handles[0].nbytes = good.block + MANY_BYTES;
    handles[1].block = (uint64_t)1 << 40;
    handles[1].offset = (uint64_t)1 << 36;
    run_elsewhere("refuse_claims", handles, 3);
}

static void a_handle_of_an_absent_device_is_refused(void **state)
{
    struct fixture *f = *state;
    struct gg_ipc_handle handle = export_of(filled(f, BYTES, 7));
    gg_memory *out = NULL;
    handle.process++;
    memset(handle.uuid, 0xee, sizeof handle.uuid);
    assert_int_equal(gg_ipc_open(&handle, &out), GG_ERR_NO_SUCH_DEVICE);
    assert_message_has("UUID");
    strcpy(handle.backend, "nobody");
    assert_fails(gg_ipc_open(&handle, &out));
    assert_null(out);
}

static void a_handle_of_a_process_that_has_ended_is_refused(void **state)
{
    struct fixture *f = *state;
    struct gg_ipc_handle handle;
    char digits[2 * sizeof handle + 1] = "";
    gg_memory *out = NULL;
    filled(f, 8, 7);
    assert_int_equal(start_scenario("export_and_end", VARIABLE, "", digits, sizeof digits), 0);
    setenv(VARIABLE, digits, 1);
    assert_int_equal(read_digits(&handle), 1);
    unsetenv(VARIABLE);
    assert_fails(gg_ipc_open(&handle, &out));
    assert_null(out);
}

/* Drivers differ in the bytes that they check: of a handle with one byte changed, an H200's driver opens some. */
static void a_handle_that_the_driver_did_not_make_is_refused(void **state)
{
    struct fixture *f = *state;
    struct gg_ipc_handle bad = export_of(filled(f, BYTES, 7));
    gg_memory *out = NULL;
    bad.process++; /* as if it came from elsewhere */
    for (size_t i = 0; i < sizeof bad.native; i++)
        bad.native[i] ^= 0x55;
    assert_fails(gg_ipc_open(&bad, &out));
    assert_null(out);
}

static void a_damaged_handle_of_host_memory_is_refused(void **state)
{
    struct fixture *f = *state;
    need(f, GG_OP_ipc_export);
    if (strcmp(gg_device_backend(f->device), "host") != 0)
        skip_because("the driver checks its handles");
    const struct gg_ipc_handle good = export_of(filled(f, BYTES, 7));
    gg_memory *out = NULL;
    for (size_t i = 0; i < 56; i += 5) {
        struct gg_ipc_handle bad = good;
        bad.process++;
        bad.native[i] ^= 0x55;
        bad.native[i + 8] ^= 0x55;
        assert_fails(gg_ipc_open(&bad, &out));
    }
    assert_null(out);
}

/* Some backends move such memory where others can map it, once, at the same address. */
static void a_large_block_keeps_its_address_and_contents_when_it_is_exported(void **state)
{
    struct fixture *f = *state;
    const size_t nbytes = ((size_t)20 << 20) + 4096;
    gg_memory *memory = filled(f, nbytes, 3);
    void *const pointer = gg_memory_pointer(memory);
    need(f, GG_OP_stream_host_func);
    void *gate = hold(f, f->stream);
    assert_int_equal(fill_bytes(memory, 7, f->stream), GG_OK);
    gate_open(gate);
    const struct gg_ipc_handle first = export_of(memory), second = export_of(memory);
    assert_memory_equal(&first, &second, sizeof first);
    assert_ptr_equal(gg_memory_pointer(memory), pointer);
    assert_filled(f, memory, nbytes, 7);
    run_elsewhere("open_again", &first, 1);
}

static void a_device_without_handles_reports_it(void **state)
{
    struct fixture *f = *state;
    struct gg_ipc_handle handle = {.struct_size = sizeof handle, .nbytes = 3};
    if (gg_device_supports(f->device, GG_OP_ipc_export))
        skip_because("the device has handles");
    assert_int_equal(gg_ipc_export(new_memory(f, 8), &handle), GG_ERR_UNSUPPORTED);
    assert_int_equal(handle.nbytes, 3);
}

static const struct scenario scenarios[] = {
    {"read_and_write", read_and_write}, {"share_a_mapping", share_a_mapping},
    {"open_again", open_again},         {"close_in_use", close_in_use},
    {"pass_it_on", pass_it_on},         {"refuse_claims", refuse_claims},
    {"export_and_end", export_and_end},
};

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(another_process_reads_and_writes_exported_memory),
    cmocka_unit_test(a_block_with_its_own_driver_allocation_is_exported),
    cmocka_unit_test(parts_of_one_block_share_a_mapping),
    cmocka_unit_test(opened_memory_that_is_released_in_use_is_closed_after_its_work),
    cmocka_unit_test(opened_memory_cannot_be_exported),
    cmocka_unit_test(a_process_cannot_open_its_own_handle),
    cmocka_unit_test(only_device_memory_is_exported),
    cmocka_unit_test(a_handle_with_fields_of_a_later_version_is_accepted),
    cmocka_unit_test(a_damaged_handle_is_refused),
    cmocka_unit_test(a_handle_of_another_version_is_refused_with_both_versions),
    cmocka_unit_test(handles_to_one_block_are_equal),
    cmocka_unit_test(a_handle_that_claims_more_than_its_block_is_refused),
    cmocka_unit_test(a_handle_of_an_absent_device_is_refused),
    cmocka_unit_test(a_handle_of_a_process_that_has_ended_is_refused),
    cmocka_unit_test(a_handle_that_the_driver_did_not_make_is_refused),
    cmocka_unit_test(a_damaged_handle_of_host_memory_is_refused),
    cmocka_unit_test(a_large_block_keeps_its_address_and_contents_when_it_is_exported),
    cmocka_unit_test(a_device_without_handles_reports_it),
};
SUITE_AND_SCENARIOS(ipc, tests, scenarios);
