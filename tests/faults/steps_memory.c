/* steps_memory.c: device and pinned memory, fills of every size, copies by every path. */
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

static int alloc_second(struct program *p, union output *out)
{
    return alloc(p, out, GG_MEMORY_DEVICE, LARGE, &p->second_block);
}

static int alloc_pinned(struct program *p, union output *out)
{
    return alloc(p, out, GG_MEMORY_PINNED, LARGE, &p->pinned);
}

static int alloc_pinned_second(struct program *p, union output *out)
{
    return alloc(p, out, GG_MEMORY_PINNED, SMALL, &p->pinned_second);
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

static int query_stats(struct program *p, union output *out)
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
    return fill(p->second_block, NULL, "z", 1);
}

static int fill_pinned(struct program *p, union output *out)
{
    (void)out;
    return fill(p->pinned, NULL, "p", 1);
}

/* ---- copies ---- */

static struct gg_copy_operand device_end(struct program *p, gg_memory *memory)
{
    p->given++;
    return (struct gg_copy_operand){.memory = memory, .release = release_owner, .owner = p};
}

static struct gg_copy_operand host_operand(struct program *p, void *host)
{
    p->given++;
    return (struct gg_copy_operand){.host = host, .release = release_owner, .owner = p};
}

static int up(struct program *p, gg_memory *memory, size_t nbytes, gg_stream *stream, uint32_t flags)
{
    if (!memory)
        return SKIPPED;
    struct gg_copy_operand dst = device_end(p, memory), src = host_operand(p, p->host);
    return (int)gg_copy(&dst, &src, nbytes, stream, flags);
}

static int down(struct program *p, gg_memory *memory, size_t nbytes, gg_stream *stream,
                uint32_t flags)
{
    if (!memory)
        return SKIPPED;
    struct gg_copy_operand dst = host_operand(p, p->host), src = device_end(p, memory);
    return (int)gg_copy(&dst, &src, nbytes, stream, flags);
}

static int across(struct program *p, gg_memory *to, gg_memory *from, size_t nbytes,
                  gg_stream *stream, uint32_t flags)
{
    if (!to || !from)
        return SKIPPED;
    struct gg_copy_operand dst = device_end(p, to), src = device_end(p, from);
    return (int)gg_copy(&dst, &src, nbytes, stream, flags);
}

/* Small uploads go through the ring; down_small checks the bytes. */
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
    return status ? status : check_bytes(p, p->host, SMALL, 12, "a small copy has wrong bytes");
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
    return status ? status : check_bytes(p, p->host, 8, 13, "a word has wrong bytes");
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
    memset(p->host, 99, LARGE); /* the call has returned, so the buffer is free for use */
    return status;
}

static int down_pageable(struct program *p, union output *out)
{
    (void)out;
    memset(p->host, 0, LARGE);
    const int status = down(p, p->large, LARGE, NULL, 0);
    return status ? status : check_bytes(p, p->host, LARGE, 14, "a large copy has wrong bytes");
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
    return across(p, p->second_block, p->large, LARGE, NULL, 0);
}

static int down_pinned_asynchronously(struct program *p, union output *out)
{
    (void)out;
    return p->first ? across(p, p->pinned_second, p->second_block, SMALL, p->first, GG_COPY_ASYNC)
                    : SKIPPED;
}

static int between_host_blocks(struct program *p, union output *out)
{
    (void)out;
    return across(p, p->pinned_second, p->pinned, SMALL, NULL, 0);
}

static int down_second(struct program *p, union output *out)
{
    (void)out;
    memset(p->host, 0, LARGE);
    const int status = down(p, p->second_block, LARGE, NULL, 0);
    return status ? status : check_bytes(p, p->host, LARGE, 'p', "copied bytes are wrong");
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
    {"allocate another large block", alloc_second, GG_OK},
    {"allocate pinned memory", alloc_pinned, GG_OK},
    {"allocate a small pinned block", alloc_pinned_second, GG_OK},
    {"allocate 0 bytes", alloc_nothing, GG_OK},
    {"allocate too much", alloc_too_much, GG_ERR_OUT_OF_MEMORY},
    {"allocate and release", alloc_and_release, GG_OK},
    {"memory stats", query_stats, GG_OK},
    {"fill by 1 byte", fill_by_1, GG_OK},
    {"fill by 2 bytes", fill_by_2, GG_OK},
    {"fill by 4 bytes", fill_by_4, GG_OK},
    {"fill by 7 bytes", fill_by_doubling, GG_OK},
    {"fill without a stream", fill_without_a_stream, GG_OK},
    {"fill pinned memory", fill_pinned, GG_OK},
    {"upload a small block on a stream", up_small, GG_OK},
    {"upload a small block", up_small_implicitly, GG_OK},
    {"download a small block", down_small, GG_OK},
    {"upload 4 bytes", up_word_of_4, GG_OK},
    {"upload 8 bytes", up_word_of_8, GG_OK},
    {"download 8 bytes", down_word, GG_OK},
    {"upload pageable memory", up_pageable, GG_OK},
    {"download pageable memory", down_pageable, GG_OK},
    {"upload pageable memory again", up_pageable, GG_OK},
    {"upload pageable memory asynchronously", up_pageable_asynchronously, GG_OK},
    {"download the asynchronous upload", down_pageable, GG_OK},
    {"upload pinned memory", up_pinned, GG_OK},
    {"upload pinned memory asynchronously", up_pinned_asynchronously, GG_OK},
    {"copy between blocks", between_blocks, GG_OK},
    {"download to pinned memory", down_pinned_asynchronously, GG_OK},
    {"copy between host blocks", between_host_blocks, GG_OK},
    {"download the copy", down_second, GG_OK},
    {"copy 0 bytes", copy_nothing, GG_OK},
    {"copy too much", copy_too_much, GG_ERR_INVALID_ARGUMENT},
};
const struct steps memory_steps = {steps, sizeof steps / sizeof steps[0]};
