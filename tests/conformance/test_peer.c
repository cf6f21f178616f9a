/* test_peer.c: devices that reach each other's memory, and one that only says so. */
#include "conformance.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* The second device of the run's backend; skips where there is none. */
static gg_device *neighbour(const struct fixture *f)
{
    int32_t count = 0;
    gg_device *device = NULL;
    assert_int_equal(gg_device_count(backend_name(), &count), GG_OK);
    if (count < 2)
        skip();
    assert_int_equal(gg_device_get(backend_name(), gg_device_ordinal(f->device) ? 0 : 1, &device),
                     GG_OK);
    return device;
}

static gg_device *reached_neighbour(const struct fixture *f)
{
    gg_device *device = neighbour(f);
    int32_t can = 7;
    assert_int_equal(gg_device_can_access(f->device, device, &can), GG_OK);
    if (!can)
        skip();
    return device;
}

static gg_memory *memory_there(struct fixture *f, gg_device *device)
{
    gg_memory *memory = NULL;
    assert_int_equal(gg_memory_alloc(device, GG_MEMORY_DEVICE, MANY_BYTES, NULL, &memory), GG_OK);
    return f->memories[f->memory_count++] = memory;
}

static void a_device_reaches_itself(void **state)
{
    struct fixture *f = *state;
    int32_t can = 7;
    assert_int_equal(gg_device_can_access(f->device, f->device, &can), GG_OK);
    assert_int_equal(can, 1);
}

static atomic_int copies;

static void count_copies(void *user, const struct gg_trace *trace)
{
    (void)user;
    if (trace->op == GG_OP_copy)
        atomic_fetch_add(&copies, 1);
}

static void a_copy_to_a_device_that_is_reached_is_one(void **state)
{
    struct fixture *f = *state;
    gg_device *device = reached_neighbour(f);
    const struct gg_tracer tracer = {.struct_size = sizeof tracer, .pre = count_copies};
    gg_memory *from = new_memory(f, MANY_BYTES), *to = memory_there(f, device);
    unsigned char *got = calloc(1, MANY_BYTES);
    assert_int_equal(fill_bytes(from, 0x3c, NULL), GG_OK);
    atomic_store(&copies, 0);
    assert_int_equal(gg_set_tracer(&tracer), GG_OK);
    assert_int_equal(copy(at(to, 0), at(from, 0), MANY_BYTES, NULL, 0), GG_OK);
    assert_int_equal(gg_set_tracer(NULL), GG_OK);
    assert_int_equal(atomic_load(&copies), 1);
    assert_int_equal(copy(host_at(got), at(to, 0), MANY_BYTES, NULL, 0), GG_OK);
    for (size_t i = 0; i < MANY_BYTES; i++)
        assert_int_equal(got[i], 0x3c);
    free(got);
}

static int believe_what_arrives(void)
{
    gg_device *one = NULL, *two = NULL;
    gg_memory *from = NULL, *to = NULL;
    unsigned char got[1000];
    int32_t can = 7;
    if (gg_device_get(backend_name(), 0, &one) || gg_device_get(backend_name(), 1, &two))
        return 77;
    if (gg_device_can_access(one, two, &can))
        return 1;
    if (gg_memory_alloc(one, GG_MEMORY_DEVICE, sizeof got, NULL, &from) ||
        gg_memory_alloc(two, GG_MEMORY_DEVICE, sizeof got, NULL, &to) ||
        gg_fill(from, 0, "k", 1, sizeof got, NULL) ||
        copy(at(to, 0), at(from, 0), sizeof got, NULL, 0) ||
        copy(host_at(got), at(to, 0), sizeof got, NULL, 0))
        return 1;
    for (size_t i = 0; i < sizeof got; i++)
        if (got[i] != 'k')
            return 1;
    return can ? 77 : 0; /* no simulated driver: it does what it says */
}

static void a_device_whose_bytes_do_not_arrive_is_not_believed(void **state)
{
    struct fixture *f = *state;
    char output[2000];
    reached_neighbour(f);
    int code =
        start_scenario("believe_what_arrives", "GPUGLUE_SIM_PEER", "lost", output, sizeof output);
    if (code == 77)
        skip();
    if (code || !strstr(output, "copies go through the host"))
        fail_msg("ended with %d: %s", code, output);
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {{"believe_what_arrives", believe_what_arrives}};
    struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_reaches_itself),
        cmocka_unit_test(a_copy_to_a_device_that_is_reached_is_one),
        cmocka_unit_test(a_device_whose_bytes_do_not_arrive_is_not_believed),
    };
    int scenario = run_scenario(argc, argv, scenarios, 1);
    if (scenario >= 0)
        return scenario;
    return run_suite(argc, argv, "peer", tests, sizeof tests / sizeof tests[0]);
}
