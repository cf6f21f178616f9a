/* test_comm_direct.c: ranks that read large blocks from each other's memory, and what happens if they cannot. */
#include "ranks.h"

#include <errno.h>
#include <pthread.h>
#include <sys/uio.h>

#define LARGE ((size_t)3 << 19) /* in two parts if three ranks read each other's blocks */

/* ---- what the kernel does ---- */

/* If set, it is called instead, in this process. */
typedef ssize_t read_hook(pid_t process, const struct iovec *here, const struct iovec *there);
static read_hook *hook;

/* The linker calls it instead of process_vm_readv: tests/meson.build. */
ssize_t __real_process_vm_readv(pid_t process, const struct iovec *here, unsigned long here_count,
                                const struct iovec *there, unsigned long there_count,
                                unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t process, const struct iovec *here, unsigned long here_count,
                                const struct iovec *there, unsigned long there_count,
                                unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t process, const struct iovec *here, unsigned long here_count,
                                const struct iovec *there, unsigned long there_count,
                                unsigned long flags)
{
    CHECK(here_count == 1 && there_count == 1 && here->iov_len == there->iov_len && flags == 0);
    return hook ? hook(process, here, there)
                : __real_process_vm_readv(process, here, 1, there, 1, 0);
}

static ssize_t read_really(pid_t process, const struct iovec *here, const struct iovec *there)
{
    return __real_process_vm_readv(process, here, 1, there, 1, 0);
}

static ssize_t refuse(pid_t process, const struct iovec *here, const struct iovec *there)
{
    (void)process;
    (void)here;
    (void)there;
    errno = EPERM;
    return -1;
}

/* Memory may be readable only up to a place. */
static int reads_before_refusal;
static ssize_t refuse_later(pid_t process, const struct iovec *here, const struct iovec *there)
{
    return reads_before_refusal-- > 0 ? read_really(process, here, there)
                                      : refuse(process, here, there);
}

/* The kernel may read less than it is asked for. */
static ssize_t read_some(pid_t process, const struct iovec *here, const struct iovec *there)
{
    const size_t some = here->iov_len < 50001 ? here->iov_len : 50001;
    const struct iovec to = {here->iov_base, some}, from = {there->iov_base, some};
    return read_really(process, &to, &from);
}

/* ---- the chunks of the segment ---- */

/* Between all ranks: a barrier writes to none. */
static void chunks_mark(gg_comm *comm)
{
    CHECK(gg_comm_barrier(comm) == GG_OK);
    if (comm->rank == 0)
        memset(comm->chunks, 0xa5, 4 * (size_t)comm->size * comm->chunk);
    CHECK(gg_comm_barrier(comm) == GG_OK);
}

static bool chunks_are_marked(gg_comm *comm)
{
    const size_t nbytes = 4 * (size_t)comm->size * comm->chunk;
    CHECK(gg_comm_barrier(comm) == GG_OK);
    const bool same = (unsigned char)comm->chunks[0] == 0xa5 &&
                      memcmp(comm->chunks, comm->chunks + 1, nbytes - 1) == 0;
    CHECK(gg_comm_barrier(comm) == GG_OK);
    return same;
}

/* ---- moves, out of place and in place ---- */

struct place {
    gg_comm *comm;
    int32_t rank, size, root;
    size_t nbytes;
    unsigned char *src, *dst; /* of all blocks; src has those of this rank */
};

static struct place place_begin(gg_comm *comm, size_t nbytes)
{
    const int32_t rank = gg_comm_rank(comm), size = gg_comm_size(comm);
    return (struct place){.comm = comm,
                          .rank = rank,
                          .size = size,
                          .root = size - 1,
                          .nbytes = nbytes,
                          .src = bytes_of(rank, nbytes * (size_t)size),
                          .dst = bytes_of(99, nbytes * (size_t)size)};
}

/* The block of a rank, in @p data. */
static unsigned char *block(const struct place *self, unsigned char *data, int32_t rank)
{
    return data + (size_t)rank * self->nbytes;
}

static void place_end(struct place *self)
{
    free(self->src);
    free(self->dst);
}

static void gathered(struct place *self, const unsigned char *data)
{
    for (int32_t from = 0; from < self->size; from++)
        check_bytes(data + (size_t)from * self->nbytes, self->nbytes, from, 0);
}

static void all_gathers(struct place *self)
{
    CHECK(gg_comm_all_gather(self->comm, self->dst, self->src, self->nbytes) == GG_OK);
    gathered(self, self->dst);
}
static void all_gathers_to_its_own_block(struct place *self)
{
    unsigned char *mine = block(self, self->dst, self->rank);
    memcpy(mine, self->src, self->nbytes);
    CHECK(gg_comm_all_gather(self->comm, self->dst, mine, self->nbytes) == GG_OK);
    gathered(self, self->dst);
}
static void all_gathers_from_the_first_block(struct place *self)
{
    CHECK(gg_comm_all_gather(self->comm, self->src, self->src, self->nbytes) == GG_OK);
    gathered(self, self->src);
}

static void gathers(struct place *self)
{
    const bool at_root = self->rank == self->root;
    CHECK(gg_comm_gather(self->comm, at_root ? self->dst : NULL, self->src, self->nbytes,
                         self->root) == GG_OK);
    if (at_root)
        gathered(self, self->dst);
}
static void gathers_from_the_first_block(struct place *self)
{
    CHECK(gg_comm_gather(self->comm, self->src, self->src, self->nbytes, self->root) == GG_OK);
    if (self->rank == self->root)
        gathered(self, self->src);
}

static void broadcasts(struct place *self)
{
    const bool at_root = self->rank == self->root;
    CHECK(gg_comm_broadcast(self->comm, self->dst, at_root ? self->src : NULL, self->nbytes,
                            self->root) == GG_OK);
    check_bytes(self->dst, self->nbytes, self->root, 0);
}
static void broadcasts_in_place(struct place *self)
{
    CHECK(gg_comm_broadcast(self->comm, self->src, self->src, self->nbytes, 0) == GG_OK);
    check_bytes(self->src, self->nbytes, 0, 0);
}

static void scatters_to(struct place *self, unsigned char *dst)
{
    CHECK(gg_comm_scatter(self->comm, dst, self->rank == self->root ? self->src : NULL,
                          self->nbytes, self->root) == GG_OK);
    check_bytes(dst, self->nbytes, self->root, (size_t)self->rank * self->nbytes);
}
static void scatters(struct place *self)
{
    scatters_to(self, self->dst);
}
static void scatters_to_its_own_block(struct place *self)
{
    scatters_to(self, block(self, self->src, self->rank));
}
static void scatters_to_the_first_block(struct place *self)
{
    scatters_to(self, self->src);
}

static void exchanged(struct place *self, const unsigned char *data)
{
    for (int32_t from = 0; from < self->size; from++)
        check_bytes(data + (size_t)from * self->nbytes, self->nbytes, from,
                    (size_t)self->rank * self->nbytes);
}
static void exchanges(struct place *self)
{
    CHECK(gg_comm_all_to_all(self->comm, self->dst, self->src, self->nbytes) == GG_OK);
    exchanged(self, self->dst);
}
static void exchanges_in_place(struct place *self)
{
    CHECK(gg_comm_all_to_all(self->comm, self->src, self->src, self->nbytes) == GG_OK);
    exchanged(self, self->src);
}

static void shifts(struct place *self)
{
    const int32_t before = (self->rank + self->size - 1) % self->size;
    CHECK(gg_comm_send_recv(self->comm, self->src, self->nbytes, (self->rank + 1) % self->size,
                            self->dst, self->nbytes, before) == GG_OK);
    check_bytes(self->dst, self->nbytes, before, 0);
}
static void sends(struct place *self)
{
    if (self->rank == 0)
        CHECK(gg_comm_send(self->comm, self->src, self->nbytes, 1) == GG_OK);
    if (self->rank != 1)
        return;
    CHECK(gg_comm_recv(self->comm, self->dst, self->nbytes, 0) == GG_OK);
    check_bytes(self->dst, self->nbytes, 0, 0);
}

/* Those that need no chunk, and those in which a rank would write what others have yet to read. */
typedef void move(struct place *self);
static move *const directly[] = {
    all_gathers, all_gathers_to_its_own_block, gathers, broadcasts, broadcasts_in_place,
    scatters,    scatters_to_its_own_block,    shifts,  sends,      exchanges};
static move *const in_chunks[] = {all_gathers_from_the_first_block, gathers_from_the_first_block,
                                  scatters_to_the_first_block, exchanges_in_place};
#define DIRECT (int)(sizeof directly / sizeof directly[0])
#define CHUNKED (int)(sizeof in_chunks / sizeof in_chunks[0])

static void run_moves(gg_comm *comm, move *const *moves, int count, size_t nbytes)
{
    for (int i = 0; i < count; i++) {
        struct place place = place_begin(comm, nbytes);
        moves[i](&place);
        place_end(&place);
    }
}

/* ---- results ---- */

static const size_t sizes[] = {COMM_DIRECT - 1, COMM_DIRECT, COMM_DIRECT + 1, LARGE + 5};
#define SIZES (int)(sizeof sizes / sizeof sizes[0])

static void moves_of_all_sizes(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    CHECK(comm->direct);
    for (int i = 0; i < SIZES; i++) {
        chunks_mark(comm);
        run_moves(comm, directly, DIRECT, sizes[i]);
        CHECK(chunks_are_marked(comm) == (sizes[i] >= COMM_DIRECT));
        run_moves(comm, in_chunks, CHUNKED, sizes[i]);
    }
    gg_comm_release(comm);
}
static void moves_of_all_sizes_with_1_to_3(void)
{
    for (int32_t size = 2; size <= 3; size++)
        run_ranks(moves_of_all_sizes, size);
}
static void large_blocks_are_read_where_they_are(void **state)
{
    (void)state;
    in_child(moves_of_all_sizes_with_1_to_3);
}

static void reads_in_pieces(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    hook = read_some;
    run_moves(comm, directly, DIRECT, COMM_DIRECT + 7);
    gg_comm_release(comm);
}
static void reads_in_pieces_with_2(void)
{
    run_ranks(reads_in_pieces, 2);
}
static void what_the_kernel_reads_in_several_pieces_arrives(void **state)
{
    (void)state;
    in_child(reads_in_pieces_with_2);
}

/* A rank writes nothing but its destination. */
static unsigned char *allowed_begin, *allowed_end;
static ssize_t read_within(pid_t process, const struct iovec *here, const struct iovec *there)
{
    const unsigned char *to = here->iov_base;
    CHECK(to >= allowed_begin && to <= allowed_end);
    CHECK(here->iov_len <= (size_t)(allowed_end - to));
    return read_really(process, here, there);
}
static void reads_within(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    for (int i = 0; i < DIRECT; i++) {
        struct place place = place_begin(comm, COMM_DIRECT + 9);
        const bool gathered_in_src = directly[i] == broadcasts_in_place;
        allowed_begin = gathered_in_src ? place.src : place.dst;
        allowed_end = allowed_begin + (size_t)size * place.nbytes;
        hook = directly[i] == scatters_to_its_own_block ? NULL : read_within;
        directly[i](&place);
        place_end(&place);
    }
    gg_comm_release(comm);
}
static void reads_within_with_3(void)
{
    run_ranks(reads_within, 3);
}
static void a_rank_writes_only_to_its_destination(void **state)
{
    (void)state;
    in_child(reads_within_with_3);
}

/* ---- a rank that cannot read ---- */

static void one_is_refused(struct board *board, int32_t rank, int32_t size)
{
    hook = rank == 1 ? refuse : NULL;
    gg_comm *comm = rank_create(board, rank, size);
    CHECK(comm->direct == (rank != 1));
    run_moves(comm, directly, DIRECT, COMM_DIRECT + 3);
    run_moves(comm, in_chunks, CHUNKED, COMM_DIRECT + 3);
    gg_comm_release(comm);
}
static void one_of_3_is_refused(void)
{
    run_ranks(one_is_refused, 3);
}
static void all_use_chunks_if_one_rank_is_refused(void **state)
{
    (void)state;
    in_child(one_of_3_is_refused);
}

/* In each move rank 1 reads a few times, then no more. */
static void one_is_refused_later(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    for (int reads = 0; reads < 3; reads++)
        for (int i = 0; i < DIRECT; i++) {
            hook = rank == 1 ? refuse_later : NULL;
            reads_before_refusal = reads;
            run_moves(comm, directly + i, 1, LARGE + 3);
        }
    CHECK(comm->direct);
    gg_comm_release(comm);
}
static void one_of_3_is_refused_later(void)
{
    run_ranks(one_is_refused_later, 3);
}
static void a_part_that_cannot_be_read_and_all_after_it_go_through_chunks(void **state)
{
    (void)state;
    in_child(one_of_3_is_refused_later);
}

/* As if the number of rank 1 were that of another process in the namespace of rank 0. */
static ssize_t read_another(pid_t process, const struct iovec *here, const struct iovec *there)
{
    const ssize_t got = read_really(process, here, there);
    memset(here->iov_base, 7, here->iov_len);
    return got;
}
static void finds_another_process(struct board *board, int32_t rank, int32_t size)
{
    hook = rank == 0 ? read_another : NULL;
    gg_comm *comm = rank_create(board, rank, size);
    CHECK(comm->direct == (rank == 1));
    run_moves(comm, directly, DIRECT, COMM_DIRECT);
    gg_comm_release(comm);
}
static void one_finds_another_process(void)
{
    run_ranks(finds_another_process, 2);
}
static void a_process_that_does_not_have_the_rank_s_word_is_not_read(void **state)
{
    (void)state;
    in_child(one_finds_another_process);
}

/* ---- ranks that disagree ---- */

static int reads;
static ssize_t count_reads(pid_t process, const struct iovec *here, const struct iovec *there)
{
    reads++;
    return read_really(process, here, there);
}
static void large_ones_disagree(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    struct place place = place_begin(comm, COMM_DIRECT);
    hook = count_reads;
    CHECK(gg_comm_all_gather(comm, place.dst, place.src, COMM_DIRECT - (rank == 1)) ==
          GG_ERR_INVALID_ARGUMENT);
    CHECK_HAS(error_message(), "rank 1 calls all_gather of");
    CHECK(gg_comm_all_gather(comm, place.dst, place.src, rank == 1 ? 8 : COMM_DIRECT) ==
          GG_ERR_INVALID_ARGUMENT);
    const gg_status status = rank ? gg_comm_send(comm, place.src, COMM_DIRECT, 0)
                                  : gg_comm_recv(comm, place.dst, COMM_DIRECT - 1, 1);
    CHECK(status == GG_ERR_INVALID_ARGUMENT);
    check_bytes(place.dst, place.nbytes, 99, 0);
    CHECK(reads == 0);
    run_moves(comm, directly, DIRECT, COMM_DIRECT);
    CHECK(reads > 0);
    place_end(&place);
    gg_comm_release(comm);
}
static void large_ones_disagree_with_2(void)
{
    run_ranks(large_ones_disagree, 2);
}
static void nothing_is_read_if_ranks_disagree(void **state)
{
    (void)state;
    in_child(large_ones_disagree_with_2);
}

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

/* Flag 0: it is about to read. Flag 1: the source has failed, and its memory has other contents. */
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
    memset(place.src, 0, LARGE);
    flag_raise(board, 1);
    place_end(&place);
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
    memset(place.src, 0, LARGE);
    flag_raise(board, 1);
    if (rank == 0)
        CHECK_NAMES(1);
    CHECK(rank || atomic_load(&board->flags[0]));
    place_end(&place);
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

static gg_comm *comms[3];

static void *moves_of_thread(void *comm)
{
    chunks_mark(comm);
    run_moves(comm, directly, DIRECT, LARGE);
    CHECK(chunks_are_marked(comm));
    run_moves(comm, in_chunks, CHUNKED, LARGE);
    return NULL;
}
static void moves_of_threads(void)
{
    pthread_t threads[3];
    CHECK(ggi_comm_create_all(3, GG_FOREVER, comms) == GG_OK);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, moves_of_thread, comms[i]) == 0);
    for (int i = 0; i < 3; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        gg_comm_release(comms[i]);
    }
}
static void threads_read_each_other_s_memory_too(void **state)
{
    (void)state;
    in_child(moves_of_threads);
}

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
    cmocka_unit_test(large_blocks_are_read_where_they_are),
    cmocka_unit_test(what_the_kernel_reads_in_several_pieces_arrives),
    cmocka_unit_test(a_rank_writes_only_to_its_destination),
    cmocka_unit_test(all_use_chunks_if_one_rank_is_refused),
    cmocka_unit_test(a_part_that_cannot_be_read_and_all_after_it_go_through_chunks),
    cmocka_unit_test(a_process_that_does_not_have_the_rank_s_word_is_not_read),
    cmocka_unit_test(nothing_is_read_if_ranks_disagree),
    cmocka_unit_test(a_rank_that_is_killed_while_it_is_read_is_named),
    cmocka_unit_test(data_of_a_rank_that_has_failed_meanwhile_are_not_taken),
    cmocka_unit_test(a_rank_returns_when_the_others_have_read_its_memory),
    cmocka_unit_test(a_rank_that_is_read_for_longer_than_the_timeout_is_not_late),
    cmocka_unit_test(threads_read_each_other_s_memory_too),
    cmocka_unit_test(memory_that_a_thread_frees_after_an_abort_may_still_be_read),
};
SUITE(comm_direct, tests);
