/* test_comm_direct_failures.c: ranks that end, fail or are slow while others read their memory. */
#include "direct.h"

/* ---- ranks that end while they are read ---- */

static gg_comm *killers;

static void kill_rank_1(pid_t process)
{
    if (process != comm_rank(killers, 1)->process)
        return;
    kill(process, SIGKILL);
    while (!ggi_comm_rank_ended(killers, 1))
        usleep(1000);
}
static ssize_t kill_and_read(pid_t process, const struct iovec *here, const struct iovec *there)
{
    kill_rank_1(process);
    return read_really(process, here, there);
}
/* After half of it. */
static ssize_t read_and_kill(pid_t process, const struct iovec *here, const struct iovec *there)
{
    const ssize_t got = read_some(process, here, there);
    kill_rank_1(process);
    return got;
}
/* Another process has got its number, and the kernel reads that one. */
static ssize_t kill_and_read_another(pid_t process, const struct iovec *here,
                                     const struct iovec *there)
{
    kill_rank_1(process);
    memset(here->iov_base, 7, here->iov_len);
    return (ssize_t)there->iov_len;
}

static read_hook *const killing[] = {kill_and_read, read_and_kill, kill_and_read_another};
static int way;

static void dies_in_a_collective(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = killers = rank_create(board, rank, size);
    struct place place = place_begin(comm, LARGE);
    hook = rank == 0 ? killing[way] : NULL;
    CHECK(gg_comm_gather(comm, place.dst, place.src, LARGE, 0) == GG_ERR_COMMUNICATOR);
    CHECK_NAMES(1);
    CHECK_HAS(error_message(), "gather: rank 1 ended");
    place_end(&place);
    gg_comm_release(comm);
}
static void dies_in_a_message(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = killers = rank_create(board, rank, size);
    struct place place = place_begin(comm, LARGE);
    hook = killing[way];
    if (rank)
        gg_comm_send(comm, place.src, LARGE, 0);
    else
        CHECK(gg_comm_recv(comm, place.dst, LARGE, 1) == GG_ERR_COMMUNICATOR);
    CHECK_NAMES(1);
    CHECK_HAS(error_message(), "recv: rank 1 ended");
    place_end(&place);
    gg_comm_release(comm);
}
static void dies_in_all_ways(void)
{
    for (way = 0; way < 3; way++) {
        run_ranks_but(dies_in_a_collective, 3, 1);
        run_ranks_but(dies_in_a_message, 2, 1);
    }
}
static void a_rank_that_is_killed_while_it_is_read_is_named(void **state)
{
    (void)state;
    in_child(dies_in_all_ways);
}

/* ---- sources that fail while they are read ---- */

static struct board *hook_board;

/* Flag 0: it is about to read. Flag 1: the source has failed, and its memory has other contents. Flag 2: it has returned, until when
 * the source lives. */
static ssize_t read_after_failure(pid_t process, const struct iovec *here, const struct iovec *there)
{
    flag_raise(hook_board, 0);
    flag_wait(hook_board, 1);
    return read_really(process, here, there);
}

static bool as_message;

static gg_status move_from_rank_1(struct place *self)
{
    if (!as_message)
        return gg_comm_broadcast(self->comm, self->dst, self->src, self->nbytes, 1);
    return self->rank ? gg_comm_send(self->comm, self->src, self->nbytes, 0)
                      : gg_comm_recv(self->comm, self->dst, self->nbytes, 1);
}

static void source_has_failed(struct place *self)
{
    memset(self->src, 0, self->nbytes);
    flag_raise(hook_board, self->rank ? 1 : 2);
    flag_wait(hook_board, 2);
    place_end(self);
}

/* The timeout of the source passes while the other rank is in the kernel. */
static void reads_too_long(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    struct place place = place_begin(comm, LARGE);
    CHECK(gg_comm_barrier(comm) == GG_OK);
    hook_board = board;
    hook = rank == 0 ? read_after_failure : NULL;
    if (rank == 1)
        comm->timeout_ns = 200000000;
    CHECK(move_from_rank_1(&place) == GG_ERR_COMMUNICATOR);
    CHECK_NAMES(0);
    CHECK_HAS(error_message(), rank ? "rank 0 did not take part within the timeout"
                                    : "rank 0 (this rank) did not take part within the timeout");
    source_has_failed(&place);
    gg_comm_release(comm);
}
static int until_it_is_read(void)
{
    return atomic_load(&hook_board->flags[0]);
}
/* The program interrupts the source at that time. */
static void reads_from_an_interrupted_rank(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    struct place place = place_begin(comm, LARGE);
    hook_board = board;
    hook = rank == 0 ? read_after_failure : NULL;
    if (rank == 1)
        gg_set_wait_hook(until_it_is_read);
    CHECK(move_from_rank_1(&place) == (rank ? GG_ERR_INTERRUPTED : GG_ERR_COMMUNICATOR));
    if (rank == 0)
        CHECK_NAMES(1);
    CHECK(rank || atomic_load(&board->flags[0]));
    source_has_failed(&place);
    gg_comm_release(comm);
}
static void reads_from_failed_ranks(void)
{
    for (int i = 0; i < 2; i++) {
        as_message = i;
        run_ranks(reads_too_long, 2);
        run_ranks(reads_from_an_interrupted_rank, 2);
    }
}
static void data_of_a_rank_that_has_failed_meanwhile_are_not_taken(void **state)
{
    (void)state;
    in_child(reads_from_failed_ranks);
}

/* A rank that returned too early would have changed the data before they are read. */
static ssize_t read_late(pid_t process, const struct iovec *here, const struct iovec *there)
{
    usleep(50000);
    return read_really(process, here, there);
}
static void is_read_late(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    struct place place = place_begin(comm, COMM_DIRECT);
    hook = rank == 0 ? read_late : NULL;
    for (int i = 0; i < 2; i++) {
        as_message = i;
        CHECK(move_from_rank_1(&place) == GG_OK);
        if (rank == 1)
            memset(place.src, i, place.nbytes);
        else if (i == 0)
            check_bytes(place.dst, place.nbytes, 1, 0);
    }
    for (size_t i = 0; i < place.nbytes && rank == 0; i++)
        CHECK(place.dst[i] == 0);
    place_end(&place);
    gg_comm_release(comm);
}
static void two_are_read_late(void)
{
    run_ranks(is_read_late, 2);
}
static void a_rank_returns_when_the_others_have_read_its_memory(void **state)
{
    (void)state;
    in_child(two_are_read_late);
}

/* ---- progress ---- */

static useconds_t pause_of_reads;
static ssize_t read_slowly(pid_t process, const struct iovec *here, const struct iovec *there)
{
    usleep(pause_of_reads);
    return read_really(process, here, there);
}
/* Four parts, each within the timeout. The pause grows until the machine is fast enough. */
static void reads_slowly(struct board *board, int32_t rank, int32_t size)
{
    const size_t nbytes = 4 * (size_t)COMM_DIRECT_PART;
    gg_status status = GG_ERR_COMMUNICATOR;
    unsigned char *data = calloc(nbytes, 1);
    CHECK(data != NULL);
    for (pause_of_reads = 50000; status && pause_of_reads < 4000000; pause_of_reads *= 2) {
        gg_comm *comm = rank_create(board, rank, size);
        hook = rank == 0 ? read_slowly : NULL;
        if (rank == 1)
            comm->timeout_ns = (uint64_t)pause_of_reads * 3000;
        status = rank ? gg_comm_send(comm, data, nbytes, 0) : gg_comm_recv(comm, data, nbytes, 1);
        hook = NULL;
        gg_comm_release(comm);
    }
    CHECK(status == GG_OK);
    free(data);
}
static void two_read_slowly(void)
{
    run_ranks(reads_slowly, 2);
}
static void a_rank_that_is_read_for_longer_than_the_timeout_is_not_late(void **state)
{
    (void)state;
    in_child(two_read_slowly);
}

/* ---- ranks of one process ---- */

static gg_comm *comms[2];

/* The memory of the source is gone before it is read: no access of the process itself may touch it. */
static void *send_unmapped(void *comm)
{
    char *data = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(data != MAP_FAILED);
    CHECK(gg_comm_send(comm, data, LARGE, 0) == GG_ERR_COMMUNICATOR);
    CHECK(munmap(data, LARGE) == 0);
    flag_raise(hook_board, 1);
    return NULL;
}
static void *abort_when_it_is_read(void *comm)
{
    flag_wait(hook_board, 0);
    CHECK(gg_comm_abort(comm) == GG_OK);
    return NULL;
}
static void reads_what_is_unmapped(void)
{
    pthread_t threads[2];
    char *data = malloc(LARGE);
    CHECK(data && ggi_comm_create_all(2, GG_FOREVER, comms) == GG_OK);
    hook_board = board_new();
    hook = read_after_failure;
    CHECK(pthread_create(&threads[0], NULL, send_unmapped, comms[1]) == 0);
    CHECK(pthread_create(&threads[1], NULL, abort_when_it_is_read, comms[1]) == 0);
    CHECK(gg_comm_recv(comms[0], data, LARGE, 1) == GG_ERR_COMMUNICATOR);
    CHECK_NAMES(1);
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        gg_comm_release(comms[i]);
    }
    free(data);
}
static void memory_that_a_thread_frees_after_an_abort_may_still_be_read(void **state)
{
    (void)state;
    in_child(reads_what_is_unmapped);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_rank_that_is_killed_while_it_is_read_is_named),
    cmocka_unit_test(data_of_a_rank_that_has_failed_meanwhile_are_not_taken),
    cmocka_unit_test(a_rank_returns_when_the_others_have_read_its_memory),
    cmocka_unit_test(a_rank_that_is_read_for_longer_than_the_timeout_is_not_late),
    cmocka_unit_test(memory_that_a_thread_frees_after_an_abort_may_still_be_read),
};
SUITE(comm_direct_failures, tests);
