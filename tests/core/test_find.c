/* test_find.c: devices by backend and ordinal, by name, by PCI address and by UUID. */
#include "inside.h"

#define UUID_OF_1 "11121314-1516-1718-191a-1b1c1d1e1f20"

static void good_plugin(void)
{
    CHECK(gg_register_plugin(fixture("gpuglue_good.so")) == GG_OK);
    CHECK(gg_register_plugin(fixture("gpuglue_no_device.so")) == GG_OK);
}

static void finds(const char *name, const char *backend, int32_t ordinal)
{
    gg_device *device = NULL;
    check(gg_device_find(name, &device) == GG_OK, name, "finds", 0);
    CHECK_SAME(gg_device_backend(device), backend);
    CHECK(gg_device_ordinal(device) == ordinal);
}

static const char *refuses(const char *name, gg_status expected)
{
    gg_device *device = (gg_device *)&expected;
    check(gg_device_find(name, &device) == expected, name, "refuses", 0);
    CHECK((void *)device == (void *)&expected);
    return error_message();
}

static void names(void)
{
    good_plugin();
    finds("good:1", "good", 1);
    finds("Good:0", "good", 0);
    finds("good", "good", 0);
    finds("1", "good", 1); /* of the default backend */
    finds("host:0", "host", 0);
    finds("host", "host", 0);
}
static void a_name_is_a_backend_an_ordinal_or_both(void **state)
{
    (void)state;
    in_child(names);
}

static void bad_names(void)
{
    const char *const bad[] = {"",        ":",      "good:",   ":1",       "good:x",
                               "good:-1", "-1",     "1.0",     "good:1:1", "good host",
                               "pci:",    "pci:zz", "uuid:12", "uuid:",    " 1"};
    good_plugin();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_HAS(refuses(bad[i], GG_ERR_INVALID_ARGUMENT), "does not name a device: expected");
    CHECK(gg_device_find(NULL, NULL) == GG_ERR_INVALID_ARGUMENT);
}
static void an_invalid_name_is_refused_with_the_expected_form(void **state)
{
    (void)state;
    in_child(bad_names);
}

static void no_ordinal(void)
{
    gg_device *device;
    good_plugin();
    CHECK_HAS(refuses("good:2", GG_ERR_NO_SUCH_DEVICE),
              "no device 2: backend \"good\" has 2 devices, 0 to 1");
    CHECK_HAS(refuses("host:7", GG_ERR_NO_SUCH_DEVICE), "backend \"host\" has one, number 0");
    refuses("good:99999999999999999999999999", GG_ERR_NO_SUCH_DEVICE);
    CHECK(gg_device_get("good", -1, &device) == GG_ERR_NO_SUCH_DEVICE);
    CHECK_HAS(error_message(), "no device -1");
    CHECK(gg_device_get("good", 0, NULL) == GG_ERR_INVALID_ARGUMENT);
}
static void an_ordinal_too_high_is_reported_with_the_range(void **state)
{
    (void)state;
    in_child(no_ordinal);
}

static void no_backend(void)
{
    int32_t count = 77;
    good_plugin();
    CHECK_HAS(refuses("nobody:0", GG_ERR_UNAVAILABLE), "nobody: plugin-not-found");
    CHECK_HAS(refuses("no_device:0", GG_ERR_UNAVAILABLE), "no-device");
    CHECK(gg_device_count("no_device", &count) == GG_ERR_UNAVAILABLE);
    CHECK(count == 77);
    CHECK(gg_device_count("good", &count) == GG_OK && count == 2);
    CHECK(gg_device_count(NULL, &count) == GG_OK && count == 2);
    CHECK(gg_device_count("good", NULL) == GG_ERR_INVALID_ARGUMENT);
}
static void a_missing_backend_is_reported_with_its_reason(void **state)
{
    (void)state;
    in_child(no_backend);
}

static void by_pci(void)
{
    good_plugin();
    finds("pci:0000:02:00.0", "good", 1);
    finds("PCI:00000000:01:00.0", "good", 0);
    finds("pci:2:0.0", "good", 1);
    const char *message = refuses("pci:0000:99:00.0", GG_ERR_NO_SUCH_DEVICE);
    CHECK_HAS(message, "\"pci:0000:99:00.0\"");
    CHECK_HAS(message, "good:0 0000:01:00.0, good:1 0000:02:00.0");
}
static void a_pci_address_finds_its_device(void **state)
{
    (void)state;
    in_child(by_pci);
}

static void by_uuid(void)
{
    good_plugin();
    finds("uuid:" UUID_OF_1, "good", 1);
    finds("uuid:1112131415161718191A1B1C1D1E1F20", "good", 1);
    const char *message = refuses("uuid:00000000000000000000000000000000", GG_ERR_NO_SUCH_DEVICE);
    CHECK_HAS(message, "good:0 0102030405060708090a0b0c0d0e0f10");
}
static void a_uuid_finds_its_device(void **state)
{
    (void)state;
    in_child(by_uuid);
}

static void other_backend(void)
{
    good_plugin();
    CHECK(gg_use_backend("host") == GG_OK);
    finds("pci:0000:02:00.0", "good", 1);
    finds("0", "host", 0);
}
static void an_address_is_searched_in_every_backend(void **state)
{
    (void)state;
    in_child(other_backend);
}

static void excluded(void)
{
    good_plugin();
    setenv("GPUGLUE_BACKEND", "host", 1);
    refuses("pci:0000:02:00.0", GG_ERR_NO_SUCH_DEVICE);
}
static void an_address_is_not_searched_in_excluded_backends(void **state)
{
    (void)state;
    in_child(excluded);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_name_is_a_backend_an_ordinal_or_both),
    cmocka_unit_test(an_invalid_name_is_refused_with_the_expected_form),
    cmocka_unit_test(an_ordinal_too_high_is_reported_with_the_range),
    cmocka_unit_test(a_missing_backend_is_reported_with_its_reason),
    cmocka_unit_test(a_pci_address_finds_its_device),
    cmocka_unit_test(a_uuid_finds_its_device),
    cmocka_unit_test(an_address_is_searched_in_every_backend),
    cmocka_unit_test(an_address_is_not_searched_in_excluded_backends),
};
SUITE(find, tests);
