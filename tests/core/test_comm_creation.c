/* test_comm_creation.c: other programs and other versions that ranks meet while a communicator is created. */
#include "ranks.h"

#include "comm/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/resource.h>

/* ---- what listens is not rank 0 ---- */

/* A server in a child, which @p serve gives the connection of rank 1. */
static pid_t server_start(struct board *board, void (*serve)(int connection))
{
    const int listener = listening(&board->port);
    fflush(NULL);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        const int connection = accept(listener, NULL, NULL);
        CHECK(connection >= 0);
        serve(connection);
        _exit(0);
    }
    close(listener);
    return child;
}

static uint64_t timeout_of_rank_1 = GG_FOREVER;

/* The error that rank 1 of 2 gets. */
static const char *rank_1_gets(void (*serve)(int connection), gg_status expected)
{
    struct board *board = board_new();
    const pid_t server = server_start(board, serve);
    struct gg_comm_options options = rank_options(board, 1, 2);
    gg_comm *comm;
    int status = -1;
    options.timeout_ns = timeout_of_rank_1;
    CHECK(gg_comm_create(&options, &comm) == expected);
    CHECK(waitpid(server, &status, 0) == server && status == 0);
    return error_message();
}

static void until_closed(int connection)
{
    char byte;
    while (read(connection, &byte, 1) > 0)
        ;
}

/* Pass rank 1 a file that could become smaller. */
static void serve_unsealed_file(int connection)
{
    struct comm_hello hello;
    const int file = memfd_create("unsealed", MFD_CLOEXEC);
    CHECK(file >= 0);
    CHECK(ggi_comm_socket_read(connection, &hello, sizeof hello, UINT64_MAX) == GG_OK);
    CHECK(ggi_comm_pass_send(&hello.pass, file));
    ggi_comm_reply_write(connection, COMM_MAP, NULL, "");
    until_closed(connection);
}
static void gets_unsealed_file(void)
{
    CHECK_HAS(rank_1_gets(serve_unsealed_file, GG_ERR_UNSUPPORTED), "whose size is sealed");
}
static void shared_memory_that_could_become_smaller_is_refused(void **state)
{
    (void)state;
    in_child(gets_unsealed_file);
}

static void serve_nothing(int connection)
{
    ggi_comm_reply_write(connection, COMM_MAP, NULL, "");
    until_closed(connection);
}
static void gets_no_file(void)
{
    CHECK_HAS(rank_1_gets(serve_nothing, GG_ERR_UNSUPPORTED), "rank 0 passed no shared memory");
}
static void a_rank_0_that_passes_no_shared_memory_is_reported(void **state)
{
    (void)state;
    in_child(gets_no_file);
}

/* Messages in an order that no rank 0 sends. */
static void serve_go_alone(int connection)
{
    ggi_comm_reply_write(connection, COMM_GO, NULL, "");
    until_closed(connection);
}
static void serve_two_maps(int connection)
{
    struct gg_comm own = {.rank = 0, .size = 2, .file = -1};
    struct comm_hello hello;
    CHECK(ggi_comm_segment_create(&own) == GG_OK);
    CHECK(ggi_comm_socket_read(connection, &hello, sizeof hello, UINT64_MAX) == GG_OK);
    for (int i = 0; i < 2; i++) {
        CHECK(ggi_comm_pass_send(&hello.pass, own.file));
        ggi_comm_reply_write(connection, COMM_MAP, NULL, "");
    }
    ggi_comm_reply_write(connection, COMM_GO, NULL, "");
    until_closed(connection);
}
static void gets_go_alone(void)
{
    CHECK_HAS(rank_1_gets(serve_go_alone, GG_ERR_COMMUNICATOR), "is not rank 0 of a communicator");
}
static void gets_two_maps(void)
{
    CHECK_HAS(rank_1_gets(serve_two_maps, GG_ERR_COMMUNICATOR), "is not rank 0 of a communicator");
}
static void replies_out_of_order_are_those_of_another_program(void **state)
{
    (void)state;
    in_child(gets_go_alone);
    in_child(gets_two_maps);
}

/* ---- several machines ---- */

static void serve_apart(int connection)
{
    ggi_comm_reply_write(connection, COMM_APART, NULL, "");
    until_closed(connection);
}
static void gets_apart(void)
{
    CHECK_HAS(rank_1_gets(serve_apart, GG_ERR_COMMUNICATOR), "is not rank 0 of a communicator");
}

/* A message that no rank 0 sends, once the ranks are connected. */
static void serve_unknown_message(int connection)
{
    struct comm_hello hello;
    struct comm_reply reply;
    char head[56]; /* of link.c */
    memset(head, 0x7f, sizeof head);
    CHECK(ggi_comm_socket_read(connection, &hello, sizeof hello, UINT64_MAX) == GG_OK);
    ggi_comm_reply_write(connection, COMM_APART, NULL, "");
    CHECK(ggi_comm_socket_read(connection, &reply, sizeof reply, UINT64_MAX) == GG_OK);
    CHECK(hello.several && reply.kind == COMM_READY);
    ggi_comm_reply_write(connection, COMM_GO, NULL, "");
    CHECK(ggi_comm_socket_write(connection, head, sizeof head));
    until_closed(connection);
}
static void gets_unknown_message(void)
{
    struct board *board = board_new();
    const pid_t server = server_start(board, serve_unknown_message);
    struct gg_comm_options options = rank_options(board, 1, 2);
    gg_comm *comm;
    int status = -1, value = 0;
    options.flags = 1u << 31;
    CHECK(gg_comm_create(&options, &comm) == GG_ERR_INVALID_ARGUMENT);
    options.flags = GG_COMM_SEVERAL_MACHINES;
    CHECK(gg_comm_create(&options, &comm) == GG_OK);
    CHECK(gg_comm_broadcast(comm, &value, &value, sizeof value, 0) == GG_ERR_UNSUPPORTED);
    CHECK(gg_comm_barrier(comm) == GG_ERR_COMMUNICATOR);
    CHECK_HAS(error_message(), "rank 0 ended without closing the communicator");
    CHECK_NAMES(0);
    gg_comm_release(comm);
    CHECK(waitpid(server, &status, 0) == server && status == 0);
}
static void a_rank_of_several_machines_expects_the_messages_of_rank_0_alone(void **state)
{
    (void)state;
    in_child(gets_apart);
    in_child(gets_unknown_message);
}

static void serve_web_page(int connection)
{
    static const char page[] = "HTTP/1.1 400 Bad Request\r\n\r\n\033[31m";
    CHECK(write(connection, page, sizeof page - 1) > 0);
    until_closed(connection);
}
static void meets_web_server(void)
{
    const char *text = rank_1_gets(serve_web_page, GG_ERR_COMMUNICATOR);
    CHECK_HAS(text, "is not rank 0 of a communicator");
    CHECK(!strchr(text, '\033'));
    CHECK(gg_comm_failed_ranks(NULL, 0) == 0);
}
static void another_program_that_listens_on_the_port_is_reported(void **state)
{
    (void)state;
    in_child(meets_web_server);
}

static void serve_impossible_ranks(int connection)
{
    struct comm_ranks ranks;
    memset(&ranks, 0xff, sizeof ranks);
    ggi_comm_reply_write(connection, COMM_FAILED, &ranks, "a reason");
    until_closed(connection);
}
static void hears_of_impossible_ranks(void)
{
    CHECK_HAS(rank_1_gets(serve_impossible_ranks, GG_ERR_COMMUNICATOR), "a reason");
    CHECK(gg_comm_failed_ranks(NULL, 0) == 2);
}
static void only_ranks_of_the_communicator_are_named(void **state)
{
    (void)state;
    in_child(hears_of_impossible_ranks);
}

static void serve_escape_code(int connection)
{
    ggi_comm_reply_write(connection, COMM_FAILED, NULL, "\033[31mred\n\177");
    until_closed(connection);
}
static void gets_escape_code(void)
{
    CHECK_SAME(rank_1_gets(serve_escape_code, GG_ERR_COMMUNICATOR), "?[31mred??");
}
static void a_reason_is_shown_without_control_characters(void **state)
{
    (void)state;
    in_child(gets_escape_code);
}

static void serve_other_version(int connection)
{
    const struct comm_head head = {COMM_MAGIC, 7};
    CHECK(ggi_comm_socket_write(connection, &head, sizeof head));
    until_closed(connection);
}
static void meets_other_version(void)
{
    const char *text = rank_1_gets(serve_other_version, GG_ERR_COMMUNICATOR);
    char expected[100];
    snprintf(expected, sizeof expected,
             "rank 0 has version 7 of the protocol, and rank 1 has version %d", COMM_PROTOCOL);
    CHECK_HAS(text, expected);
    CHECK_NAMES(0);
}
static void a_rank_0_of_another_version_is_reported(void **state)
{
    (void)state;
    in_child(meets_other_version);
}

/* ---- the timeout ---- */

static void serve_failure_after_the_timeout(int connection)
{
    const struct comm_ranks root = {{1}};
    ggi_comm_reply_write(connection, COMM_WAIT, NULL, "");
    usleep((useconds_t)(timeout_of_rank_1 / 1000) + 50000);
    ggi_comm_reply_write(connection, COMM_FAILED, &root, "what rank 0 found");
    until_closed(connection);
}
/* The timeout grows until the machine is fast enough for the server to answer in time. */
static void gets_failure_after_the_timeout(void)
{
    const char *text;
    timeout_of_rank_1 = 50000000;
    do {
        timeout_of_rank_1 *= 2;
        text = rank_1_gets(serve_failure_after_the_timeout, GG_ERR_COMMUNICATOR);
    } while (strstr(text, "did not answer within") || strstr(text, "did not complete"));
    CHECK_HAS(text, "what rank 0 found");
    CHECK_NAMES(0);
}
static void rank_0_decides_who_is_missing_once_it_has_answered(void **state)
{
    (void)state;
    in_child(gets_failure_after_the_timeout);
}

/* ---- what connects is not a rank ---- */

/* A rank of another version sends its head; then a right one connects. */
static void has_other_version(struct board *board, int32_t rank, int32_t size)
{
    if (rank == 1) {
        const struct comm_head head = {COMM_MAGIC, 7};
        struct comm_reply reply;
        const int connection = connected_to(board->port);
        CHECK(ggi_comm_socket_write(connection, &head, sizeof head));
        CHECK(ggi_comm_socket_read(connection, &reply, sizeof reply, UINT64_MAX) == GG_OK);
        CHECK(reply.head.magic == COMM_MAGIC && reply.head.protocol == COMM_PROTOCOL);
        CHECK(reply.kind == COMM_REFUSED);
        CHECK_HAS(reply.text, "a process that connected has version 7");
    }
    gg_comm_release(rank_create(board, rank, size));
}
static void one_has_other_version(void)
{
    run_ranks(has_other_version, 2);
}
static void a_rank_of_another_version_is_refused_with_both_versions(void **state)
{
    (void)state;
    in_child(one_has_other_version);
}

/* Connects as rank 1, and reports that it has mapped the shared memory, which it has not. */
static void pretends_to_be_ready(struct board *board, int32_t rank, int32_t size)
{
    const struct gg_comm_options options = rank_options(board, rank, size);
    struct comm_hello hello;
    gg_comm *comm;
    if (rank == 0) {
        CHECK(gg_comm_create(&options, &comm) == GG_ERR_COMMUNICATOR);
        CHECK_HAS(error_message(), "rank 1 did not lock the shared memory");
        CHECK_NAMES(1);
        return;
    }
    const int connection = connected_to(board->port);
    ggi_comm_hello_fill(&hello, &options);
    CHECK(ggi_comm_pass_listen(&hello.pass) >= 0);
    CHECK(ggi_comm_socket_write(connection, &hello, sizeof hello));
    CHECK(ggi_comm_reply_write(connection, COMM_READY, NULL, ""));
    until_closed(connection);
}
static void one_pretends_to_be_ready(void)
{
    run_ranks(pretends_to_be_ready, 2);
}
static void a_rank_that_has_not_mapped_the_memory_fails_the_creation(void **state)
{
    (void)state;
    in_child(one_pretends_to_be_ready);
}

/* Connects as rank 1, and fails for a reason that would change a terminal. */
static void fails_with_escape_code(struct board *board, int32_t rank, int32_t size)
{
    const struct gg_comm_options options = rank_options(board, rank, size);
    struct comm_hello hello;
    gg_comm *comm;
    if (rank == 0) {
        CHECK(gg_comm_create(&options, &comm) == GG_ERR_COMMUNICATOR);
        CHECK_HAS(error_message(), "rank 1: ?[31mred");
        return;
    }
    const int connection = connected_to(board->port);
    ggi_comm_hello_fill(&hello, &options);
    CHECK(ggi_comm_pass_listen(&hello.pass) >= 0);
    CHECK(ggi_comm_socket_write(connection, &hello, sizeof hello));
    struct comm_reply reply;
    do
        CHECK(ggi_comm_socket_read(connection, &reply, sizeof reply, UINT64_MAX) == GG_OK);
    while (reply.kind != COMM_MAP);
    CHECK(ggi_comm_reply_write(connection, COMM_FAILED, NULL, "\033[31mred"));
    until_closed(connection);
}
static void one_fails_with_escape_code(void)
{
    run_ranks(fails_with_escape_code, 2);
}
static void a_rank_s_reason_is_shown_without_control_characters(void **state)
{
    (void)state;
    in_child(one_fails_with_escape_code);
}

/* ---- other users ---- */

/* Only root can become another user; otherwise the right rank 1 alone connects. */
static void has_another_user(struct board *board, int32_t rank, int32_t size)
{
    const struct gg_comm_options options = rank_options(board, rank, size);
    gg_comm *comm;
    if (rank == 1 && seteuid(65534) == 0) {
        CHECK(gg_comm_create(&options, &comm) == GG_ERR_COMMUNICATOR);
        CHECK_HAS(error_message(), "it belongs to another user");
        CHECK(seteuid(0) == 0);
    }
    gg_comm_release(rank_create(board, rank, size));
}
static void one_has_another_user(void)
{
    run_ranks(has_another_user, 2);
}
static void a_rank_of_another_user_is_refused(void **state)
{
    (void)state;
    in_child(one_has_another_user);
}

static void passes_between_users(void)
{
    struct comm_pass_name name, others;
    const int file = memfd_create("passed", MFD_CLOEXEC), listener = ggi_comm_pass_listen(&name);
    CHECK(file >= 0 && listener >= 0);
    if (seteuid(65534) == 0) {
        const int of_other = ggi_comm_pass_listen(&others);
        CHECK(!ggi_comm_pass_send(&name, file) && errno == EPERM);
        CHECK(ggi_comm_pass_send(&others, file));
        CHECK(seteuid(0) == 0);
        CHECK(ggi_comm_pass_receive(of_other) < 0);
    }
    CHECK(ggi_comm_pass_send(&name, -1));
    CHECK(ggi_comm_pass_receive(listener) < 0);
    CHECK(ggi_comm_pass_send(&name, file));
    CHECK(ggi_comm_pass_receive(listener) >= 0);
    close(listener);
    CHECK(!ggi_comm_pass_send(&name, file) && errno == ECONNREFUSED);
}
static void a_file_is_passed_only_between_processes_of_one_user(void **state)
{
    (void)state;
    in_child(passes_between_users);
}

/* ---- the shared memory ---- */

static void has_no_name(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    struct stat file;
    CHECK(fstat(comm->file, &file) == 0 && file.st_nlink == 0);
    CHECK(ftruncate(comm->file, 0) < 0 && errno == EPERM);
    CHECK(ftruncate(comm->file, 2 * file.st_size) < 0 && errno == EPERM);
    gg_comm_release(comm);
}
static void has_no_name_with_2(void)
{
    run_ranks(has_no_name, 2);
}
static void the_shared_memory_has_no_name_and_keeps_its_size(void **state)
{
    (void)state;
    in_child(has_no_name_with_2);
}

static void rank_0_is_limited(struct board *board, int32_t rank, int32_t size)
{
    const struct rlimit limit = {1 << 20, 1 << 20};
    const struct gg_comm_options options = rank_options(board, rank, size);
    gg_comm *comm;
    CHECK(rank || setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(gg_comm_create(&options, &comm) == (rank ? GG_ERR_COMMUNICATOR : GG_ERR_OUT_OF_MEMORY));
    CHECK_HAS(error_message(), "of shared memory cannot be reserved for 2 ranks: File too large");
}
static void rank_0_of_2_is_limited(void)
{
    run_ranks(rank_0_is_limited, 2);
}
static void memory_beyond_the_limit_of_file_sizes_is_an_error_on_all_ranks(void **state)
{
    (void)state;
    in_child(rank_0_of_2_is_limited);
}

/* ---- addresses ---- */

static struct addrinfo address_of(struct sockaddr_in *address, struct addrinfo *next)
{
    return (struct addrinfo){.ai_family = AF_INET,
                             .ai_socktype = SOCK_STREAM,
                             .ai_addr = (struct sockaddr *)address,
                             .ai_addrlen = sizeof *address,
                             .ai_next = next};
}
static void listens_on_two_addresses(void)
{
    int32_t port;
    const int other = listening(&port);
    struct sockaddr_in first = loopback("127.0.0.1", port), second = loopback("127.0.0.2", port);
    struct addrinfo last = address_of(&second, NULL), name = address_of(&first, &last);
    CHECK(ggi_comm_listen(&name, 1) < 0 && errno == EADDRINUSE);
    first = loopback("192.0.2.1", port); /* of no machine */
    CHECK(ggi_comm_listen(&name, 1) >= 0);
    close(other);
}
static void a_port_in_use_on_the_first_address_is_not_taken_on_the_next(void **state)
{
    (void)state;
    in_child(listens_on_two_addresses);
}

static void connects_to_itself(void)
{
    int32_t port;
    struct sockaddr_in address = loopback("127.0.0.1", 0);
    socklen_t size = sizeof address;
    const int own = socket(AF_INET, SOCK_STREAM, 0), listener = listening(&port);
    const int other = connected_to(port);
    CHECK(bind(own, (const struct sockaddr *)&address, size) == 0);
    CHECK(getsockname(own, (struct sockaddr *)&address, &size) == 0);
    CHECK(connect(own, (const struct sockaddr *)&address, size) == 0);
    CHECK(ggi_comm_socket_is_own(own));
    CHECK(!ggi_comm_socket_is_own(other) && !ggi_comm_socket_is_own(listener));
}
static void a_socket_that_is_connected_to_itself_is_recognized(void **state)
{
    (void)state;
    in_child(connects_to_itself);
}

/* ---- waits ---- */

/* As Ctrl-C in Python, which is reported once. */
static int once(void)
{
    static int calls;
    return calls++ == 0;
}

/* A listener whose queue is full answers no further connection, as an address that does not exist. */
static void interrupted_while_connecting(void)
{
    struct board *board = board_new();
    const int listener = listening(&board->port);
    const struct sockaddr_in address = loopback("127.0.0.1", board->port);
    CHECK(listen(listener, 0) == 0);
    for (int i = 0; i < 4; i++) {
        const int one = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        CHECK(one >= 0);
        connect(one, (const struct sockaddr *)&address, sizeof address);
    }
    struct gg_comm_options options = rank_options(board, 1, 2);
    gg_comm *comm;
    options.timeout_ns = 300000000;
    gg_set_wait_hook(once);
    CHECK(gg_comm_create(&options, &comm) == GG_ERR_INTERRUPTED);
}
static void an_interrupt_ends_an_attempt_to_connect(void **state)
{
    (void)state;
    in_child(interrupted_while_connecting);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(shared_memory_that_could_become_smaller_is_refused),
    cmocka_unit_test(a_rank_0_that_passes_no_shared_memory_is_reported),
    cmocka_unit_test(replies_out_of_order_are_those_of_another_program),
    cmocka_unit_test(a_rank_of_several_machines_expects_the_messages_of_rank_0_alone),
    cmocka_unit_test(rank_0_decides_who_is_missing_once_it_has_answered),
    cmocka_unit_test(a_reason_is_shown_without_control_characters),
    cmocka_unit_test(a_rank_s_reason_is_shown_without_control_characters),
    cmocka_unit_test(a_rank_of_another_user_is_refused),
    cmocka_unit_test(a_file_is_passed_only_between_processes_of_one_user),
    cmocka_unit_test(the_shared_memory_has_no_name_and_keeps_its_size),
    cmocka_unit_test(memory_beyond_the_limit_of_file_sizes_is_an_error_on_all_ranks),
    cmocka_unit_test(another_program_that_listens_on_the_port_is_reported),
    cmocka_unit_test(only_ranks_of_the_communicator_are_named),
    cmocka_unit_test(a_rank_that_has_not_mapped_the_memory_fails_the_creation),
    cmocka_unit_test(a_rank_0_of_another_version_is_reported),
    cmocka_unit_test(a_rank_of_another_version_is_refused_with_both_versions),
    cmocka_unit_test(a_port_in_use_on_the_first_address_is_not_taken_on_the_next),
    cmocka_unit_test(a_socket_that_is_connected_to_itself_is_recognized),
    cmocka_unit_test(an_interrupt_ends_an_attempt_to_connect),
};
SUITE(comm_creation, tests);
