/* fuzz_comm.c: the messages of ranks while a communicator is created.
 *
 * The sources are included, to call what reads a message. The first byte of an input selects whether rank 0 reads it or rank 1
 * does, and what is correct. Each message comes over a pair of sockets, whose other end is then closed. */
#include "comm/meet.c"

#include "comm/join.c"

#include "fuzz.h"

#define SIZE 4

/* The bits of the first byte. */
enum {
    TO_RANK_1 = 1,
    HEADS = 2,     /* the messages have the right magic and protocol */
    HELLOS = 4,    /* what the first messages to rank 0 name is right, except for the rank */
    CONFIRM = 8,   /* to rank 0: a rank's answer, once all have connected */
    FILE_SENT = 8, /* to rank 1: shared memory has been passed */
};

static struct gg_comm_options options = {.size = SIZE, .id = "a job", .timeout_ns = 1000000000u};
static struct gg_comm root = {.size = SIZE, .file = -1};
static struct comm_hello mine;          /* of rank 0 */
static struct comm_pass_name pass_name; /* of the socket below */
static int pass = -1;

/* The linker makes the table of such locks only if there is one; what is linked here has none. */
static pthread_mutex_t unused_lock = PTHREAD_MUTEX_INITIALIZER;
GGI_RESET_IN_CHILD(unused_lock)

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    ggi_comm_hello_fill(&mine, &options);
    pass = ggi_comm_pass_listen(&pass_name);
    FUZZ_CHECK(pass >= 0);
    FUZZ_CHECK(!ggi_comm_segment_create(&root));
    return 0;
}

/* A message is text that can be shown, and names ranks that exist. */
static void check_error(void)
{
    int32_t ranks[GG_COMM_SIZE_MAX];
    const char *text = ggi_error_record()->error.message;
    for (; *text; text++)
        FUZZ_CHECK((unsigned char)*text >= ' ' && *text != 127);
    const size_t count = gg_comm_failed_ranks(ranks, GG_COMM_SIZE_MAX);
    for (size_t i = 0; i < count; i++)
        FUZZ_CHECK(ranks[i] < SIZE);
}

static void open_pair(int pair[2])
{
    FUZZ_CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair));
}

static void write_all(int socket, const void *data, size_t size)
{
    FUZZ_CHECK(!size || send(socket, data, size, MSG_NOSIGNAL) == (ssize_t)size);
}

/* Rank 0 writes whole replies, whose text ends. */
static void read_replies(int socket)
{
    struct comm_reply reply;
    ssize_t got;
    while ((got = recv(socket, &reply, sizeof reply, MSG_DONTWAIT)) > 0) {
        FUZZ_CHECK(got == sizeof reply && reply.head.magic == COMM_MAGIC);
        FUZZ_CHECK(memchr(reply.text, 0, sizeof reply.text));
    }
}

/* ---- to rank 0 ---- */

static void hello_correct(struct comm_hello *hello, uint8_t selector)
{
    if (selector & HEADS)
        hello->head = mine.head;
    if (!(selector & HELLOS))
        return;
    hello->size = SIZE;
    memcpy(hello->id, mine.id, sizeof mine.id);
    memcpy(hello->machine, mine.machine, sizeof mine.machine);
    hello->pass = pass_name;
}

static void check_guests(const struct rendezvous *self)
{
    FUZZ_CHECK(self->count >= 0 && self->count <= MEET_ROOM);
    FUZZ_CHECK(memchr(self->refusal, 0, sizeof self->refusal));
    for (int i = 0; i < self->count; i++) {
        const int32_t rank = self->guests[i].rank;
        FUZZ_CHECK(rank == -1 || (rank > 0 && rank < SIZE));
        FUZZ_CHECK(rank == -1 || ggi_comm_ranks_has(&self->present, rank));
        for (int j = 0; j < i; j++)
            FUZZ_CHECK(rank == -1 || rank != self->guests[j].rank);
    }
}

/* In two parts: a message may arrive so. */
static void guest_send(struct rendezvous *self, const struct comm_hello *hello, size_t size,
                       int other)
{
    const int at = self->count - 1;
    const size_t first = size ? (size_t)hello->process[0] % size : 0;
    write_all(other, hello, first);
    guest_read(self, at);
    if (self->count > at)
        write_all(other, (const char *)hello + first, size - first);
    if (self->count > at)
        guest_read(self, at);
}

/* Several processes connect, one after another. */
static void fuzz_hellos(struct rendezvous *self, uint8_t selector, const uint8_t *data, size_t size)
{
    int pairs[SIZE + 1][2], used = 0;
    while (size && used <= SIZE) {
        struct comm_hello hello;
        const size_t length = size < sizeof hello ? size : sizeof hello;
        memset(&hello, 0, sizeof hello);
        memcpy(&hello, data, length);
        hello_correct(&hello, selector);
        open_pair(pairs[used]);
        self->guests[self->count++] = (struct guest){.socket = pairs[used][0], .rank = -1};
        guest_send(self, &hello, length, pairs[used++][1]);
        check_guests(self);
        data += length;
        size -= length;
    }
    while (self->count)
        guest_drop(self, self->count - 1);
    while (used--) {
        read_replies(pairs[used][1]);
        close(pairs[used][1]);
    }
}

static void fuzz_confirm(struct rendezvous *self, uint8_t selector, const uint8_t *data, size_t size)
{
    struct comm_reply reply;
    int pair[2];
    memset(&reply, 0, sizeof reply);
    memcpy(&reply, data, size < sizeof reply ? size : sizeof reply);
    if (selector & HEADS)
        reply.head = mine.head;
    open_pair(pair);
    write_all(pair[1], &reply, size < sizeof reply ? size : sizeof reply);
    close(pair[1]);
    const struct guest guest = {.socket = pair[0], .rank = 1};
    if (guest_confirm(self, &guest))
        check_error();
    close(pair[0]);
}

static void fuzz_rank_0(uint8_t selector, const uint8_t *data, size_t size)
{
    static struct rendezvous self;
    memset(&self, 0, sizeof self);
    self.comm = &root;
    self.options = &options;
    self.until = UINT64_MAX;
    self.mine = mine;
    ggi_comm_ranks_add(&self.present, 0);
    if (selector & CONFIRM)
        fuzz_confirm(&self, selector, data, size);
    else
        fuzz_hellos(&self, selector, data, size);
}

/* ---- to rank 1 ---- */

static void write_replies(int socket, uint8_t selector, const uint8_t *data, size_t size)
{
    while (size) {
        struct comm_reply reply;
        const size_t length = size < sizeof reply ? size : sizeof reply;
        memset(&reply, 0, sizeof reply);
        memcpy(&reply, data, length);
        if (selector & HEADS)
            reply.head = mine.head;
        write_all(socket, &reply, length);
        data += length;
        size -= length;
    }
}

static void fuzz_rank_1(uint8_t selector, const uint8_t *data, size_t size)
{
    struct gg_comm comm = {.rank = 1, .size = SIZE, .file = -1};
    int pair[2];
    open_pair(pair);
    struct join self = {
        .comm = &comm, .options = &options, .until = UINT64_MAX, .pass = pass, .socket = pair[0]};
    if (selector & FILE_SENT)
        FUZZ_CHECK(ggi_comm_pass_send(&pass_name, root.file));
    write_replies(pair[1], selector, data, size);
    shutdown(pair[1], SHUT_WR);
    const gg_status status = join_talk(&self, &mine);
    FUZZ_CHECK(status != GG_NOT_READY && (status || comm.segment));
    if (status && status != GG_ERR_CLOSED)
        check_error();
    ggi_comm_segment_close(&comm);
    close(pair[0]);
    close(pair[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int file;
    if (!size)
        return 0;
    if (data[0] & TO_RANK_1)
        fuzz_rank_1(data[0], data + 1, size - 1);
    else
        fuzz_rank_0(data[0], data + 1, size - 1);
    while ((file = ggi_comm_pass_receive(pass)) >= 0)
        close(file);
    return 0;
}
