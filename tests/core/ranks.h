/* ranks.h: tests of communicators, whose ranks are forked processes. */
#ifndef GPUGLUE_TESTS_RANKS_H
#define GPUGLUE_TESTS_RANKS_H

#include "inside.h"

#include "comm/comm.h"

#include <arpa/inet.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* What the processes of a case share, besides communicators. */
struct board {
    int32_t port;
    _Atomic int flags[8];
};

static inline struct board *board_new(void)
{
    struct board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(board != MAP_FAILED);
    return board;
}

static inline int listening(int32_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int file = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(file >= 0 && bind(file, (struct sockaddr *)&address, size) == 0 && listen(file, 8) == 0);
    CHECK(getsockname(file, (struct sockaddr *)&address, &size) == 0);
    *port = ntohs(address.sin_port);
    return file;
}

/* A port that no other process gets until this one and its children end: the kernel gives a bound port to nobody who asks for
 * any port. Rank 0 can listen on it, since both sockets have SO_REUSEADDR and this one does not listen. */
static inline int32_t reserved_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    const int yes = 1, file = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(file >= 0 && setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0);
    CHECK(bind(file, (struct sockaddr *)&address, size) == 0);
    CHECK(getsockname(file, (struct sockaddr *)&address, &size) == 0);
    return ntohs(address.sin_port);
}

static inline struct gg_comm_options rank_options(const struct board *board, int32_t rank,
                                                  int32_t size)
{
    return (struct gg_comm_options){.struct_size = sizeof(struct gg_comm_options),
                                    .rank = rank,
                                    .size = size,
                                    .port = board->port,
                                    .timeout_ns = GG_FOREVER};
}

static inline gg_comm *rank_create(const struct board *board, int32_t rank, int32_t size)
{
    const struct gg_comm_options options = rank_options(board, rank, size);
    gg_comm *comm = NULL;
    if (gg_comm_create(&options, &comm))
        CHECK_SAME(error_message(), "");
    return comm;
}

typedef void rank_body(struct board *board, int32_t rank, int32_t size);

static inline pid_t rank_start(rank_body *body, struct board *board, int32_t rank, int32_t size)
{
    fflush(NULL);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child)
        return child;
    signal(SIGSEGV, SIG_DFL);
    signal(SIGABRT, SIG_DFL);
    body(board, rank, size);
    _exit(0);
}

/* All ranks, in processes of their own; each must pass, or end by SIGKILL if it is @p victim. */
static inline void run_ranks_but(rank_body *body, int32_t size, int32_t victim)
{
    struct board *board = board_new();
    pid_t children[GG_COMM_SIZE_MAX];
    board->port = reserved_port();
    for (int32_t rank = 0; rank < size; rank++)
        children[rank] = rank_start(body, board, rank, size);
    for (int32_t rank = 0; rank < size; rank++) {
        int status = -1;
        CHECK(waitpid(children[rank], &status, 0) == children[rank]);
        CHECK(rank == victim ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : status == 0);
    }
}
static inline void run_ranks(rank_body *body, int32_t size)
{
    run_ranks_but(body, size, -1);
}

static inline void flag_raise(struct board *board, int flag)
{
    atomic_store(&board->flags[flag], 1);
}
static inline void flag_wait(struct board *board, int flag)
{
    while (!atomic_load(&board->flags[flag]))
        usleep(1000);
}

/* The byte at @p i of the data of a rank. */
static inline unsigned char byte_of(int32_t rank, size_t i)
{
    return (unsigned char)((size_t)rank * 37 + i * 11 + (i >> 8));
}

static inline unsigned char *bytes_of(int32_t rank, size_t nbytes)
{
    unsigned char *data = malloc(nbytes + 1);
    CHECK(data != NULL);
    for (size_t i = 0; i < nbytes; i++)
        data[i] = byte_of(rank, i);
    return data;
}

static inline void check_bytes(const unsigned char *data, size_t nbytes, int32_t rank, size_t from)
{
    int wrong = 0;
    for (size_t i = 0; i < nbytes; i++)
        wrong |= data[i] != byte_of(rank, from + i);
    CHECK(!wrong);
}

/* Whether the last failure names this rank and no other. */
#define CHECK_NAMES(rank)                            \
    do {                                             \
        int32_t named_[2] = {-1, -1};                \
        CHECK(gg_comm_failed_ranks(named_, 2) == 1); \
        CHECK(named_[0] == (rank));                  \
    } while (0)

static inline struct sockaddr_in loopback(const char *host, int32_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    CHECK(inet_pton(AF_INET, host, &address.sin_addr) == 1);
    return address;
}

static inline int connected_to(int32_t port)
{
    const struct sockaddr_in address = loopback("127.0.0.1", port);
    for (;;) {
        const int file = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(file >= 0);
        if (connect(file, (const struct sockaddr *)&address, sizeof address) == 0)
            return file;
        close(file);
        usleep(1000);
    }
}

/* Six ranks: odd ones in reverse order, even ones without rank 2. */
static inline void check_split_of_six(gg_comm *comm, int32_t rank)
{
    const int32_t color = rank == 2 ? GG_COMM_NO_COLOR : rank % 2, key = rank % 2 ? -rank : 0;
    gg_comm *part = NULL;
    int32_t sum = rank;
    CHECK(gg_comm_split(comm, color, key, &part) == GG_OK);
    CHECK((part == NULL) == (rank == 2));
    if (part) {
        CHECK(gg_comm_size(part) == (rank % 2 ? 3 : 2));
        CHECK(gg_comm_rank(part) == (rank % 2 ? (5 - rank) / 2 : rank > 0));
        CHECK(gg_comm_all_reduce(part, &sum, &sum, 1, GG_COMM_INT32, GG_COMM_SUM) == GG_OK);
        CHECK(sum == (rank % 2 ? 1 + 3 + 5 : 0 + 4));
        gg_comm_release(part);
    }
}

#endif
