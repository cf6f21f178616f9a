/* steps_memory.c: memory of both kinds, fills of every size, copies by every way. */
#include "program.h"

#include <string.h>

static int alloc(struct program *p, union output *out, enum gg_memory_kind kind, size_t nbytes,
                 gg_memory **memory)
{
    if (!p->device)
        return SKIPPED;
    const gg_status status = gg_memory_alloc(p->device, kind, nbytes, NULL, &out->memory);
    if (!status)
        *memory = out->memory;
    return (int)status;
}

static int alloc_small(struct program *p, union output *out)
{
    return alloc(p, out, GG_MEMORY_DEVICE, SMALL, &p->small);
}

static int alloc_large(struct program *p, union output *out)
{
    return alloc(p, out, GG_MEMORY_DEVICE, LARGE, &p->large);
}

static int alloc_twin(struct program *p, union output *out)
{
    return alloc(p, out, GG_MEMORY_DEVICE, LARGE, &p->twin);
}

static int alloc_pinned(struct program *p, union output *out)
{
    return alloc(p, out, GG_MEMORY_PINNED, LARGE, &p->pinned);
}

static int alloc_pinned_twin(struct program *p, union output *out)
{
    return alloc(p, out, GG_MEMORY_PINNED, SMALL, &p->pinned_twin);
}

static int alloc_nothing(struct program *p, union output *out)
{
    return alloc(p, out, GG_MEMORY_DEVICE, 0, &p->empty);
}

static int alloc_too_much(struct program *p, union output *out)
{
    gg_memory *none = NULL;
    return alloc(p, out, GG_MEMORY_DEVICE, (size_t)1 << 46, &none);
}

static int alloc_and_release(struct program *p, union output *out)
{
    gg_memory *memory = NULL;
    const int status = alloc(p, out, GG_MEMORY_DEVICE, SMALL, &memory);
    gg_memory_release(memory);
    return status;
}

static int ask_stats(struct program *p, union output *out)
{
    if (!p->device)
        return SKIPPED;
    out->stats.struct_size = sizeof out->stats;
    p->sized = true;
    return (int)gg_device_memory_stats(p->device, &out->stats);
}

/* ---- fills ---- */

static int fill(gg_memory *memory, gg_stream *stream, const char *pattern, size_t size)
{
    if (!memory)
        return SKIPPED;
    return (int)gg_fill(memory, 0, pattern, size, gg_memory_size(memory) / size, stream);
}

static int fill_by_1(struct program *p, union output *out)
{
    (void)out;
    return p->first ? fill(p->large, p->first, "a", 1) : SKIPPED;
}

static int fill_by_2(struct program *p, union output *out)
{
    (void)out;
    return p->first ? fill(p->large, p->first, "ab", 2) : SKIPPED;
}

static int fill_by_4(struct program *p, union output *out)
{
    (void)out;
    return p->first ? fill(p->large, p->first, "abcd", 4) : SKIPPED;
}

static int fill_by_doubling(struct program *p, union output *out)
{
    (void)out;
    return p->first ? fill(p->large, p->first, "abcdefg", 7) : SKIPPED;
}

static int fill_without_a_stream(struct program *p, union output *out)
{
    (void)out;
    return fill(p->twin, NULL, "z", 1);
}

static int fill_pinned(struct program *p, union output *out)
{
    (void)out;
    return fill(p->pinned, NULL, "p", 1);
}

/* ---- copies ---- */

static struct gg_end device_end(struct program *p, gg_memory *memory)
{
    p->given++;
    return (struct gg_end){.memory = memory, .release = release_owner, .owner = p};
}

static struct gg_end host_end(struct program *p, void *host)
{
    p->given++;
    return (struct gg_end){.host = host, .release = release_owner, .owner = p};
}

static int up(struct program *p, gg_memory *memory, size_t nbytes, gg_stream *stream, uint32_t flags)
{
    if (!memory)
        return SKIPPED;
    struct gg_end dst = device_end(p, memory), src = host_end(p, p->host);
    return (int)gg_copy(&dst, &src, nbytes, stream, flags);
}

static int down(struct program *p, gg_memory *memory, size_t nbytes, gg_stream *stream,
                uint32_t flags)
{
    if (!memory)
        return SKIPPED;
    struct gg_end dst = host_end(p, p->host), src = device_end(p, memory);
    return (int)gg_copy(&dst, &src, nbytes, stream, flags);
}

static int across(struct program *p, gg_memory *to, gg_memory *from, size_t nbytes,
                  gg_stream *stream, uint32_t flags)
{
    if (!to || !from)
        return SKIPPED;
    struct gg_end dst = device_end(p, to), src = device_end(p, from);
    return (int)gg_copy(&dst, &src, nbytes, stream, flags);
}

/* Through the ring, and back: the bytes must have made the way. */
static int up_small(struct program *p, union output *out)
{
    (void)out;
    memset(p->host, 11, SMALL);
    return p->first ? up(p, p->small, SMALL, p->first, 0) : SKIPPED;
}

static int up_small_implicitly(struct program *p, union output *out)
{
    (void)out;
    memset(p->host, 12, SMALL);
    return up(p, p->small, SMALL, NULL, 0);
}

static int down_small(struct program *p, union output *out)
{
    (void)out;
    memset(p->host, 0, SMALL);
    const int status = down(p, p->small, SMALL, NULL, 0);
    return status ? status : check_bytes(p, p->host, SMALL, 12, "a small copy lost its bytes");
}

static int up_word_of_4(struct program *p, union output *out)
{
    (void)out;
    memset(p->host, 13, 8);
    return up(p, p->small, 4, NULL, 0);
}

static int up_word_of_8(struct program *p, union output *out)
{
    (void)out;
    return up(p, p->small, 8, NULL, 0);
}

static int down_word(struct program *p, union output *out)
{
    (void)out;
    memset(p->host, 0, 8);
    const int status = down(p, p->small, 8, NULL, 0);
    return status ? status : check_bytes(p, p->host, 8, 13, "a word lost its bytes");
}

static int up_pageable(struct program *p, union output *out)
{
    (void)out;
    memset(p->host, 14, LARGE);
    return up(p, p->large, LARGE, NULL, 0);
}

static int up_pageable_asynchronously(struct program *p, union output *out)
{
    (void)out;
    if (!p->first)
        return SKIPPED;
    const int status = up(p, p->large, LARGE, p->first, GG_COPY_ASYNC);
    memset(p->host, 99, LARGE); /* it is ours again */
    return status;
}

static int down_pageable(struct program *p, union output *out)
{
    (void)out;
    memset(p->host, 0, LARGE);
    const int status = down(p, p->large, LARGE, NULL, 0);
    return status ? status : check_bytes(p, p->host, LARGE, 14, "a large copy lost its bytes");
}

static int up_pinned(struct program *p, union output *out)
{
    (void)out;
    return across(p, p->large, p->pinned, LARGE, NULL, 0);
}

static int up_pinned_asynchronously(struct program *p, union output *out)
{
    (void)out;
    return p->second ? across(p, p->large, p->pinned, LARGE, p->second,
                              GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC)
                     : SKIPPED;
}

static int between_blocks(struct program *p, union output *out)
{
    (void)out;
    return across(p, p->twin, p->large, LARGE, NULL, 0);
}

static int down_pinned_asynchronously(struct program *p, union output *out)
{
    (void)out;
    return p->first ? across(p, p->pinned_twin, p->twin, SMALL, p->first, GG_COPY_ASYNC) : SKIPPED;
}

static int between_host_blocks(struct program *p, union output *out)
{
    (void)out;
    return across(p, p->pinned_twin, p->pinned, SMALL, NULL, 0);
}

static int down_twin(struct program *p, union output *out)
{
    (void)out;
    memset(p->host, 0, LARGE);
    const int status = down(p, p->twin, LARGE, NULL, 0);
    return status ? status : check_bytes(p, p->host, LARGE, 'p', "a copy of a copy lost its bytes");
}

static int copy_nothing(struct program *p, union output *out)
{
    (void)out;
    return up(p, p->empty, 0, NULL, 0);
}

static int copy_too_much(struct program *p, union output *out)
{
    (void)out;
    return up(p, p->small, LARGE, NULL, 0);
}

static const struct step steps[] = {
    {"allocate a small block", alloc_small, GG_OK},
    {"allocate a large block", alloc_large, GG_OK},
    {"allocate another", alloc_twin, GG_OK},
    {"allocate pinned memory", alloc_pinned, GG_OK},
    {"allocate a little pinned memory", alloc_pinned_twin, GG_OK},
    {"allocate nothing", alloc_nothing, GG_OK},
    {"allocate too much", alloc_too_much, GG_ERR_OUT_OF_MEMORY},
    {"allocate and release", alloc_and_release, GG_OK},
    {"memory stats", ask_stats, GG_OK},
    {"fill by 1 byte", fill_by_1, GG_OK},
    {"fill by 2 bytes", fill_by_2, GG_OK},
    {"fill by 4 bytes", fill_by_4, GG_OK},
    {"fill by 7 bytes", fill_by_doubling, GG_OK},
    {"fill without a stream", fill_without_a_stream, GG_OK},
    {"fill pinned memory", fill_pinned, GG_OK},
    {"copy up a little on a stream", up_small, GG_OK},
    {"copy up a little", up_small_implicitly, GG_OK},
    {"copy down a little", down_small, GG_OK},
    {"copy up 4 bytes", up_word_of_4, GG_OK},
    {"copy up 8 bytes", up_word_of_8, GG_OK},
    {"copy down 8 bytes", down_word, GG_OK},
    {"copy up pageable memory", up_pageable, GG_OK},
    {"copy down pageable memory", down_pageable, GG_OK},
    {"copy up pageable memory again", up_pageable, GG_OK},
    {"copy it up asynchronously", up_pageable_asynchronously, GG_OK},
    {"copy down what went up behind the stream", down_pageable, GG_OK},
    {"copy up pinned memory", up_pinned, GG_OK},
    {"copy it up asynchronously from pinned memory", up_pinned_asynchronously, GG_OK},
    {"copy between blocks", between_blocks, GG_OK},
    {"copy down to pinned memory", down_pinned_asynchronously, GG_OK},
    {"copy between host blocks", between_host_blocks, GG_OK},
    {"copy down the copy", down_twin, GG_OK},
    {"copy nothing", copy_nothing, GG_OK},
    {"copy too much", copy_too_much, GG_ERR_INVALID_ARGUMENT},
};
const struct steps memory_steps = {steps, sizeof steps / sizeof steps[0]};
