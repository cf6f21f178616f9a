/* test_comm_direct.c: ranks that read large blocks from each other's memory, and what happens if they cannot. */
#include "direct.h"

/* ---- what the kernel does ---- */

read_hook *hook;

ssize_t __wrap_process_vm_readv(pid_t process, const struct iovec *here, unsigned long here_count,
                                const struct iovec *there, unsigned long there_count,
                                unsigned long flags)
{
    CHECK(here_count == 1 && there_count == 1 && here->iov_len == there->iov_len && flags == 0);
    return hook ? hook(process, here, there)
                : __real_process_vm_readv(process, here, 1, there, 1, 0);
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

/* The block of a rank, in @p data. */
static unsigned char *block(const struct place *self, unsigned char *data, int32_t rank)
{
    return data + (size_t)rank * self->nbytes;
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
static move *const directly[] = {all_gathers,
                                 all_gathers_to_its_own_block,
                                 gathers,
                                 scatters,
                                 scatters_to_its_own_block,
                                 shifts,
                                 sends,
                                 exchanges,
                                 broadcasts,
                                 broadcasts_in_place};
static move *const in_chunks[] = {all_gathers_from_the_first_block, gathers_from_the_first_block,
                                  scatters_to_the_first_block, exchanges_in_place};
#define DIRECT (int)(sizeof directly / sizeof directly[0])
#define CHUNKED (int)(sizeof in_chunks / sizeof in_chunks[0])

/* A broadcast to several ranks goes through chunks. */
static int direct_moves(const gg_comm *comm)
{
    return comm->size == 2 ? DIRECT : DIRECT - 2;
}

static void run_moves(gg_comm *comm, move *const *moves, int count, size_t nbytes)
{
    for (int i = 0; i < count; i++) {
        struct place place = place_begin(comm, nbytes);
        moves[i](&place);
        place_end(&place);
    }
}

/* Blocks of this size are read where they are, if @p large, by those moves that can. */
static void check_moves(gg_comm *comm, size_t nbytes, bool large)
{
    const int direct = direct_moves(comm);
    chunks_mark(comm);
    run_moves(comm, directly, direct, nbytes);
    CHECK(chunks_are_marked(comm) == large);
    run_moves(comm, directly + direct, DIRECT - direct, nbytes);
    run_moves(comm, in_chunks, CHUNKED, nbytes);
    CHECK(!chunks_are_marked(comm));
}

/* ---- results ---- */

static const size_t sizes[] = {COMM_DIRECT - 1, COMM_DIRECT, COMM_DIRECT + 1, LARGE + 5};
#define SIZES (int)(sizeof sizes / sizeof sizes[0])

static void moves_of_all_sizes(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    CHECK(comm->direct);
    for (int i = 0; i < SIZES; i++)
        check_moves(comm, sizes[i], sizes[i] >= COMM_DIRECT);
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

/* ---- ranks of one process ---- */

static gg_comm *comms[3];

static void *moves_of_thread(void *comm)
{
    check_moves(comm, LARGE, true);
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(large_blocks_are_read_where_they_are),
    cmocka_unit_test(what_the_kernel_reads_in_several_pieces_arrives),
    cmocka_unit_test(a_rank_writes_only_to_its_destination),
    cmocka_unit_test(all_use_chunks_if_one_rank_is_refused),
    cmocka_unit_test(a_part_that_cannot_be_read_and_all_after_it_go_through_chunks),
    cmocka_unit_test(a_process_that_does_not_have_the_rank_s_word_is_not_read),
    cmocka_unit_test(nothing_is_read_if_ranks_disagree),
    cmocka_unit_test(threads_read_each_other_s_memory_too),
};
SUITE(comm_direct, tests);
