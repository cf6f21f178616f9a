/* test_comm_failures.c: ranks of communicators that end, hang, do not come, disagree or stop. */
#include "ranks.h"

#include <pthread.h>

/* ---- ranks that end ---- */

static void one_is_killed(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    char byte = 0;
    CHECK(gg_comm_barrier(comm) == GG_OK);
    if (rank == 1)
        kill(getpid(), SIGKILL);
    CHECK(gg_comm_broadcast(comm, &byte, &byte, 1, 0) == GG_ERR_COMMUNICATOR);
    CHECK_NAMES(1);
    CHECK_HAS(error_message(), "broadcast: rank 1 ended");
    CHECK(gg_comm_send(comm, &byte, 1, 1) == GG_ERR_COMMUNICATOR); /* and it remains so */
    CHECK_NAMES(1);
    gg_comm_release(comm);
}
static void one_of_4_is_killed(void)
{
    run_ranks_but(one_is_killed, 4, 1);
}
static void a_killed_rank_is_named_by_all_others(void **state)
{
    (void)state;
    in_child(one_of_4_is_killed);
}

static void sender_is_killed(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    char byte = 0;
    if (rank == 1)
        kill(getpid(), SIGKILL);
    CHECK(gg_comm_recv(comm, &byte, 1, 1) == GG_ERR_COMMUNICATOR);
    CHECK_NAMES(1);
    gg_comm_release(comm);
}
static void sender_of_2_is_killed(void)
{
    run_ranks_but(sender_is_killed, 2, 1);
}
static void a_receive_from_a_killed_rank_ends(void **state)
{
    (void)state;
    in_child(sender_of_2_is_killed);
}

static void leaves_early(struct board *board, int32_t rank, int32_t size)
{
    int32_t value = rank, sum = 0;
    gg_comm *comm = rank_create(board, rank, size);
    CHECK(gg_comm_all_reduce(comm, &sum, &value, 1, GG_COMM_INT32, GG_COMM_SUM) == GG_OK);
    CHECK(sum == 3);
    if (rank)
        _exit(0); /* its part is done: the others do not miss it */
    gg_comm_release(comm);
}
static void leaves_early_with_3(void)
{
    for (int i = 0; i < 10; i++)
        run_ranks(leaves_early, 3);
}
static void a_rank_may_end_when_its_part_is_done(void **state)
{
    (void)state;
    in_child(leaves_early_with_3);
}

static void one_closes(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    if (rank == 2) {
        gg_comm_release(comm);
        flag_wait(board, 0); /* it lives on */
        return;
    }
    CHECK(gg_comm_barrier(comm) == GG_ERR_COMMUNICATOR);
    CHECK_NAMES(2);
    CHECK_HAS(error_message(), "rank 2 closed the communicator");
    flag_raise(board, 0);
    gg_comm_release(comm);
}
static void one_of_3_closes(void)
{
    run_ranks(one_closes, 3);
}
static void a_rank_that_closed_is_named(void **state)
{
    (void)state;
    in_child(one_of_3_closes);
}

/* ---- ranks that hang ---- */

/* Rank 0 alone has a short timeout, which begins when the others wait. */
static void one_hangs(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    if (rank == 2) {
        flag_wait(board, 0);
        CHECK(gg_comm_barrier(comm) == GG_ERR_COMMUNICATOR);
        CHECK_HAS(error_message(), "rank 2 (this rank) did not take part");
        gg_comm_release(comm);
        return;
    }
    while (rank == 0 && atomic_load(&comm_rank(comm, 1)->round.value) == 0)
        usleep(1000);
    if (rank == 0)
        CHECK(gg_comm_set_timeout(comm, 100000000) == GG_OK);
    CHECK(gg_comm_barrier(comm) == GG_ERR_COMMUNICATOR);
    CHECK_NAMES(2);
    CHECK_HAS(error_message(), "rank 2 did not take part within the timeout");
    flag_raise(board, 0);
    gg_comm_release(comm);
}
static void one_of_3_hangs(void)
{
    run_ranks(one_hangs, 3);
}
static void a_rank_that_hangs_is_named_by_all(void **state)
{
    (void)state;
    in_child(one_of_3_hangs);
}

/* ---- creation ---- */

/* The timeout of rank 0 grows until the machine is fast enough for rank 1 to come in time. */
static void one_never_comes(struct board *board, int32_t rank, int32_t size)
{
    struct gg_comm_options options = rank_options(board, rank, size);
    gg_comm *comm;
    if (rank == 1)
        CHECK(gg_comm_create(&options, &comm) == GG_ERR_COMMUNICATOR);
    options.timeout_ns = 100000000;
    while (rank == 0 && !atomic_load(&board->flags[0])) {
        CHECK(gg_comm_create(&options, &comm) == GG_ERR_COMMUNICATOR);
        options.timeout_ns *= 2;
        if (gg_comm_failed_ranks(NULL, 0) == 1)
            flag_raise(board, 0);
    }
    CHECK_NAMES(2);
    CHECK_HAS(error_message(), "rank 2 of 3 did not connect within");
}
static void rank_2_of_3_never_comes(void)
{
    struct board *board = board_new();
    int status = -1;
    board->port = reserved_port();
    const pid_t child = rank_start(one_never_comes, board, 1, 3);
    one_never_comes(board, 0, 3);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}
static void a_rank_that_never_comes_is_named(void **state)
{
    (void)state;
    in_child(rank_2_of_3_never_comes);
}

static void without_rank_0(void)
{
    struct board *board = board_new();
    gg_comm *comm;
    board->port = reserved_port();
    struct gg_comm_options options = rank_options(board, 1, 2);
    options.timeout_ns = 50000000;
    CHECK(gg_comm_create(&options, &comm) == GG_ERR_COMMUNICATOR);
    CHECK_NAMES(0);
    CHECK_HAS(error_message(), "rank 0 did not listen within 0.05 s: no connection to 127.0.0.1");
}
static void a_missing_rank_0_is_named(void **state)
{
    (void)state;
    in_child(without_rank_0);
}

static void port_taken(void)
{
    struct board *board = board_new();
    gg_comm *comm;
    const int listener = listening(&board->port);
    const struct gg_comm_options options = rank_options(board, 0, 2);
    CHECK(gg_comm_create(&options, &comm) == GG_ERR_COMMUNICATOR);
    CHECK(gg_comm_failed_ranks(NULL, 0) == 0);
    CHECK_HAS(error_message(), "choose another port");
    close(listener);
}
static void a_port_that_is_taken_is_reported(void **state)
{
    (void)state;
    in_child(port_taken);
}

static void wrong_options(void)
{
    struct board *board = board_new();
    struct gg_comm_options options = rank_options(board, 0, 0);
    gg_comm *comm;
    CHECK(gg_comm_create(&options, &comm) == GG_ERR_INVALID_ARGUMENT);
    CHECK_HAS(error_message(), "size is 0, expected 1 to 256");
    options.size = 2;
    options.rank = 2;
    CHECK(gg_comm_create(&options, &comm) == GG_ERR_INVALID_ARGUMENT);
    CHECK_HAS(error_message(), "rank is 2, expected 0 to 1");
    options.rank = 0;
    CHECK(gg_comm_create(&options, &comm) == GG_ERR_INVALID_ARGUMENT);
    CHECK_HAS(error_message(), "port is 0");
    options.struct_size = 8;
    CHECK(gg_comm_create(&options, &comm) == GG_ERR_INVALID_ARGUMENT);
    CHECK_HAS(error_message(), "struct_size");
}
static void options_out_of_range_are_refused(void **state)
{
    (void)state;
    in_child(wrong_options);
}

/* Rank 0 waits for the right rank 1; wrong ones learn why they are refused, and do not disturb it. */
static void refused(const struct gg_comm_options *options, const char *reason)
{
    gg_comm *comm;
    CHECK(gg_comm_create(options, &comm) == GG_ERR_COMMUNICATOR);
    CHECK_HAS(error_message(), reason);
}
static void wrong_ranks_come(struct board *board, int32_t rank, int32_t size)
{
    struct gg_comm_options options = rank_options(board, rank, size);
    if (rank == 1) {
        options.id = "other";
        refused(&options, "its id is 'other', and rank 0 has ''");
        options.id = NULL;
        options.size = 3;
        refused(&options, "its size is 3, and rank 0 has 2");
    }
    gg_comm *comm = rank_create(board, rank, size);
    CHECK(gg_comm_barrier(comm) == GG_OK);
    gg_comm_release(comm);
}
static void wrong_ranks_come_to_rank_0(void)
{
    run_ranks(wrong_ranks_come, 2);
}
static void ranks_that_disagree_with_rank_0_are_refused_with_the_reason(void **state)
{
    (void)state;
    in_child(wrong_ranks_come_to_rank_0);
}

static void second_rank_1(struct board *board, int32_t rank, int32_t size)
{
    const struct gg_comm_options options = rank_options(board, rank == 3 ? 1 : rank, 3);
    gg_comm *comm = NULL;
    (void)size;
    if (rank == 2)
        flag_wait(board, 0);
    gg_status status = gg_comm_create(&options, &comm);
    if (status) { /* either of the two */
        CHECK(status == GG_ERR_COMMUNICATOR && options.rank == 1);
        CHECK_HAS(error_message(), "another process has connected as rank 1");
        flag_raise(board, 0);
        return;
    }
    CHECK(gg_comm_barrier(comm) == GG_OK);
    gg_comm_release(comm);
}
static void two_with_rank_1(void)
{
    run_ranks(second_rank_1, 4);
}
static void a_rank_that_comes_twice_is_refused(void **state)
{
    (void)state;
    in_child(two_with_rank_1);
}

static void *create_rank_1(void *board)
{
    const struct gg_comm_options options = rank_options(board, 1, 2);
    gg_comm *comm;
    CHECK(gg_comm_create(&options, &comm) == GG_ERR_COMMUNICATOR);
    CHECK_HAS(error_message(), "same process");
    flag_raise(board, 0);
    return NULL;
}
static struct board *hook_board;
static int until_flag(void)
{
    return atomic_load(&hook_board->flags[0]);
}
static void both_in_one_process(void)
{
    pthread_t thread;
    gg_comm *comm;
    hook_board = board_new();
    hook_board->port = reserved_port();
    gg_set_wait_hook(until_flag);
    const struct gg_comm_options options = rank_options(hook_board, 0, 2);
    CHECK(pthread_create(&thread, NULL, create_rank_1, hook_board) == 0);
    CHECK(gg_comm_create(&options, &comm) == GG_ERR_INTERRUPTED);
    CHECK(pthread_join(thread, NULL) == 0);
}
static void two_ranks_of_one_process_are_refused(void **state)
{
    (void)state;
    in_child(both_in_one_process);
}

static int connected(const struct board *board)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)board->port),
                                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int file = -1;
    do {
        if (file >= 0) {
            close(file);
            usleep(1000);
        }
        file = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(file >= 0);
    } while (connect(file, (const struct sockaddr *)&address, sizeof address));
    return file;
}
static void strangers_come(struct board *board, int32_t rank, int32_t size)
{
    char noise[4096];
    if (rank == 1) {
        memset(noise, 'x', sizeof noise);
        connected(board); /* says nothing, and stays */
        close(connected(board));
        CHECK(send(connected(board), noise, sizeof noise, MSG_NOSIGNAL) > 0);
    }
    gg_comm *comm = rank_create(board, rank, size);
    CHECK(gg_comm_barrier(comm) == GG_OK);
    gg_comm_release(comm);
}
static void strangers_come_to_rank_0(void)
{
    run_ranks(strangers_come, 2);
}
static void other_programs_that_connect_do_not_disturb(void **state)
{
    (void)state;
    in_child(strangers_come_to_rank_0);
}

/* ---- ranks that disagree ---- */

static void disagree(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    int32_t data[2] = {rank, rank};
    gg_status status = rank == 1
                           ? gg_comm_all_reduce(comm, data, data, 2, GG_COMM_INT32, GG_COMM_SUM)
                           : gg_comm_all_reduce(comm, data, data, 1, GG_COMM_INT32, GG_COMM_SUM);
    CHECK(status == GG_ERR_INVALID_ARGUMENT);
    CHECK_HAS(error_message(), "rank 0 calls all_reduce of 4 bytes");
    CHECK_HAS(error_message(), "rank 1 calls all_reduce of 8 bytes");
    status = rank == 2 ? gg_comm_barrier(comm) : gg_comm_broadcast(comm, data, data, 8, 0);
    CHECK(status == GG_ERR_INVALID_ARGUMENT);
    CHECK(data[0] == rank && data[1] == rank);
    CHECK(gg_comm_broadcast(comm, data, data, 8, 2) == GG_OK);
    CHECK(data[0] == 2);
    gg_comm_release(comm);
}
static void disagree_with_3(void)
{
    run_ranks(disagree, 3);
}
static void ranks_that_disagree_all_learn_it_and_can_continue(void **state)
{
    (void)state;
    in_child(disagree_with_3);
}

static void sizes_differ(struct board *board, int32_t rank, int32_t size)
{
    char data[8] = {0};
    gg_comm *comm = rank_create(board, rank, size);
    gg_status status = rank ? gg_comm_send(comm, "abcdefgh", 8, 0) : gg_comm_recv(comm, data, 4, 1);
    CHECK(status == GG_ERR_INVALID_ARGUMENT);
    if (rank == 0)
        CHECK_HAS(error_message(), "rank 1 sends 8 bytes, but this rank expects 4");
    CHECK(data[0] == 0);
    status = rank ? gg_comm_send(comm, "abcdefgh", 8, 0) : gg_comm_recv(comm, data, 8, 1);
    CHECK(status == GG_OK && data[7] == (rank ? 0 : 'h'));
    gg_comm_release(comm);
}
static void sizes_differ_with_2(void)
{
    run_ranks(sizes_differ, 2);
}
static void a_message_of_another_size_is_refused_on_both_sides(void **state)
{
    (void)state;
    in_child(sizes_differ_with_2);
}

/* ---- abort, interrupts, threads, forks ---- */

static void one_aborts(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    if (rank == 0) {
        while (atomic_load(&comm_rank(comm, 1)->round.value) == 0)
            usleep(1000);
        CHECK(gg_comm_abort(comm) == GG_OK);
    } else {
        if (rank == 2)
            flag_wait(board, 1);
        CHECK(gg_comm_barrier(comm) == GG_ERR_COMMUNICATOR);
        CHECK_NAMES(0);
        CHECK_HAS(error_message(), "rank 0 aborted");
        CHECK(gg_comm_abort(comm) == GG_OK); /* too late to be named */
        flag_raise(board, rank);
    }
    for (int32_t other = 1; other < size; other++)
        flag_wait(board, other);
    gg_comm_release(comm);
}
static void one_of_3_aborts(void)
{
    run_ranks(one_aborts, 3);
}
static void an_abort_ends_the_waits_of_all_others(void **state)
{
    (void)state;
    in_child(one_of_3_aborts);
}

static int always(void)
{
    return 1;
}
static void one_is_interrupted(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    if (rank == 0) {
        gg_set_wait_hook(always);
        CHECK(gg_comm_barrier(comm) == GG_ERR_INTERRUPTED);
        flag_raise(board, 0);
    } else {
        flag_wait(board, 0);
        CHECK(gg_comm_barrier(comm) == GG_ERR_COMMUNICATOR);
        CHECK_NAMES(0);
    }
    gg_comm_release(comm);
}
static void one_of_2_is_interrupted(void)
{
    run_ranks(one_is_interrupted, 2);
}
static void the_wait_hook_ends_a_wait_and_the_others_learn_it(void **state)
{
    (void)state;
    in_child(one_of_2_is_interrupted);
}

static void *wait_at_barrier(void *comm)
{
    CHECK(gg_comm_barrier(comm) == GG_OK);
    return NULL;
}
static void two_threads(struct board *board, int32_t rank, int32_t size)
{
    pthread_t thread;
    gg_comm *comm = rank_create(board, rank, size);
    if (rank) {
        flag_wait(board, 0);
        CHECK(gg_comm_barrier(comm) == GG_OK);
    } else {
        CHECK(pthread_create(&thread, NULL, wait_at_barrier, comm) == 0);
        while (!atomic_load(&comm->busy))
            usleep(1000);
        CHECK(gg_comm_barrier(comm) == GG_ERR_INVALID_ARGUMENT);
        CHECK_HAS(error_message(), "another thread");
        flag_raise(board, 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    gg_comm_release(comm);
}
static void two_threads_of_rank_0(void)
{
    run_ranks(two_threads, 2);
}
static void a_second_thread_is_refused(void **state)
{
    (void)state;
    in_child(two_threads_of_rank_0);
}

static gg_comm *of_parent;
static void in_fork(void)
{
    CHECK(gg_comm_barrier(of_parent) == GG_ERR_FORKED);
    CHECK(gg_comm_abort(of_parent) == GG_ERR_FORKED);
    gg_comm_release(of_parent);
}
static void forks(struct board *board, int32_t rank, int32_t size)
{
    of_parent = rank_create(board, rank, size);
    CHECK(forked(in_fork) == 0);
    CHECK(gg_comm_barrier(of_parent) == GG_OK);
    gg_comm_release(of_parent);
}
static void forks_with_2(void)
{
    run_ranks(forks, 2);
}
static void a_forked_child_cannot_use_it_and_the_parent_still_can(void **state)
{
    (void)state;
    in_child(forks_with_2);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_killed_rank_is_named_by_all_others),
    cmocka_unit_test(a_receive_from_a_killed_rank_ends),
    cmocka_unit_test(a_rank_may_end_when_its_part_is_done),
    cmocka_unit_test(a_rank_that_closed_is_named),
    cmocka_unit_test(a_rank_that_hangs_is_named_by_all),
    cmocka_unit_test(a_rank_that_never_comes_is_named),
    cmocka_unit_test(a_missing_rank_0_is_named),
    cmocka_unit_test(a_port_that_is_taken_is_reported),
    cmocka_unit_test(options_out_of_range_are_refused),
    cmocka_unit_test(ranks_that_disagree_with_rank_0_are_refused_with_the_reason),
    cmocka_unit_test(a_rank_that_comes_twice_is_refused),
    cmocka_unit_test(two_ranks_of_one_process_are_refused),
    cmocka_unit_test(other_programs_that_connect_do_not_disturb),
    cmocka_unit_test(ranks_that_disagree_all_learn_it_and_can_continue),
    cmocka_unit_test(a_message_of_another_size_is_refused_on_both_sides),
    cmocka_unit_test(an_abort_ends_the_waits_of_all_others),
    cmocka_unit_test(the_wait_hook_ends_a_wait_and_the_others_learn_it),
    cmocka_unit_test(a_second_thread_is_refused),
    cmocka_unit_test(a_forked_child_cannot_use_it_and_the_parent_still_can),
};
SUITE(comm_failures, tests);
