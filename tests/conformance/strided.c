/* strided.c: see strided.h. */
#include "strided.h"

#include <stdlib.h>
#include <string.h>

static bool next(const struct request *r, size_t *index)
{
    for (int i = r->ndim; i-- > 0; index[i] = 0)
        if (++index[i] < r->shape[i])
            return true;
    return false;
}

static size_t place(const struct request *r, const struct layout *layout, const size_t *index)
{
    ptrdiff_t at = (ptrdiff_t)layout->offset;
    for (int i = 0; i < r->ndim; i++)
        at += (ptrdiff_t)index[i] * layout->strides[i];
    return (size_t)at;
}

void reference(const struct request *r, unsigned char *dst, const unsigned char *src)
{
    size_t index[MOST] = {0};
    for (int i = 0; i < r->ndim; i++)
        if (!r->shape[i])
            return;
    do
        memcpy(dst + place(r, &r->dst, index), src + place(r, &r->src, index), r->itemsize);
    while (next(r, index));
}

void fill_pattern(unsigned char *bytes, size_t nbytes, unsigned seed)
{
    for (size_t i = 0; i < nbytes; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 251 + seed);
}

gg_status run(const struct request *r, struct gg_copy_operand dst, struct gg_copy_operand src,
              gg_stream *stream, uint32_t flags)
{
    dst.offset += r->dst.offset;
    src.offset += r->src.offset;
    return gg_copy_nd(&dst, r->dst.strides, &src, r->src.strides, r->ndim, r->shape, r->itemsize,
                      stream, flags);
}

struct bench new_bench(struct fixture *f, size_t room)
{
    struct bench b = {f, room, malloc(room), malloc(room), malloc(room), NULL, NULL, NULL, NULL};
    fill_pattern(b.from, room, 1);
    b.device_src = new_memory_with(f, b.from, room);
    b.device_dst = new_memory(f, room);
    b.pinned_src = new_pinned(f, room, 0);
    b.pinned_dst = new_pinned(f, room, 0);
    memcpy(gg_memory_pointer(b.pinned_src), b.from, room);
    return b;
}

void free_bench(struct bench *b)
{
    free(b->from);
    free(b->to);
    free(b->expected);
}

static struct gg_copy_operand source(const struct bench *b, enum pair pair)
{
    if (pair == UP)
        return host_at(b->from);
    return at(pair == FROM_PINNED || pair == BETWEEN_PINNED ? b->pinned_src : b->device_src, 0);
}

static struct gg_copy_operand destination(const struct bench *b, enum pair pair)
{
    if (pair == DOWN)
        return host_at(b->to);
    return at(pair == TO_PINNED || pair == BETWEEN_PINNED ? b->pinned_dst : b->device_dst, 0);
}

/* The bytes between the elements must not change either. */
void check(struct bench *b, const struct request *r, enum pair pair, uint32_t flags)
{
    struct gg_copy_operand dst = destination(b, pair);
    fill_pattern(b->to, b->room, 77);
    memcpy(b->expected, b->to, b->room);
    reference(r, b->expected, b->from);
    if (dst.memory)
        assert_int_equal(copy(dst, host_at(b->to), b->room, b->f->stream, 0), GG_OK);
    assert_int_equal(run(r, dst, source(b, pair), b->f->stream, flags), GG_OK);
    if (dst.memory)
        read_back(b->f, dst.memory, b->to, b->room);
    finish(b->f->stream);
    assert_memory_equal(b->to, b->expected, b->room);
}

void check_all(struct fixture *f, const struct request *r, size_t room)
{
    struct bench b = new_bench(f, room);
    for (int pair = 0; pair < PAIRS; pair++) {
        check(&b, r, (enum pair)pair, 0);
        check(&b, r, (enum pair)pair, GG_COPY_ASYNC);
    }
    free_bench(&b);
}
