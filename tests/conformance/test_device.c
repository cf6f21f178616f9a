/* test_device.c: properties of a device, how it is found, waiting for all of its work. */
#include "conformance.h"

#include <gpuglue/backend.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static gg_device *const untouched = (gg_device *)(uintptr_t)16;

static void a_device_has_a_name_an_architecture_and_memory(void **state)
{
    struct fixture *f = *state;
    struct gg_device_info info = {.struct_size = sizeof info};
    assert_int_equal(gg_device_info(f->device, &info), GG_OK);
    assert_true(info.name[0] != '\0');
    assert_true(info.arch[0] != '\0');
    assert_true(info.total_memory > 0);
    assert_int_equal(info.struct_size, sizeof info);
}

static void device_info_reports_to_a_newer_caller_how_much_was_written(void **state)
{
    struct fixture *f = *state;
    struct {
        struct gg_device_info info;
        char newer[8];
    } theirs = {.info.struct_size = sizeof theirs, .newer = "mine"};
    assert_int_equal(gg_device_info(f->device, &theirs.info), GG_OK);
    assert_true(theirs.info.name[0] != '\0');
    assert_int_equal(theirs.info.struct_size, sizeof theirs.info);
    assert_string_equal(theirs.newer, "mine");
}

static void device_info_requires_the_size_of_the_first_version(void **state)
{
    struct fixture *f = *state;
    const uint32_t sizes[] = {0, 4, offsetof(struct gg_device_info, pci_bus_id),
                              sizeof(struct gg_device_info) - 1};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct gg_device_info info = {.struct_size = sizes[i], .name = "mine"};
        assert_int_equal(gg_device_info(f->device, &info), GG_ERR_INVALID_ARGUMENT);
        assert_message_has("set it to sizeof(struct gg_device_info)");
        assert_int_equal(info.struct_size, sizes[i]);
        assert_string_equal(info.name, "mine");
    }
}

static void the_same_ordinal_is_the_same_device(void **state)
{
    struct fixture *f = *state;
    gg_device *again = NULL;
    assert_int_equal(gg_device_get(backend_name(), 0, &again), GG_OK);
    assert_ptr_equal(again, f->device);
    assert_int_equal(gg_device_ordinal(again), 0);
    assert_string_equal(gg_device_backend(again), backend_name());
}

static void null_names_the_default_backend(void **state)
{
    struct fixture *f = *state;
    gg_device *device = NULL;
    int32_t count = 0;
    assert_int_equal(gg_device_count(NULL, &count), GG_OK);
    assert_true(count > 0);
    assert_int_equal(gg_device_get(NULL, 0, &device), GG_OK);
    assert_ptr_equal(device, f->device);
}

static void an_ordinal_that_does_not_exist_is_refused(void **state)
{
    const int32_t ordinals[] = {-1, 9999, INT32_MAX, INT32_MIN};
    (void)state;
    for (size_t i = 0; i < sizeof ordinals / sizeof ordinals[0]; i++) {
        gg_device *device = untouched;
        assert_int_equal(gg_device_get(backend_name(), ordinals[i], &device), GG_ERR_NO_SUCH_DEVICE);
        assert_ptr_equal(device, untouched);
    }
}

static void a_device_is_found_by_backend_and_by_ordinal(void **state)
{
    struct fixture *f = *state;
    char name[64];
    const char *const names[] = {name, backend_name(), "0"};
    snprintf(name, sizeof name, "%s:0", backend_name());
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        gg_device *device = NULL;
        assert_int_equal(gg_device_find(names[i], &device), GG_OK);
        assert_ptr_equal(device, f->device);
    }
}

static int devices_at(gg_device *device, const char *pci_bus_id)
{
    const char *backend = gg_device_backend(device);
    int32_t count = 0;
    int found = 0;
    assert_int_equal(gg_device_count(backend, &count), GG_OK);
    for (int32_t i = 0; i < count; i++) {
        struct gg_device_info info = {.struct_size = sizeof info};
        gg_device *other = NULL;
        assert_int_equal(gg_device_get(backend, i, &other), GG_OK);
        found += !gg_device_info(other, &info) && !strcmp(info.pci_bus_id, pci_bus_id);
    }
    return found;
}

static void a_device_is_found_by_its_pci_address_and_uuid(void **state)
{
    struct fixture *f = *state;
    struct gg_device_info info = {.struct_size = sizeof info};
    gg_device *device = NULL;
    char name[64] = "uuid:";
    assert_int_equal(gg_device_info(f->device, &info), GG_OK);
    if (!info.pci_bus_id[0] || !(info.flags & GG_DEVICE_HAS_UUID))
        skip_because("the device has no PCI address or no UUID");
    for (size_t i = 0; i < sizeof info.uuid; i++)
        snprintf(name + 5 + 2 * i, 3, "%02x", info.uuid[i]);
    assert_int_equal(gg_device_find(name, &device), GG_OK);
    assert_ptr_equal(device, f->device);
    snprintf(name, sizeof name, "pci:%s", info.pci_bus_id);
    device = NULL;
    if (devices_at(f->device, info.pci_bus_id) > 1) { /* such as one that two drivers have */
        assert_int_equal(gg_device_find(name, &device), GG_ERR_INVALID_ARGUMENT);
        assert_message_has("is that of");
        return;
    }
    assert_int_equal(gg_device_find(name, &device), GG_OK);
    assert_ptr_equal(device, f->device);
}

static void an_invalid_device_name_is_refused(void **state)
{
    const char *const names[] = {"",       ":",        "0x0",    "-1",   "99999999999999999999",
                                 "nosuch", "nosuch:0", "pci:zz", "pci:", "uuid:12",
                                 "uuid:",  "uuid:zzzz"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        gg_device *device = untouched;
        assert_fails(gg_device_find(names[i], &device));
        assert_ptr_equal(device, untouched);
        assert_true(last_error().message[0] != '\0');
    }
}

static void attributes_are_known_or_unsupported(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < GG_ATTR_COUNT; i++) {
        int64_t value = -12345;
        gg_status status = gg_device_attribute(f->device, (gg_attribute)i, &value);
        assert_true(status == GG_OK || status == GG_ERR_UNSUPPORTED);
        if (status)
            assert_int_equal(value, -12345);
        else
            assert_true(value >= 0);
    }
}

static void an_attribute_that_does_not_exist_is_refused(void **state)
{
    struct fixture *f = *state;
    int64_t value = -12345;
    assert_fails(gg_device_attribute(f->device, (gg_attribute)9999, &value));
    assert_int_equal(value, -12345);
    assert_string_equal(gg_attribute_name((gg_attribute)9999), "unknown");
}

static void free_memory_does_not_exceed_total_memory(void **state)
{
    struct fixture *f = *state;
    uint64_t free = 0, total = 0;
    need(f, GG_OP_device_memory_info);
    assert_int_equal(gg_device_memory_info(f->device, &free, &total), GG_OK);
    assert_true(total > 0);
    assert_true(free <= total);
}

static void supports_knows_every_operation_and_no_other(void **state)
{
    struct fixture *f = *state;
    static const enum gg_need needs[] = {
#define OP(slot, need) need,
#include <gpuglue/ops.def>
#undef OP
    };
    for (int op = 0; op < GG_OP_COUNT; op++)
        if (needs[op] == GG_REQUIRED)
            assert_int_equal(gg_device_supports(f->device, (gg_op)op), 1);
    assert_int_equal(gg_device_supports(f->device, GG_OP_COUNT), 0);
    assert_int_equal(gg_device_supports(f->device, (gg_op)-1), 0);
}

/* One call of each optional operation that has a function of its own. */
static gg_status call_optional(struct fixture *f, gg_op op, uint64_t out[4])
{
    gg_event *event = new_event(f, GG_EVENT_TIMING);
    gg_status status = gg_event_record(event, f->stream);
    assert_int_equal(status, GG_OK);
    finish(f->stream);
    switch ((int)op) {
    case GG_OP_device_memory_info:
        return gg_device_memory_info(f->device, &out[0], &out[1]);
    case GG_OP_device_native:
        return gg_device_native(f->device, out);
    case GG_OP_stream_native:
        return gg_stream_native(f->stream, out);
    case GG_OP_stream_priority_range:
        return gg_stream_priority_range(f->device, (int32_t *)&out[0], (int32_t *)&out[1]);
    case GG_OP_event_native:
        return gg_event_native(event, out);
    case GG_OP_event_elapsed:
        return gg_event_elapsed(event, event, (double *)&out[0]);
    default:
        return GG_ERR_INTERNAL;
    }
}

static void an_unsupported_operation_is_reported_and_does_not_write_its_outputs(void **state)
{
    struct fixture *f = *state;
    const gg_op ops[] = {GG_OP_device_memory_info,    GG_OP_device_native, GG_OP_stream_native,
                         GG_OP_stream_priority_range, GG_OP_event_native,  GG_OP_event_elapsed};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        uint64_t out[4] = {7, 7, 7, 7};
        const uint64_t before[4] = {7, 7, 7, 7};
        bool supported = gg_device_supports(f->device, ops[i]);
        assert_int_equal(call_optional(f, ops[i], out), supported ? GG_OK : GG_ERR_UNSUPPORTED);
        if (!supported)
            assert_memory_equal(out, before, sizeof out);
    }
}

/* ---- waiting for all work of a device ---- */

static void set_flag(void *flag)
{
    atomic_store((atomic_int *)flag, 1);
}

static void synchronize_of_an_idle_device_returns(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
}

static void synchronize_waits_for_every_stream(void **state)
{
    struct fixture *f = *state;
    atomic_int done[3] = {0};
    gg_stream *streams[3] = {f->stream, f->second, NULL};
    need(f, GG_OP_stream_host_func);
    assert_int_equal(gg_device_default_stream(f->device, &streams[2]), GG_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(gg_stream_host_func(streams[i], set_flag, &done[i]), GG_OK);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(atomic_load(&done[i]), 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_device_has_a_name_an_architecture_and_memory),
    cmocka_unit_test(device_info_reports_to_a_newer_caller_how_much_was_written),
    cmocka_unit_test(device_info_requires_the_size_of_the_first_version),
    cmocka_unit_test(the_same_ordinal_is_the_same_device),
    cmocka_unit_test(null_names_the_default_backend),
    cmocka_unit_test(an_ordinal_that_does_not_exist_is_refused),
    cmocka_unit_test(a_device_is_found_by_backend_and_by_ordinal),
    cmocka_unit_test(a_device_is_found_by_its_pci_address_and_uuid),
    cmocka_unit_test(an_invalid_device_name_is_refused),
    cmocka_unit_test(attributes_are_known_or_unsupported),
    cmocka_unit_test(an_attribute_that_does_not_exist_is_refused),
    cmocka_unit_test(free_memory_does_not_exceed_total_memory),
    cmocka_unit_test(supports_knows_every_operation_and_no_other),
    cmocka_unit_test(an_unsupported_operation_is_reported_and_does_not_write_its_outputs),
    cmocka_unit_test(synchronize_of_an_idle_device_returns),
    cmocka_unit_test(synchronize_waits_for_every_stream),
};
SUITE(device, tests);
