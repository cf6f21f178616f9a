/* test_comm_names.c: the name of rank 0's host, and a name server that does not answer. */
#include "ranks.h"

#include "comm/socket.h"

#include <netinet/in.h>

static atomic_bool server_is_silent;
static atomic_int lookups; /* that wait for it */

int __real_getaddrinfo(const char *, const char *, const struct addrinfo *, struct addrinfo **);
int __wrap_getaddrinfo(const char *, const char *, const struct addrinfo *, struct addrinfo **);
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                       struct addrinfo **out)
{
    if (!(hints->ai_flags & AI_NUMERICHOST) && atomic_load(&server_is_silent)) {
        atomic_fetch_add(&lookups, 1);
        while (atomic_load(&server_is_silent))
            usleep(1000);
        const int result = __real_getaddrinfo("127.0.0.1", port, hints, out);
        atomic_fetch_sub(&lookups, 1);
        return result;
    }
    return strcmp(host, "unknown.example") ? __real_getaddrinfo(host, port, hints, out) : EAI_NONAME;
}

/* The error of a rank that looks for rank 0 on this host. */
static const char *host_gives(const char *host, int32_t rank, uint64_t timeout_ns,
                              gg_status expected)
{
    struct board *board = board_new();
    board->port = reserved_port();
    struct gg_comm_options options = rank_options(board, rank, 2);
    gg_comm *comm;
    options.host = host;
    options.timeout_ns = timeout_ns;
    CHECK(gg_comm_create(&options, &comm) == expected);
    return error_message();
}

static void creates_by_name(struct board *board, int32_t rank, int32_t size)
{
    struct gg_comm_options options = rank_options(board, rank, size);
    gg_comm *comm;
    options.host = "localhost";
    CHECK(gg_comm_create(&options, &comm) == GG_OK);
    gg_comm_release(comm);
}
static void ranks_create_by_name(void)
{
    run_ranks(creates_by_name, 2);
}
static void rank_0_is_found_by_the_name_of_its_host(void **state)
{
    (void)state;
    in_child(ranks_create_by_name);
}

static void looks_for_an_unknown_name(void)
{
    CHECK_HAS(host_gives("unknown.example", 1, GG_FOREVER, GG_ERR_INVALID_ARGUMENT),
              "host is 'unknown.example', which has no address");
}
static void a_name_without_an_address_is_an_error(void **state)
{
    (void)state;
    in_child(looks_for_an_unknown_name);
}

static void waits_for_the_server(void)
{
    atomic_store(&server_is_silent, true);
    for (int32_t rank = 0; rank < 2; rank++)
        CHECK_HAS(host_gives("silent.example", rank, 100000000, GG_ERR_COMMUNICATOR),
                  "host 'silent.example' was not found within 0.1 s");
    CHECK_HAS(host_gives("127.0.0.1", 1, 1000000, GG_ERR_COMMUNICATOR), "no connection to 127");
    while (atomic_load(&lookups) < 2)
        usleep(1000);
    atomic_store(&server_is_silent, false); /* a late answer is dropped */
    while (atomic_load(&lookups))
        usleep(1000);
}
static void a_name_server_that_does_not_answer_keeps_a_rank_for_its_timeout_only(void **state)
{
    (void)state;
    in_child(waits_for_the_server);
}

static int always(void)
{
    return 1;
}
static void interrupts_the_lookup(void)
{
    atomic_store(&server_is_silent, true);
    gg_set_wait_hook(always);
    CHECK_HAS(host_gives("silent.example", 1, GG_FOREVER, GG_ERR_INTERRUPTED), "interrupted");
}
static void an_interrupt_ends_a_wait_for_a_name_server(void **state)
{
    (void)state;
    in_child(interrupts_the_lookup);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(rank_0_is_found_by_the_name_of_its_host),
    cmocka_unit_test(a_name_without_an_address_is_an_error),
    cmocka_unit_test(a_name_server_that_does_not_answer_keeps_a_rank_for_its_timeout_only),
    cmocka_unit_test(an_interrupt_ends_a_wait_for_a_name_server),
};
SUITE(comm_names, tests);
