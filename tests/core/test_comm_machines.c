/* test_comm_machines.c: what ranks of several machines send each other, and what a forked child has of their connections. */
#include "ranks.h"

#include "base/process_state.h"
#include "comm/socket.h"

#include <gpuglue/comm_device.h>
#include <gpuglue/process.h>

#include <errno.h>
#include <netinet/in.h>
#include <sys/ioctl.h>

/* ---- rank 1 is played: it reports another machine ---- */

/* A message of link.c. */
struct message {
    uint32_t kind, nbytes;
    int32_t rank;
    uint32_t state[11];
};
#define BLOCK 3

static void expect_reply(int connection, uint32_t kind)
{
    struct comm_reply reply;
    do
        CHECK(ggi_comm_socket_read(connection, &reply, sizeof reply, UINT64_MAX) == GG_OK);
    while (reply.kind == COMM_WAIT);
    CHECK(reply.kind == kind);
}

static int hello_apart(const struct board *board, struct gg_comm_options options)
{
    const int connection = connected_to(board->port);
    struct comm_hello hello;
    options.flags = GG_COMM_SEVERAL_MACHINES;
    ggi_comm_hello_fill(&hello, &options);
    snprintf(hello.machine, sizeof hello.machine, "another");
    snprintf(hello.process, sizeof hello.process, "of rank %d", (int)options.rank);
    CHECK(ggi_comm_pass_listen(&hello.pass) >= 0);
    CHECK(ggi_comm_socket_write(connection, &hello, sizeof hello));
    return connection;
}

static int join_apart(const struct board *board, struct gg_comm_options options)
{
    const int connection = hello_apart(board, options);
    expect_reply(connection, COMM_APART);
    CHECK(ggi_comm_reply_write(connection, COMM_READY, NULL, ""));
    expect_reply(connection, COMM_GO);
    return connection;
}

static void send_block(int connection, const void *data, uint32_t nbytes)
{
    const struct message head = {.kind = BLOCK, .nbytes = nbytes};
    CHECK(ggi_comm_socket_write(connection, &head, sizeof head));
    CHECK(ggi_comm_socket_write(connection, data, nbytes));
}

/* The length of the next block; other messages are passed over. */
static uint32_t next_block(int connection, void *data, uint32_t room)
{
    struct message head;
    do
        CHECK(ggi_comm_socket_read(connection, &head, sizeof head, UINT64_MAX) == GG_OK);
    while (head.kind != BLOCK);
    CHECK(head.nbytes <= room);
    CHECK(ggi_comm_socket_read(connection, data, head.nbytes, UINT64_MAX) == GG_OK);
    return head.nbytes;
}

/* ---- blocks ---- */

/* Rank 1 calls gg_comm_barrier, in which a block has a byte, while rank 0 calls something else; then both call it. */
static void sends_a_short_block(struct board *board, int32_t rank, int32_t size)
{
    struct gg_comm_options options = rank_options(board, rank, size);
    const struct gg_comm_device_options device = {.struct_size = sizeof device};
    char data[2] = {0};
    gg_comm *comm, *part = NULL;
    options.flags = GG_COMM_SEVERAL_MACHINES;
    if (rank == 0) {
        CHECK(gg_comm_create(&options, &comm) == GG_OK);
        CHECK(gg_comm_open_device(comm, &device) == GG_ERR_INVALID_ARGUMENT);
        CHECK_HAS(error_message(), "gg_comm_open_device: ranks 0 and 1 call different operations");
        CHECK(gg_comm_split(comm, 0, 0, &part) == GG_ERR_INVALID_ARGUMENT && !part);
        CHECK_HAS(error_message(), "gg_comm_split: ranks 0 and 1 call different operations");
        CHECK(gg_comm_barrier(comm) == GG_OK);
        gg_comm_release(comm);
        return;
    }
    const int connection = join_apart(board, options);
    for (int i = 0; i < 2; i++) {
        send_block(connection, data, 1);
        CHECK(next_block(connection, data, sizeof data) == 1 && data[0] == 1);
    }
    send_block(connection, data, 1);
    CHECK(next_block(connection, data, sizeof data) == 2);
}
static void one_sends_a_short_block(void)
{
    run_ranks(sends_a_short_block, 2);
}
static void ranks_of_several_machines_that_disagree_get_an_error_and_go_on(void **state)
{
    (void)state;
    in_child(one_sends_a_short_block);
}

/* ---- an interrupt ---- */

static struct board *hook_board;
static int interrupt_before_the_block(void)
{
    flag_raise(hook_board, 0);
    flag_wait(hook_board, 1);
    return 1;
}

/* The block of rank 1 comes while rank 0 ends the wait, as which it is reported. */
static void is_interrupted_before_the_last_block(struct board *board, int32_t rank, int32_t size)
{
    struct gg_comm_options options = rank_options(board, rank, size);
    gg_comm *comm;
    options.flags = GG_COMM_SEVERAL_MACHINES;
    if (rank == 0) {
        CHECK(gg_comm_create(&options, &comm) == GG_OK);
        hook_board = board;
        gg_set_wait_hook(interrupt_before_the_block);
        CHECK(gg_comm_barrier(comm) == GG_ERR_INTERRUPTED);
        gg_comm_release(comm);
        return;
    }
    const int connection = join_apart(board, options);
    int left = 1;
    flag_wait(board, 0);
    send_block(connection, "", 1);
    while (left) /* until rank 0 can read it */
        CHECK(ioctl(connection, TIOCOUTQ, &left) == 0);
    flag_raise(board, 1);
    while (read(connection, &left, sizeof left) > 0) {
    }
}
static void rank_0_is_interrupted(void)
{
    run_ranks(is_interrupted_before_the_last_block, 2);
}
static void an_interrupt_is_reported_even_if_the_last_block_comes_then(void **state)
{
    (void)state;
    in_child(rank_0_is_interrupted);
}

/* ---- ranks that read nothing ---- */

#define MANY 64
#define BLOCK_BYTES 4096 /* of each: rank 0 sends all of them, for which a socket has no room */

/* So that the kernel takes little of what is not read. */
static void connections_are_narrow(void)
{
    for (int file = 3; file < 3 + 4 * MANY; file++)
        setsockopt(file, SOL_SOCKET, SO_SNDBUF, &(int){1}, sizeof(int));
}

/* All ranks but 0 are played by one process, which sends their blocks and reads nothing. */
static void plays_the_others(struct board *board)
{
    static int connections[MANY];
    static const char data[BLOCK_BYTES];
    for (int32_t rank = 1; rank < MANY; rank++)
        connections[rank] = hello_apart(board, rank_options(board, rank, MANY));
    for (int32_t rank = 1; rank < MANY; rank++) {
        expect_reply(connections[rank], COMM_APART);
        CHECK(ggi_comm_reply_write(connections[rank], COMM_READY, NULL, ""));
    }
    for (int32_t rank = 1; rank < MANY; rank++) {
        expect_reply(connections[rank], COMM_GO);
        send_block(connections[rank], data, sizeof data);
    }
    int come = 0;
    while (come < BLOCK_BYTES && !atomic_load(&board->flags[0])) {
        CHECK(ioctl(connections[1], FIONREAD, &come) == 0);
        usleep(1000);
    }
    flag_raise(board, 1); /* rank 0 writes */
    flag_wait(board, 0);
}

static gg_status gather_of_many(struct board *board, uint64_t timeout_ns)
{
    static char all[MANY * BLOCK_BYTES];
    struct gg_comm_options options = rank_options(board, 0, MANY);
    gg_comm *comm;
    options.flags = GG_COMM_SEVERAL_MACHINES;
    CHECK(gg_comm_create(&options, &comm) == GG_OK);
    connections_are_narrow();
    CHECK(gg_comm_set_timeout(comm, timeout_ns) == GG_OK);
    comm->call = "a test";
    const gg_status status = ggi_comm_link_gather(comm, all, all, BLOCK_BYTES);
    gg_comm_release(comm);
    return status;
}

static void gathers_within_its_timeout(struct board *board, int32_t rank, int32_t size)
{
    (void)size;
    if (rank) {
        plays_the_others(board);
        return;
    }
    CHECK(gather_of_many(board, 100000000) == GG_ERR_COMMUNICATOR);
    CHECK_HAS(error_message(), "a test: rank 1 did not take part within the timeout");
    flag_raise(board, 0);
}
static void rank_0_gathers_within_its_timeout(void)
{
    run_ranks(gathers_within_its_timeout, 2);
}
static void a_rank_that_reads_nothing_is_named_by_rank_0(void **state)
{
    (void)state;
    in_child(rank_0_gathers_within_its_timeout);
}

static int is_interrupted_while_it_writes(void)
{
    return atomic_load(&hook_board->flags[1]);
}
static void gathers_until_an_interrupt(struct board *board, int32_t rank, int32_t size)
{
    (void)size;
    if (rank) {
        plays_the_others(board);
        return;
    }
    hook_board = board;
    gg_set_wait_hook(is_interrupted_while_it_writes);
    CHECK(gather_of_many(board, GG_FOREVER) == GG_ERR_INTERRUPTED);
    flag_raise(board, 0);
}
static void rank_0_gathers_until_an_interrupt(void)
{
    run_ranks(gathers_until_an_interrupt, 2);
}
static void an_interrupt_ends_the_wait_for_a_rank_that_reads_nothing(void **state)
{
    (void)state;
    in_child(rank_0_gathers_until_an_interrupt);
}

/* ---- where the other ranks reach this machine ---- */

/* A connection whose address on this side is @p text, which this machine need not have. */
static int socket_at(int family, const char *text)
{
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_scope_id = 1};
    const bool is_four = family == AF_INET;
    const int yes = 1, file = socket(family, SOCK_STREAM, 0);
    if (file < 0)
        return -1;
    CHECK(inet_pton(family, text, is_four ? (void *)&four.sin_addr : (void *)&six.sin6_addr) == 1);
    CHECK(setsockopt(file, IPPROTO_IP, IP_FREEBIND, &yes, sizeof yes) == 0);
    if (bind(file, is_four ? (void *)&four : (void *)&six, is_four ? sizeof four : sizeof six) == 0)
        return file;
    close(file);
    return -1;
}

/* Of rank 0, whose other ranks have these connections. */
static void reaches(const int *sockets, int32_t count, const char *expected)
{
    struct gg_comm *comm = calloc(1, sizeof *comm);
    struct sockaddr_storage address;
    char text[64];
    CHECK(comm != NULL);
    comm->size = count + 1;
    comm->file = -1;
    comm->generation = atomic_load(&ggi_generation);
    CHECK(ggi_comm_link_open(comm) == GG_OK);
    for (int32_t rank = 1; rank <= count; rank++)
        ggi_comm_link_add(comm, rank, dup(sockets[rank - 1]));
    const socklen_t size = ggi_comm_link_address(comm, &address);
    CHECK(getnameinfo((struct sockaddr *)&address, size, text, sizeof text, NULL, 0,
                      NI_NUMERICHOST) == 0);
    CHECK_SAME(text, expected);
    ggi_comm_free(comm);
}

static void ranks_of_this_machine_and_of_another(void)
{
    const int loopback = socket_at(AF_INET, "127.0.0.1"), one = socket_at(AF_INET, "192.0.2.1"),
              two = socket_at(AF_INET, "192.0.2.2"), six = socket_at(AF_INET6, "2001:db8::1"),
              link_local = socket_at(AF_INET6, "fe80::1"),
              mapped = socket_at(AF_INET6, "::ffff:127.0.0.1"),
              loopback_six = socket_at(AF_INET6, "::1");
    reaches((const int[]){loopback, one, two}, 3, "192.0.2.1");
    reaches((const int[]){two, loopback, one}, 3, "192.0.2.2");
    reaches((const int[]){loopback}, 1, "127.0.0.1");
    if (loopback_six < 0) /* no IPv6 */
        return;
    reaches((const int[]){loopback_six, six}, 2, "2001:db8::1");
    reaches((const int[]){link_local, six}, 2, "2001:db8::1");
    reaches((const int[]){mapped, six}, 2, "2001:db8::1");
}
static void a_part_is_reached_at_an_address_that_other_machines_have(void **state)
{
    (void)state;
    in_child(ranks_of_this_machine_and_of_another);
}

/* ---- forks ---- */

#define FILES 200

static bool is_open(int file)
{
    return fcntl(file, F_GETFD) >= 0;
}

static int files[FILES];

static void child_has_none(void)
{
    for (int i = 0; i < FILES; i++)
        CHECK(is_open(files[i]) == (i == 3));
}
static void forks_with_files(void)
{
    for (int i = 0; i < FILES; i++) {
        files[i] = dup(STDERR_FILENO);
        CHECK(files[i] >= 0 && ggi_close_in_child(files[i]));
    }
    ggi_close_file(files[3]);
    CHECK(!is_open(files[3]) && dup2(STDERR_FILENO, files[3]) == files[3]); /* of other code */
    CHECK(forked(child_has_none) == 0);
    for (int i = 0; i < FILES; i++)
        CHECK(is_open(files[i]));
}
static void a_forked_child_closes_any_number_of_files_and_none_of_other_code(void **state)
{
    (void)state;
    in_child(forks_with_files);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ranks_of_several_machines_that_disagree_get_an_error_and_go_on),
    cmocka_unit_test(an_interrupt_is_reported_even_if_the_last_block_comes_then),
    cmocka_unit_test(a_rank_that_reads_nothing_is_named_by_rank_0),
    cmocka_unit_test(an_interrupt_ends_the_wait_for_a_rank_that_reads_nothing),
    cmocka_unit_test(a_part_is_reached_at_an_address_that_other_machines_have),
    cmocka_unit_test(a_forked_child_closes_any_number_of_files_and_none_of_other_code),
};
SUITE(comm_machines, tests);
