/* pool_pieces.c: how free blocks are added to the lists and taken. A larger free block is split if there is none of the right
 * size, and its pieces are merged again. Each call takes a bounded time, except ggi_pool_merge_idle. */
#include "memory/pool.h"
#include "memory/uses.h"

#include <stdlib.h>

#define PIECE_MIN ((size_t)64 << 10)
#define PIECE_PART 16 /* a rest that is a smaller part of its block is not split off */
#define LARGER_MOST \
    64 /* a request splits blocks of at most so many times its size: a small block in use keeps no huge one */

void ggi_block_change_stream(gg_memory *memory, gg_stream *stream)
{
    if (stream)
        ggi_stream_use_retain(stream);
    if (memory->alloc_stream)
        ggi_stream_use_release(memory->alloc_stream);
    memory->alloc_stream = stream;
    memory->release_ticket = 0;
}

/* ---- split ---- */

/* The handle of the rest, in no list yet; NULL without host memory. */
static gg_memory *piece_new(struct ggi_pool *pool, gg_memory *memory, size_t block_size)
{
    const size_t rest = memory->block_size - block_size;
    struct ggi_segment *segment = memory->segment ? memory->segment : malloc(sizeof *segment);
    gg_memory *piece = segment ? pool->handles->create(pool, (char *)memory->pointer + block_size,
                                                       rest, ggi_size_class_below(rest))
                               : NULL;
    if (!piece) {
        if (!memory->segment)
            free(segment);
        return NULL;
    }
    if (!memory->segment)
        *segment = (struct ggi_segment){memory->pointer, memory->block_size};
    memory->segment = piece->segment = segment;
    return piece;
}

void ggi_piece_split(struct ggi_pool *pool, struct ggi_bins *bins, gg_memory *memory,
                     size_t block_size)
{
    const size_t rest = memory->block_size - block_size;
    if (rest < PIECE_MIN || rest < memory->block_size / PIECE_PART)
        return;
    gg_memory *piece = piece_new(pool, memory, block_size);
    if (!piece)
        return;
    piece->left = memory;
    piece->right = memory->right;
    if (piece->right)
        piece->right->left = piece;
    memory->right = piece;
    memory->block_size = block_size;
    memory->size_class = ggi_size_class_below(block_size);
    if (bins->stream) { /* its work may still use the rest */
        ggi_block_set_stream(piece, memory->alloc_stream);
        piece->release_ticket = memory->release_ticket;
    }
    ggi_bins_push(pool, bins, piece);
}

/* The first class with blocks, from @p size_class on; GGI_CLASSES if there is none. */
static uint32_t bins_next_class(const struct ggi_bins *bins, uint32_t size_class)
{
    for (uint32_t word = size_class / 64; word < sizeof bins->filled / sizeof bins->filled[0];
         word++) {
        uint64_t bits = bins->filled[word];
        if (word == size_class / 64)
            bits &= ~UINT64_C(0) << size_class % 64;
        for (; bits; bits &= bits - 1) {
            const uint32_t found = word * 64 + (uint32_t)__builtin_ctzll(bits);
            if (!ggi_bin_is_empty(&bins->bin[found]))
                return found;
        }
    }
    return GGI_CLASSES;
}

static gg_memory *bin_smallest(struct ggi_bin *bin)
{
    gg_memory *best = ggi_free_memory(bin->blocks.next);
    struct ggi_free_link *link = best->free.next;
    for (int i = 1; i < GGI_EXAMINED && link != &bin->blocks; i++, link = link->next)
        if (ggi_free_memory(link)->block_size < best->block_size)
            best = ggi_free_memory(link);
    return best;
}

gg_memory *ggi_pool_pop_larger(struct ggi_pool *pool, gg_stream *stream, struct ggi_request request)
{
    struct ggi_bins *bins = stream ? stream->bins : &pool->any;
    if (!pool->splits || request.of_slab)
        return NULL;
    const uint32_t size_class = bins_next_class(bins, request.size_class + 1);
    gg_memory *memory = size_class < GGI_CLASSES ? bin_smallest(&bins->bin[size_class]) : NULL;
    if (!memory || memory->block_size / LARGER_MOST > request.block_size)
        return NULL;
    ggi_pool_unlist(pool, memory);
    ggi_piece_split(pool, bins, memory, request.block_size);
    return memory;
}

/* ---- merge ---- */

/* Whether a piece beside one of @p stream can be merged with it: it is free, and idle or used in the same order. */
static bool piece_joins(const gg_memory *piece, const gg_stream *stream)
{
    return piece && piece->free.next && (!piece->alloc_stream || piece->alloc_stream == stream);
}

/* Append the right one, whose handle is deleted. The recorded uses are by the stream itself, so that a later allocation on that
 * stream is behind them, and others wait for the ticket of the last release. */
static void piece_append(gg_memory *left, gg_memory *right)
{
    left->block_size += right->block_size;
    if (left->release_ticket < right->release_ticket)
        left->release_ticket = right->release_ticket;
    left->right = right->right;
    if (left->right)
        left->right->left = left;
    left->pool->handles->destroy(right);
}

/* Merge a piece that becomes free with the free ones beside it that may be used in the order of the same stream. Returns the
 * block that contains it, in no list. */
static gg_memory *piece_merge(struct ggi_pool *pool, gg_memory *piece)
{
    gg_stream *stream = piece->alloc_stream;
    gg_memory *left = piece->left, *right = piece->right;
    if (piece_joins(right, stream)) {
        ggi_pool_unlist(pool, right);
        piece_append(piece, right);
    }
    if (piece_joins(left, stream)) {
        ggi_pool_unlist(pool, left);
        ggi_memory_forget_uses(left);
        ggi_block_set_stream(left, stream);
        piece_append(left, piece);
        piece = left;
    }
    if (!piece->left && !piece->right) { /* a block of the driver again */
        free(piece->segment);
        piece->segment = NULL;
    }
    piece->size_class = ggi_size_class_below(piece->block_size);
    return piece;
}

/* ---- idle pieces of several streams ---- */

static void piece_set_idle(gg_memory *piece)
{
    ggi_memory_forget_uses(piece);
    ggi_block_set_stream(piece, NULL);
}

/* The blocks are taken off the bin, but not off the counts: a merge may take any of them. */
static void merge_idle_bin(struct ggi_pool *pool, struct ggi_bin *bin)
{
    struct ggi_free_link ring = {&ring, &ring};
    ggi_link_splice(&ring, &bin->blocks);
    while (ring.next != &ring) {
        gg_memory *memory = ggi_free_memory(ring.previous); /* so that the order stays */
        ggi_pool_unlist(pool, memory);
        if (memory->segment) {
            piece_set_idle(memory);
            memory = piece_merge(pool, memory);
        }
        ggi_bins_push(pool, &pool->any, memory);
    }
}

void ggi_pool_merge_idle(struct ggi_pool *pool)
{
    if (!pool->unmerged || !pool->splits)
        return;
    pool->unmerged = false;
    for (uint32_t i = GGI_SPLIT_SLAB_CLASSES - 1; i < GGI_CLASSES; i++)
        if (!ggi_bin_is_empty(&pool->any.bin[i]))
            merge_idle_bin(pool, &pool->any.bin[i]);
}

/* ---- blocks added and taken ---- */

/* A stream whose bins were released was idle, and has no list of its own any more: its pieces are merged with any idle one. */
void ggi_pool_insert(struct ggi_pool *pool, gg_memory *memory)
{
    if (memory->segment && memory->alloc_stream && memory->alloc_stream->bins_released)
        piece_set_idle(memory);
    if (memory->segment)
        memory = piece_merge(pool, memory);
    gg_stream *alloc_stream = pool->by_stream ? memory->alloc_stream : NULL;
    bool busy = alloc_stream && !alloc_stream->bins_released;
    if (ggi_block_is_large(memory))
        memory->released = ++pool->large_releases;
    ggi_bins_push(pool, busy ? alloc_stream->bins : &pool->any, memory);
    if (pool->stats.cached_bytes > pool->stats.release_threshold ||
        pool->large_bytes > pool->large_kept)
        atomic_store_explicit(&pool->device->over, 1, memory_order_relaxed);
}

/* The smallest of the first blocks that suffices; or NULL. */
static gg_memory *bin_find(struct ggi_bin *bin, size_t block_size)
{
    gg_memory *best = NULL;
    struct ggi_free_link *link = bin->blocks.next;
    for (int i = 0; i < GGI_EXAMINED && link != &bin->blocks; i++, link = link->next) {
        gg_memory *memory = ggi_free_memory(link);
        if (memory->block_size == block_size)
            return memory;
        if (memory->block_size > block_size && (!best || memory->block_size < best->block_size))
            best = memory;
    }
    return best;
}

gg_memory *ggi_pool_pop(struct ggi_pool *pool, gg_stream *stream, struct ggi_request request)
{
    struct ggi_bins *bins = stream ? stream->bins : &pool->any;
    struct ggi_bin *bin = &bins->bin[request.size_class];
    gg_memory *memory = ggi_bin_is_empty(bin) ? NULL : bin_find(bin, request.block_size);
    if (!memory)
        return NULL;
    ggi_pool_unlist(pool, memory);
    if (pool->splits && memory->block_size > request.block_size)
        ggi_piece_split(pool, bins, memory, request.block_size);
    return memory;
}

gg_memory *ggi_pool_pop_done(struct ggi_pool *pool, gg_stream *stream, struct ggi_request request)
{
    gg_memory *memory = ggi_free_memory(stream->bins->bin[request.size_class].blocks.previous);
    if (memory->block_size < request.block_size || !ggi_block_is_done(memory, stream))
        return NULL;
    ggi_pool_unlist(pool, memory);
    if (pool->splits && memory->block_size > request.block_size)
        ggi_piece_split(pool, &pool->any, memory, request.block_size);
    return memory;
}
