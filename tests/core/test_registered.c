/* test_registered.c: host memory that is registered again while its last release still waits. */
#include "inside.h"

#include "../support/gate.h"
#include "runtime/device.h"

#define TIMES 100

static char bytes[1 << 16];

static void register_again(void)
{
    gg_device *device = NULL;
    gg_stream *stream = NULL;
    void *gate = gate_new();
    CHECK(gg_device_find("host:0", &device) == GG_OK);
    CHECK(gg_stream_create(device, 0, 0, &stream) == GG_OK);
    CHECK(gg_stream_host_func(stream, gate_wait, gate) == GG_OK); /* the device is not idle */
    for (int i = 0; i < TIMES; i++) {
        gg_memory *memory = NULL;
        CHECK(gg_memory_host_register(device, bytes, sizeof bytes, NULL, NULL, &memory) == GG_OK);
        CHECK(atomic_load(&device->others_waiting) == 0); /* it took the one released before */
        gg_memory_release(memory);
        CHECK(atomic_load(&device->others_waiting) == 1);
    }
    gate_open(gate);
    CHECK(gg_stream_wait(stream, GG_FOREVER) == GG_OK);
    gg_stream_release(stream);
}

static void memory_that_is_registered_again_is_not_counted_as_released(void **state)
{
    (void)state;
    in_child(register_again);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(memory_that_is_registered_again_is_not_counted_as_released),
};
SUITE(registered, tests);
