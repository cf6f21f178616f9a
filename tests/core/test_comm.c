/* test_comm.c: the operations of communicators, compared with a serial program. */
#include "ranks.h"

static const size_t byte_counts[] = {0, 1, 7, 4096, 70001, 300000};
#define BYTE_COUNTS (sizeof byte_counts / sizeof byte_counts[0])

/* ---- moves ---- */

static void gathers(gg_comm *comm, int32_t rank, int32_t size, size_t nbytes)
{
    unsigned char *src = bytes_of(rank, nbytes), *dst = bytes_of(99, nbytes * (size_t)size);
    const int32_t root = size - 1;
    CHECK(gg_comm_all_gather(comm, dst, src, nbytes) == GG_OK);
    for (int32_t from = 0; from < size; from++)
        check_bytes(dst + (size_t)from * nbytes, nbytes, from, 0);
    memset(dst, 0, nbytes * (size_t)size);
    for (int own = 0; own < 2; own++) { /* in place at the first block, then at this rank's */
        unsigned char *mine = dst + (own ? (size_t)rank : 0) * nbytes;
        memcpy(mine, src, nbytes);
        CHECK(gg_comm_all_gather(comm, dst, mine, nbytes) == GG_OK);
        for (int32_t from = 0; from < size; from++)
            check_bytes(dst + (size_t)from * nbytes, nbytes, from, 0);
        memset(dst, 0, nbytes * (size_t)size);
    }
    CHECK(gg_comm_gather(comm, rank == root ? dst : NULL, src, nbytes, root) == GG_OK);
    for (int32_t from = 0; rank == root && from < size; from++)
        check_bytes(dst + (size_t)from * nbytes, nbytes, from, 0);
    free(src);
    free(dst);
}

static void distributes(gg_comm *comm, int32_t rank, int32_t size, size_t nbytes)
{
    unsigned char *src = bytes_of(rank, nbytes * (size_t)size), *dst = bytes_of(99, nbytes);
    const int32_t root = size / 2;
    CHECK(gg_comm_broadcast(comm, dst, rank == root ? src : NULL, nbytes, root) == GG_OK);
    check_bytes(dst, nbytes, root, 0);
    CHECK(gg_comm_scatter(comm, dst, rank == root ? src : NULL, nbytes, root) == GG_OK);
    check_bytes(dst, nbytes, root, (size_t)rank * nbytes);
    free(src);
    free(dst);
}

static void exchanges(gg_comm *comm, int32_t rank, int32_t size, size_t nbytes)
{
    const size_t all = nbytes * (size_t)size;
    unsigned char *src = bytes_of(rank, all), *dst = bytes_of(99, all);
    CHECK(gg_comm_all_to_all(comm, dst, src, nbytes) == GG_OK);
    CHECK(gg_comm_all_to_all(comm, src, src, nbytes) == GG_OK);
    for (int32_t from = 0; from < size; from++)
        check_bytes(dst + (size_t)from * nbytes, nbytes, from, (size_t)rank * nbytes);
    CHECK(memcmp(src, dst, all) == 0);
    free(src);
    free(dst);
}

static void moves(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    CHECK(gg_comm_rank(comm) == rank && gg_comm_size(comm) == size);
    for (size_t i = 0; i + (size > 3) < BYTE_COUNTS; i++) { /* the largest takes long with 8 */
        gathers(comm, rank, size, byte_counts[i]);
        distributes(comm, rank, size, byte_counts[i]);
        exchanges(comm, rank, size, byte_counts[i] / (size_t)size);
        CHECK(gg_comm_barrier(comm) == GG_OK);
    }
    gg_comm_release(comm);
}
static void moves_with_1_to_8(void)
{
    static const int32_t sizes[] = {1, 2, 3, 8};
    for (int i = 0; i < 4; i++)
        run_ranks(moves, sizes[i]);
}
static void moves_arrive_with_1_to_8_ranks(void **state)
{
    (void)state;
    in_child(moves_with_1_to_8);
}

static void in_place(struct board *board, int32_t rank, int32_t size)
{
    const size_t nbytes = 300000;
    gg_comm *comm = rank_create(board, rank, size);
    unsigned char *data = bytes_of(99, nbytes * (size_t)size), *mine = data + (size_t)rank * nbytes;
    for (size_t i = 0; i < nbytes; i++)
        mine[i] = byte_of(rank, i);
    CHECK(gg_comm_all_gather(comm, data, mine, nbytes) == GG_OK);
    for (int32_t from = 0; from < size; from++)
        check_bytes(data + (size_t)from * nbytes, nbytes, from, 0);
    for (size_t i = 0; i < nbytes; i++)
        data[i] = byte_of(rank, i);
    CHECK(gg_comm_broadcast(comm, data, data, nbytes, 1) == GG_OK);
    check_bytes(data, nbytes, 1, 0);
    CHECK(gg_comm_all_gather(comm, data + 1, data, nbytes) == GG_ERR_INVALID_ARGUMENT);
    CHECK_HAS(error_message(), "overlap");
    gg_comm_release(comm);
    free(data);
}
static void in_place_with_3(void)
{
    run_ranks(in_place, 3);
}
static void operations_may_be_in_place_but_not_overlap_otherwise(void **state)
{
    (void)state;
    in_child(in_place_with_3);
}

/* ---- reductions ---- */

/* Small whole numbers, which every type represents; the same sum in any order. */
static double number_of(int32_t rank, size_t i)
{
    return (double)((i * 7 + (size_t)rank * 3) % 5);
}

static void sums(gg_comm *comm, int32_t rank, int32_t size, size_t count)
{
    double *src = malloc((count * (size_t)size + 1) * sizeof *src);
    double *dst = calloc(count + 1, sizeof *dst);
    CHECK(src && dst);
    for (size_t i = 0; i < count * (size_t)size; i++)
        src[i] = number_of(rank, i);
    CHECK(gg_comm_reduce_scatter(comm, dst, src, count, GG_COMM_FLOAT64, GG_COMM_SUM) == GG_OK);
    for (size_t i = 0; i < count; i++) {
        double sum = 0;
        for (int32_t from = 0; from < size; from++)
            sum += number_of(from, (size_t)rank * count + i);
        CHECK(dst[i] == sum);
    }
    CHECK(gg_comm_reduce(comm, dst, src, count, GG_COMM_FLOAT64, GG_COMM_MAX, size - 1) == GG_OK);
    CHECK(gg_comm_all_reduce(comm, src, src, count, GG_COMM_FLOAT64, GG_COMM_SUM) == GG_OK);
    for (size_t i = 0; i < count; i++) {
        double sum = 0, most = 0;
        for (int32_t from = 0; from < size; from++) {
            sum += number_of(from, i);
            most = number_of(from, i) > most ? number_of(from, i) : most;
        }
        CHECK(src[i] == sum);
        CHECK(rank != size - 1 || dst[i] == most);
    }
    free(src);
    free(dst);
}

static void reductions(struct board *board, int32_t rank, int32_t size)
{
    static const size_t counts[] = {0, 1, 5, 2048, 2049, 40003};
    gg_comm *comm = rank_create(board, rank, size);
    for (size_t i = 0; i + (size > 3) < sizeof counts / sizeof counts[0]; i++)
        sums(comm, rank, size, counts[i]);
    gg_comm_release(comm);
}
static void reductions_with_1_to_8(void)
{
    static const int32_t sizes[] = {1, 2, 3, 8};
    for (int i = 0; i < 4; i++)
        run_ranks(reductions, sizes[i]);
}
static void reductions_are_right_with_1_to_8_ranks(void **state)
{
    (void)state;
    in_child(reductions_with_1_to_8);
}

/* Integers wrap around. */
static void put_number(char *at, gg_comm_type type, size_t size, int64_t value)
{
    const float single = (float)value;
    const double real = (double)value;
    const void *from = &value;
    if (type == GG_COMM_FLOAT32)
        from = &single;
    else if (type == GG_COMM_FLOAT64)
        from = &real;
    memcpy(at, from, size);
}

static void sums_of(gg_comm *comm, gg_comm_type type, size_t size, size_t count)
{
    char mine[64 * 8], sum[64 * 8];
    const int64_t rank = gg_comm_rank(comm), ranks = gg_comm_size(comm);
    for (size_t i = 0; i < count; i++) {
        put_number(mine + i * size, type, size, (int64_t)i * 1000 + rank * 77);
        put_number(sum + i * size, type, size,
                   (int64_t)i * 1000 * ranks + ranks * (ranks - 1) / 2 * 77);
    }
    CHECK(gg_comm_all_reduce(comm, mine, mine, count, type, GG_COMM_SUM) == GG_OK);
    CHECK(!memcmp(mine, sum, count * size));
}

static void sums_of_all_lengths(struct board *board, int32_t rank, int32_t size)
{
    static const struct {
        gg_comm_type type;
        size_t size;
    } types[] = {{GG_COMM_INT8, 1},   {GG_COMM_UINT8, 1},  {GG_COMM_INT16, 2},
                 {GG_COMM_UINT16, 2}, {GG_COMM_INT32, 4},  {GG_COMM_INT64, 8},
                 {GG_COMM_UINT32, 4}, {GG_COMM_UINT64, 8}, {GG_COMM_FLOAT32, 4},
                 {GG_COMM_FLOAT64, 8}};
    gg_comm *comm = rank_create(board, rank, size);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        for (size_t count = 1; count < 64; count += 1 + count / 20)
            sums_of(comm, types[i].type, types[i].size, count);
    gg_comm_release(comm);
}
static void sums_of_all_lengths_with_3(void)
{
    run_ranks(sums_of_all_lengths, 3);
}
static void sums_are_right_for_each_type_and_length(void **state)
{
    (void)state;
    in_child(sums_of_all_lengths_with_3);
}

/* Numbers of very different size: their sum depends on the order. */
static void same_bits(struct board *board, int32_t rank, int32_t size)
{
    enum { COUNT = 50000 };
    gg_comm *comm = rank_create(board, rank, size);
    float *data = malloc(COUNT * sizeof *data);
    float *all = malloc((size_t)size * COUNT * sizeof *all);
    CHECK(data && all);
    for (size_t i = 0; i < COUNT; i++)
        data[i] = (float)(i % 977 + 1) * (rank == 1 ? -1e7f : 0.37f * (float)(rank + 1));
    CHECK(gg_comm_all_reduce(comm, data, data, COUNT, GG_COMM_FLOAT32, GG_COMM_SUM) == GG_OK);
    CHECK(gg_comm_all_gather(comm, all, data, COUNT * sizeof *data) == GG_OK);
    for (int32_t from = 0; from < size; from++)
        CHECK(memcmp(all + (size_t)from * COUNT, data, COUNT * sizeof *data) == 0);
    gg_comm_release(comm);
    free(data);
    free(all);
}
static void same_bits_with_4(void)
{
    run_ranks(same_bits, 4);
}
static void all_ranks_get_the_same_bits(void **state)
{
    (void)state;
    in_child(same_bits_with_4);
}

/* ---- arithmetic ---- */

static void halves_survive(gg_comm_type type, uint16_t nan_above)
{
    static uint16_t values[65536], zeros[65536], out[65536];
    const char *const in[] = {(const char *)values, (const char *)zeros};
    for (uint32_t i = 0; i < 65536; i++)
        values[i] = (uint16_t)i;
    memset(zeros, 0, sizeof zeros);
    ggi_comm_combine(out, in, 2, 65536, type, GG_COMM_SUM);
    for (uint32_t i = 0; i < 65536; i++) {
        if ((i & 0x7fff) > nan_above)
            CHECK((out[i] & 0x7fff) > nan_above);
        else
            CHECK(out[i] == i || i == 0x8000); /* -0 + 0 is 0 */
    }
}
static void halves(void)
{
    halves_survive(GG_COMM_FLOAT16, 0x7c00);
    halves_survive(GG_COMM_BFLOAT16, 0x7f80);
}
static void every_half_is_widened_and_narrowed_exactly(void **state)
{
    (void)state;
    in_child(halves);
}

static uint16_t half_sum(gg_comm_type type, uint16_t a, uint16_t b, gg_comm_reduction reduction)
{
    uint16_t out = 0;
    const char *const in[] = {(const char *)&a, (const char *)&b};
    ggi_comm_combine(&out, in, 2, 1, (uint32_t)type, (uint32_t)reduction);
    return out;
}
static void rounding(void)
{
    CHECK(half_sum(GG_COMM_FLOAT16, 0x3c00, 0x1000, GG_COMM_SUM) ==
          0x3c00); /* 1 + 2^-11: a tie, to even */
    CHECK(half_sum(GG_COMM_FLOAT16, 0x3c01, 0x1000, GG_COMM_SUM) == 0x3c02);
    CHECK(half_sum(GG_COMM_FLOAT16, 0x7bff, 0x7bff, GG_COMM_SUM) == 0x7c00);  /* more than 65504 */
    CHECK(half_sum(GG_COMM_FLOAT16, 0x0001, 0x3800, GG_COMM_PROD) == 0x0000); /* half the smallest */
    CHECK(half_sum(GG_COMM_FLOAT16, 0x0003, 0x3800, GG_COMM_PROD) == 0x0002);
    CHECK(half_sum(GG_COMM_BFLOAT16, 0x3f80, 0x3b80, GG_COMM_SUM) == 0x3f80); /* 1 + 2^-8 */
    CHECK(half_sum(GG_COMM_BFLOAT16, 0x7f7f, 0x7f7f, GG_COMM_SUM) == 0x7f80);
}
static void halves_are_rounded_to_the_nearest_or_to_even(void **state)
{
    (void)state;
    in_child(rounding);
}

static void refused_types(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    double value[2] = {0};
    CHECK(gg_comm_all_reduce(comm, value, value, 1, GG_COMM_COMPLEX128, GG_COMM_MAX) ==
          GG_ERR_INVALID_ARGUMENT);
    CHECK_HAS(error_message(), "complex");
    CHECK(gg_comm_all_reduce(comm, value, value, 1, (gg_comm_type)99, GG_COMM_SUM) ==
          GG_ERR_INVALID_ARGUMENT);
    CHECK(gg_comm_broadcast(comm, value, value, 8, size) == GG_ERR_INVALID_ARGUMENT);
    CHECK_HAS(error_message(), "root is 2, expected a rank: 0 to 1");
    CHECK(gg_comm_send(comm, value, 8, rank) == GG_ERR_INVALID_ARGUMENT);
    CHECK(gg_comm_barrier(comm) == GG_OK);
    gg_comm_release(comm);
}
static void refused_types_with_2(void)
{
    run_ranks(refused_types, 2);
}
static void wrong_arguments_are_refused_before_the_other_ranks_are_needed(void **state)
{
    (void)state;
    in_child(refused_types_with_2);
}

#define REFUSES_NULL(name, call)                               \
    do {                                                       \
        CHECK((call) == GG_ERR_INVALID_ARGUMENT);              \
        CHECK_HAS(error_message(), name " is NULL, expected"); \
    } while (0)
static void moves_of_null(gg_comm *comm, void *to, const void *from)
{
    REFUSES_NULL("all_gather: src", gg_comm_all_gather(comm, to, NULL, 4));
    REFUSES_NULL("all_gather: dst", gg_comm_all_gather(comm, NULL, from, 4));
    REFUSES_NULL("all_to_all: dst", gg_comm_all_to_all(comm, NULL, from, 4));
    REFUSES_NULL("gather: src", gg_comm_gather(comm, to, NULL, 4, 1));
    REFUSES_NULL("scatter: dst", gg_comm_scatter(comm, NULL, from, 4, 1));
    REFUSES_NULL("broadcast: dst", gg_comm_broadcast(comm, NULL, from, 4, 1));
    REFUSES_NULL("send: src", gg_comm_send(comm, NULL, 4, 1 - comm->rank));
    REFUSES_NULL("recv: dst", gg_comm_recv(comm, NULL, 4, 1 - comm->rank));
    REFUSES_NULL("send_recv: src", gg_comm_send_recv(comm, NULL, 4, 0, to, 4, 0));
    REFUSES_NULL("send_recv: dst", gg_comm_send_recv(comm, from, 4, 0, NULL, 4, 0));
}
static void reductions_of_null(gg_comm *comm, void *to, const void *from)
{
    const gg_comm_type type = GG_COMM_INT32;
    REFUSES_NULL("all_reduce: src", gg_comm_all_reduce(comm, to, NULL, 1, type, GG_COMM_SUM));
    REFUSES_NULL("reduce: src", gg_comm_reduce(comm, to, NULL, 1, type, GG_COMM_SUM, 1));
    REFUSES_NULL("reduce_scatter: dst",
                 gg_comm_reduce_scatter(comm, NULL, from, 1, type, GG_COMM_SUM));
}
static void null_pointers(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    int32_t from[2] = {rank, rank}, to[2] = {7, 7};
    if (rank == 0) /* rank 1 is in the barrier */
        moves_of_null(comm, to, from);
    if (rank == 0)
        reductions_of_null(comm, to, from);
    CHECK(gg_comm_barrier(comm) == GG_OK);
    if (rank == 1)
        REFUSES_NULL("broadcast: src", gg_comm_broadcast(comm, to, NULL, 4, 1));
    if (rank == 1)
        REFUSES_NULL("gather: dst", gg_comm_gather(comm, NULL, from, 4, 1));
    CHECK(gg_comm_all_gather(comm, NULL, NULL, 0) == GG_OK);
    CHECK(gg_comm_scatter(comm, to, rank ? from : NULL, 4, 1) == GG_OK);
    CHECK(gg_comm_reduce(comm, rank ? to : NULL, from, 1, GG_COMM_INT32, GG_COMM_SUM, 1) == GG_OK);
    CHECK(to[0] == 1 && to[1] == 7);
    gg_comm_release(comm);
}
static void null_pointers_of_2(void)
{
    run_ranks(null_pointers, 2);
}
static void a_null_pointer_is_refused_where_it_is_used(void **state)
{
    (void)state;
    in_child(null_pointers_of_2);
}

/* ---- messages ---- */

static void shift(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    const int32_t left = (rank + size - 1) % size, right = (rank + 1) % size;
    for (size_t i = 0; i < BYTE_COUNTS; i++) {
        unsigned char *src = bytes_of(rank, byte_counts[i]), *dst = bytes_of(99, byte_counts[i]);
        CHECK(gg_comm_send_recv(comm, src, byte_counts[i], right, dst, byte_counts[i], left) ==
              GG_OK);
        check_bytes(dst, byte_counts[i], left, 0);
        free(src);
        free(dst);
    }
    gg_comm_release(comm);
}
static void shifts(void)
{
    static const int32_t sizes[] = {1, 2, 5};
    for (int i = 0; i < 3; i++)
        run_ranks(shift, sizes[i]);
}
static void a_ring_can_be_shifted(void **state)
{
    (void)state;
    in_child(shifts);
}

/* Rank 0 gets the messages of all in the order in which it asks for them. */
static void collect(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size);
    const size_t nbytes = 700000;
    unsigned char *data = bytes_of(rank, nbytes);
    for (int32_t from = size - 1; from > 0 && rank == 0; from--) {
        CHECK(gg_comm_recv(comm, data, nbytes, from) == GG_OK);
        check_bytes(data, nbytes, from, 0);
    }
    if (rank)
        CHECK(gg_comm_send(comm, data, nbytes, 0) == GG_OK);
    gg_comm_release(comm);
    free(data);
}
static void collect_with_4(void)
{
    run_ranks(collect, 4);
}
static void messages_of_several_ranks_wait_until_they_are_received(void **state)
{
    (void)state;
    in_child(collect_with_4);
}

/* ---- one after the other ---- */

static void many(struct board *board, int32_t rank, int32_t size)
{
    for (int i = 0; i < 8; i++) {
        gg_comm *comm = rank_create(board, rank, size);
        CHECK(gg_comm_barrier(comm) == GG_OK);
        gg_comm_release(comm);
    }
}
static void many_with_3(void)
{
    run_ranks(many, 3);
}
static void a_port_can_be_used_again_at_once(void **state)
{
    (void)state;
    in_child(many_with_3);
}

static void types_differ(struct board *board, int32_t rank, int32_t size)
{
    static const char *const names[] = {"<f4", "<i4", ""};
    int32_t data = rank;
    gg_comm *comm = rank_create(board, rank, size);
    CHECK(gg_comm_set_type_name(comm, "a name that is far too long") == GG_ERR_INVALID_ARGUMENT);
    CHECK(gg_comm_set_type_name(comm, names[rank]) == GG_OK);
    CHECK(gg_comm_broadcast(comm, &data, &data, 4, 1) == GG_ERR_INVALID_ARGUMENT && data == rank);
    CHECK_HAS(error_message(), "rank 0 calls broadcast of 4 bytes of '<f4'");
    CHECK_HAS(error_message(), "rank 1 calls broadcast of 4 bytes of '<i4'");
    gg_status status = rank == 1   ? gg_comm_send(comm, &data, 4, 0)
                       : rank == 0 ? gg_comm_recv(comm, &data, 4, 1)
                                   : GG_ERR_INVALID_ARGUMENT;
    CHECK(status == GG_ERR_INVALID_ARGUMENT && data == rank);
    if (rank == 0)
        CHECK_HAS(error_message(), "rank 1 sends elements of '<i4', but this rank expects '<f4'");
    if (rank == 1)
        CHECK(gg_comm_set_type_name(comm, "<f4") == GG_OK);
    CHECK(gg_comm_broadcast(comm, &data, &data, 4, 1) == GG_OK && data == 1);
    gg_comm_release(comm);
}
static void types_differ_with_3(void)
{
    run_ranks(types_differ, 3);
}
static void data_of_another_type_are_refused_and_a_rank_without_one_agrees(void **state)
{
    (void)state;
    in_child(types_differ_with_3);
}

static void types_differ_from_rank_1_on(struct board *board, int32_t rank, int32_t size)
{
    static const char *const names[] = {"", "<f4", "<i4"};
    int32_t data = rank;
    gg_comm *comm = rank_create(board, rank, size);
    CHECK(gg_comm_set_type_name(comm, names[rank]) == GG_OK);
    CHECK(gg_comm_broadcast(comm, &data, &data, 4, 0) == GG_ERR_INVALID_ARGUMENT && data == rank);
    CHECK_HAS(error_message(), "rank 1 calls broadcast of 4 bytes of '<f4'");
    CHECK_HAS(error_message(), "rank 2 calls broadcast of 4 bytes of '<i4'");
    gg_comm_release(comm);
}
static void types_differ_from_rank_1_on_with_3(void)
{
    run_ranks(types_differ_from_rank_1_on, 3);
}
static void types_are_compared_where_rank_0_has_none(void **state)
{
    (void)state;
    in_child(types_differ_from_rank_1_on_with_3);
}

/* ---- parts ---- */

static void is_split(struct board *board, int32_t rank, int32_t size)
{
    gg_comm *comm = rank_create(board, rank, size), *part = NULL;
    CHECK(gg_comm_split(comm, -2, 0, &part) == GG_ERR_INVALID_ARGUMENT);
    check_split_of_six(comm, rank);
    CHECK(gg_comm_barrier(comm) == GG_OK);
    gg_comm_release(comm);
}
static void six_are_split(void)
{
    run_ranks(is_split, 6);
}
static void ranks_of_a_color_get_a_communicator_in_the_order_of_their_keys(void **state)
{
    (void)state;
    in_child(six_are_split);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ranks_of_a_color_get_a_communicator_in_the_order_of_their_keys),
    cmocka_unit_test(types_are_compared_where_rank_0_has_none),
    cmocka_unit_test(data_of_another_type_are_refused_and_a_rank_without_one_agrees),
    cmocka_unit_test(moves_arrive_with_1_to_8_ranks),
    cmocka_unit_test(operations_may_be_in_place_but_not_overlap_otherwise),
    cmocka_unit_test(reductions_are_right_with_1_to_8_ranks),
    cmocka_unit_test(sums_are_right_for_each_type_and_length),
    cmocka_unit_test(all_ranks_get_the_same_bits),
    cmocka_unit_test(every_half_is_widened_and_narrowed_exactly),
    cmocka_unit_test(halves_are_rounded_to_the_nearest_or_to_even),
    cmocka_unit_test(wrong_arguments_are_refused_before_the_other_ranks_are_needed),
    cmocka_unit_test(a_null_pointer_is_refused_where_it_is_used),
    cmocka_unit_test(a_ring_can_be_shifted),
    cmocka_unit_test(messages_of_several_ranks_wait_until_they_are_received),
    cmocka_unit_test(a_port_can_be_used_again_at_once),
};
SUITE(comm, tests);
