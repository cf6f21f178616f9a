/* test_comm_waits.c: what a wait does between its slices. */
#include "ranks.h"

static struct board *waits_board;

/* The wait hook of rank 0 returns when rank 1 has received the message and closed. */
static int until_closed(void)
{
    if (!atomic_load(&waits_board->flags[0])) {
        flag_raise(waits_board, 0);
        flag_wait(waits_board, 1);
    }
    return 0;
}
static void receives_and_closes(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    char byte = 'a';
    waits_board = board;
    if (rank == 0) {
        gg_set_wait_hook(until_closed);
        CHECK(gg_comm_send(comm, &byte, 0, 1) == GG_OK);
        CHECK(gg_comm_send(comm, &byte, 1, 2) == GG_OK);
    } else if (rank == 1) {
        flag_wait(board, 0);
        CHECK(gg_comm_recv(comm, &byte, 0, 0) == GG_OK);
    } else {
        CHECK(gg_comm_recv(comm, &byte, 1, 0) == GG_OK);
    }
    gg_comm_release(comm);
    if (rank == 1)
        flag_raise(board, 1);
}
static void receives_and_closes_with_3(void)
{
    run_ranks(receives_and_closes, 3);
}
static void a_rank_may_close_when_it_has_received(void **state)
{
    (void)state;
    in_child(receives_and_closes_with_3);
}

/* Each ring is a write to memory on which the other rank waits, and wakes it if it sleeps. */
static void rings_once(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    char byte = 'a';
    CHECK((rank ? gg_comm_recv(comm, &byte, 1, 0) : gg_comm_send(comm, "b", 1, 1)) == GG_OK);
    CHECK(byte == (rank ? 'b' : 'a'));
    CHECK(gg_comm_barrier(comm) == GG_OK);
    CHECK(atomic_load(&comm_rank(comm, 0)->bell.value) == 1);
    CHECK(atomic_load(&comm_rank(comm, 1)->bell.value) == 1);
    CHECK(gg_comm_barrier(comm) == GG_OK);
    gg_comm_release(comm);
}
static void two_ring_once(void)
{
    run_ranks(rings_once, 2);
}
static void a_message_of_one_part_rings_each_bell_once(void **state)
{
    (void)state;
    in_child(two_ring_once);
}

static bool all_missing(const void *what, int32_t rank)
{
    (void)what;
    return rank >= 0;
}
/* The slice before ended an hour ago. */
static void is_suspended(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    comm->timeout_ns = 60000000000u;
    struct comm_wait wait = ggi_comm_wait_begin(comm);
    struct comm_word *word = &comm_rank(comm, rank)->bell;
    const uint64_t hour = 3600000000000u;
    wait.slept -= hour;
    wait.check -= hour;
    wait.until -= hour;
    CHECK(ggi_comm_wait_slice(&wait, word, word->value, all_missing, NULL) == GG_OK);
    comm->timeout_ns = GG_FOREVER;
    CHECK(gg_comm_barrier(comm) == GG_OK);
    gg_comm_release(comm);
}
static void two_are_suspended(void)
{
    run_ranks(is_suspended, 2);
}
static void the_time_of_a_suspended_job_does_not_count(void **state)
{
    (void)state;
    in_child(two_are_suspended);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_time_of_a_suspended_job_does_not_count),
    cmocka_unit_test(a_rank_may_close_when_it_has_received),
    cmocka_unit_test(a_message_of_one_part_rings_each_bell_once),
};
SUITE(comm_waits, tests);
