/* test_comm_local.c: communicators whose ranks are threads of one process. */
#include "ranks.h"

#include <gpuglue/comm_device.h>

#include <pthread.h>

#define RANKS 4

static gg_comm *comms[GG_COMM_SIZE_MAX];
static _Atomic int ranks_in, ranks_out;

static struct gg_comm_all_options all_options(int32_t size, uint64_t timeout_ns)
{
    return (struct gg_comm_all_options){
        .struct_size = sizeof(struct gg_comm_all_options), .size = size, .timeout_ns = timeout_ns};
}
static void create_all(int32_t size, uint64_t timeout_ns)
{
    const struct gg_comm_all_options options = all_options(size, timeout_ns);
    CHECK(gg_comm_create_all(&options, comms) == GG_OK);
}
static void release_all(int32_t size)
{
    for (int32_t rank = 0; rank < size; rank++)
        gg_comm_release(comms[rank]);
}

/* @p body with each communicator, in a thread of its own. */
static void run_threads(void *(*body)(void *), int32_t first, int32_t size)
{
    pthread_t threads[GG_COMM_SIZE_MAX];
    for (int32_t rank = first; rank < size; rank++)
        CHECK(pthread_create(&threads[rank], NULL, body, comms[rank]) == 0);
    for (int32_t rank = first; rank < size; rank++)
        CHECK(pthread_join(threads[rank], NULL) == 0);
}

/* ---- results ---- */

static void *operate(void *argument)
{
    enum { COUNT = 300000 }; /* several rounds, and the split reduction */
    gg_comm *comm = argument;
    const int32_t rank = gg_comm_rank(comm), size = gg_comm_size(comm);
    int32_t *values = malloc(COUNT * sizeof *values), all[GG_COMM_SIZE_MAX], got = -1;
    CHECK(values && comm == comms[rank]);
    for (int32_t i = 0; i < COUNT; i++)
        values[i] = rank + i;
    CHECK(gg_comm_all_reduce(comm, values, values, COUNT, GG_COMM_INT32, GG_COMM_SUM) == GG_OK);
    for (int32_t i = 0; i < COUNT; i++)
        CHECK(values[i] == size * (size - 1) / 2 + size * i);
    CHECK(gg_comm_all_gather(comm, all, &rank, sizeof rank) == GG_OK);
    for (int32_t i = 0; i < size; i++)
        CHECK(all[i] == i);
    CHECK(gg_comm_send_recv(comm, &rank, sizeof rank, (rank + 1) % size, &got, sizeof got,
                            (rank + size - 1) % size) == GG_OK);
    CHECK(got == (rank + size - 1) % size);
    CHECK(gg_comm_barrier(comm) == GG_OK);
    CHECK_SAME(gg_comm_transport(comm), "host");
    gg_comm_release(comm);
    free(values);
    return NULL;
}
static void operates_with_1_to_8(void)
{
    for (int32_t size = 1; size <= 8; size++) {
        create_all(size, GG_FOREVER);
        run_threads(operate, 0, size);
    }
}
static void threads_of_one_process_can_be_ranks(void **state)
{
    (void)state;
    in_child(operates_with_1_to_8);
}

static void *gather_bytes(void *argument)
{
    char all[GG_COMM_SIZE_MAX], mine = 1;
    CHECK(gg_comm_all_gather(argument, all, &mine, 1) == GG_OK);
    for (int i = 0; i < GG_COMM_SIZE_MAX; i++)
        CHECK(all[i] == 1);
    return NULL;
}
static void gathers_of_most_ranks(void)
{
    create_all(GG_COMM_SIZE_MAX, GG_FOREVER);
    run_threads(gather_bytes, 0, GG_COMM_SIZE_MAX);
    release_all(GG_COMM_SIZE_MAX);
}
static void as_many_ranks_as_a_communicator_can_have_fit_into_one_process(void **state)
{
    (void)state;
    in_child(gathers_of_most_ranks);
}

/* ---- ranks that do not take part ---- */

static void one_thread_waits_alone(void)
{
    int32_t named[RANKS] = {-1, -1, -1, -1};
    create_all(RANKS, 100000000);
    CHECK(gg_comm_barrier(comms[0]) == GG_ERR_COMMUNICATOR);
    CHECK_HAS(error_message(),
              "ranks 1, 2 and 3 did not take part within the timeout (each rank of "
              "a process needs a thread of its own)");
    CHECK(gg_comm_failed_ranks(named, RANKS) == 3 && named[0] == 1 && named[2] == 3);
    CHECK(gg_comm_barrier(comms[2]) == GG_ERR_COMMUNICATOR);
    release_all(RANKS);
}
static void one_thread_for_all_ranks_ends_at_the_timeout_which_names_the_others(void **state)
{
    (void)state;
    in_child(one_thread_waits_alone);
}

static void *miss_rank_3(void *argument)
{
    atomic_fetch_add(&ranks_in, 1);
    CHECK(gg_comm_barrier(argument) == GG_ERR_COMMUNICATOR);
    CHECK_NAMES(3);
    CHECK_HAS(error_message(), "rank 3 closed the communicator");
    gg_comm_release(argument);
    return NULL;
}
static void *close_when_all_wait(void *argument)
{
    while (atomic_load(&ranks_in) < RANKS - 1)
        usleep(1000);
    gg_comm_release(argument);
    return NULL;
}
static void *one_closes(void *argument)
{
    return gg_comm_rank(argument) == RANKS - 1 ? close_when_all_wait(argument)
                                               : miss_rank_3(argument);
}
static void one_thread_closes(void)
{
    create_all(RANKS, GG_FOREVER);
    run_threads(one_closes, 0, RANKS);
}
static void a_rank_that_closes_is_named_by_the_other_threads(void **state)
{
    (void)state;
    in_child(one_thread_closes);
}

static void *wait_for_abort(void *argument)
{
    atomic_fetch_add(&ranks_in, 1);
    CHECK(gg_comm_barrier(argument) == GG_ERR_COMMUNICATOR);
    CHECK_NAMES(0);
    CHECK_HAS(error_message(), "rank 0");
    CHECK_HAS(error_message(), "aborted the communicator");
    return NULL;
}
static void *abort_when_all_wait(void *unused)
{
    (void)unused;
    while (atomic_load(&ranks_in) < RANKS - 1)
        usleep(1000);
    CHECK(gg_comm_abort(comms[0]) == GG_OK);
    return NULL;
}
static void another_thread_aborts(void)
{
    pthread_t aborts;
    create_all(RANKS, GG_FOREVER);
    CHECK(pthread_create(&aborts, NULL, abort_when_all_wait, NULL) == 0);
    run_threads(wait_for_abort, 1, RANKS); /* rank 0 waits for nothing */
    CHECK(pthread_join(aborts, NULL) == 0);
    release_all(RANKS);
}
static void an_abort_by_another_thread_ends_the_waits_of_all(void **state)
{
    (void)state;
    in_child(another_thread_aborts);
}

/* ---- wait hooks ---- */

static pthread_t interrupted;

static int interrupt_one_thread(void)
{
    return pthread_equal(pthread_self(), interrupted) && atomic_load(&ranks_in) == 1;
}
static void *miss_interrupted(void *argument)
{
    atomic_fetch_add(&ranks_in, 1);
    CHECK(gg_comm_barrier(argument) == GG_ERR_COMMUNICATOR);
    CHECK_NAMES(0);
    atomic_fetch_add(&ranks_out, 1);
    return NULL;
}
static void hook_interrupts_a_wait(void)
{
    pthread_t other;
    create_all(3, GG_FOREVER);
    interrupted = pthread_self();
    gg_set_wait_hook(interrupt_one_thread);
    CHECK(pthread_create(&other, NULL, miss_interrupted, comms[1]) == 0);
    CHECK(gg_comm_barrier(comms[0]) == GG_ERR_INTERRUPTED);
    CHECK(pthread_join(other, NULL) == 0 && atomic_load(&ranks_out) == 1);
    release_all(3);
}
static void an_interrupt_of_one_thread_ends_the_waits_of_the_others(void **state)
{
    (void)state;
    in_child(hook_interrupts_a_wait);
}

/* ---- forks ---- */

static void uses_and_releases_in_child(void)
{
    CHECK(gg_comm_barrier(comms[0]) == GG_ERR_FORKED);
    CHECK(gg_comm_abort(comms[1]) == GG_ERR_FORKED);
    release_all(RANKS);
}
static void parent_goes_on(void)
{
    create_all(RANKS, GG_FOREVER);
    CHECK(forked(uses_and_releases_in_child) == 0);
    run_threads(operate, 0, RANKS);
}
static void a_forked_child_cannot_use_them_and_the_parent_still_can(void **state)
{
    (void)state;
    in_child(parent_goes_on);
}

/* ---- parts ---- */

static void *splits(void *comm)
{
    check_split_of_six(comm, gg_comm_rank(comm));
    return NULL;
}
static void six_threads_split(void)
{
    create_all(6, GG_FOREVER);
    for (int i = 0; i < 3; i++)
        run_threads(splits, 0, 6);
    release_all(6);
}

/* All but rank 0 come to the split, and give up. */
static void *splits_without_rank_0(void *argument)
{
    gg_comm *part = NULL;
    CHECK(gg_comm_split(argument, 0, 0, &part) == GG_ERR_COMMUNICATOR && !part);
    CHECK_NAMES(0);
    return NULL;
}
static void one_does_not_split(void)
{
    create_all(3, 200 * 1000000u);
    run_threads(splits_without_rank_0, 1, 3);
    release_all(3);
}
static void threads_of_one_process_can_be_split(void **state)
{
    (void)state;
    in_child(six_threads_split);
    in_child(one_does_not_split);
}

static bool out_of_memory; /* from the start of the threads on */

gg_status __real_ggi_comm_create_all(int32_t size, uint64_t timeout_ns, struct gg_comm **out);
gg_status __wrap_ggi_comm_create_all(int32_t size, uint64_t timeout_ns, struct gg_comm **out);
gg_status __wrap_ggi_comm_create_all(int32_t size, uint64_t timeout_ns, struct gg_comm **out)
{
    if (out_of_memory)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no memory for %d communicators", (int)size);
    return __real_ggi_comm_create_all(size, timeout_ns, out);
}

/* Rank 2 is the first of the part. */
static void *splits_without_memory(void *argument)
{
    gg_comm *comm = argument, *part = NULL;
    const bool first = gg_comm_rank(comm) == 2;
    const gg_status status = gg_comm_split(comm, 0, -gg_comm_rank(comm), &part);
    CHECK(status == (first ? GG_ERR_OUT_OF_MEMORY : GG_ERR_COMMUNICATOR) && !part);
    CHECK_HAS(error_message(), first ? "no memory for 3 communicators" : "rank 2 could not create");
    CHECK(gg_comm_barrier(comm) == GG_OK);
    return NULL;
}
static void three_threads_split_without_memory(void)
{
    create_all(3, GG_FOREVER);
    out_of_memory = true;
    run_threads(splits_without_memory, 0, 3);
    release_all(3);
}
static void the_rank_that_cannot_create_the_parts_reports_why(void **state)
{
    (void)state;
    in_child(three_threads_split_without_memory);
}

/* ---- creation ---- */

static void refuses_sizes(void)
{
    struct gg_comm_all_options options = all_options(0, GG_FOREVER);
    CHECK(gg_comm_create_all(&options, comms) == GG_ERR_INVALID_ARGUMENT);
    CHECK_HAS(error_message(), "size is 0, expected 1 to 256");
    options.size = GG_COMM_SIZE_MAX + 1;
    CHECK(gg_comm_create_all(&options, comms) == GG_ERR_INVALID_ARGUMENT);
    options.struct_size = 8;
    CHECK(gg_comm_create_all(&options, comms) == GG_ERR_INVALID_ARGUMENT);
    CHECK_HAS(error_message(), "gg_comm_all_options");
    CHECK(!comms[0]);
}
static void sizes_out_of_range_are_refused_for_one_process(void **state)
{
    (void)state;
    in_child(refuses_sizes);
}

static void stages_one_device(void)
{
    gg_device *device, *devices[3];
    struct gg_comm_all_options options = all_options(3, GG_FOREVER);
    CHECK(gg_device_get("host", 0, &device) == GG_OK);
    devices[0] = devices[1] = device;
    devices[2] = NULL; /* a rank without one */
    options.devices = devices;
    options.transport = "nccl";
    CHECK(gg_comm_create_all(&options, comms) == GG_ERR_UNSUPPORTED);
    CHECK_HAS(error_message(), "the transport 'nccl' cannot be used");
    options.transport = "no such transport";
    CHECK(gg_comm_create_all(&options, comms) == GG_ERR_INVALID_ARGUMENT);
    CHECK(!comms[0]);
    options.transport = NULL;
    CHECK(gg_comm_create_all(&options, comms) == GG_OK);
    for (int rank = 0; rank < 3; rank++) {
        CHECK_SAME(gg_comm_transport(comms[rank]), "staged");
        CHECK_HAS(gg_comm_transport_reason(comms[rank]), "\"host\" has no collective operations");
        CHECK(gg_comm_close_device(comms[rank]) == GG_OK);
    }
    release_all(3);
}
static void ranks_of_one_process_agree_on_a_transport(void **state)
{
    (void)state;
    in_child(stages_one_device);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(threads_of_one_process_can_be_ranks),
    cmocka_unit_test(as_many_ranks_as_a_communicator_can_have_fit_into_one_process),
    cmocka_unit_test(one_thread_for_all_ranks_ends_at_the_timeout_which_names_the_others),
    cmocka_unit_test(a_rank_that_closes_is_named_by_the_other_threads),
    cmocka_unit_test(an_abort_by_another_thread_ends_the_waits_of_all),
    cmocka_unit_test(an_interrupt_of_one_thread_ends_the_waits_of_the_others),
    cmocka_unit_test(a_forked_child_cannot_use_them_and_the_parent_still_can),
    cmocka_unit_test(sizes_out_of_range_are_refused_for_one_process),
    cmocka_unit_test(threads_of_one_process_can_be_split),
    cmocka_unit_test(the_rank_that_cannot_create_the_parts_reports_why),
    cmocka_unit_test(ranks_of_one_process_agree_on_a_transport),
};
SUITE(comm_local, tests);
