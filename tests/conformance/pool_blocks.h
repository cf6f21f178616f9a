/* pool_blocks.h: allocates blocks, compares their addresses and holds streams, for the suites of
 * the pool. */
#ifndef GPUGLUE_TESTS_POOL_BLOCKS_H
#define GPUGLUE_TESTS_POOL_BLOCKS_H

#include "conformance.h"

#include <time.h>

#define BLOCK ((size_t)3 << 20) /* too large for a slab, small enough for a list */

static inline struct gg_pool_stats figures_of(gg_device *device, enum gg_memory_kind kind)
{
    struct gg_pool_stats figures = {.struct_size = sizeof figures};
    assert_int_equal(gg_pool_stats(device, kind, &figures), GG_OK);
    return figures;
}

static inline struct gg_pool_stats figures(struct fixture *f)
{
    return figures_of(f->device, GG_MEMORY_DEVICE);
}

static inline gg_memory *alloc(struct fixture *f, size_t nbytes, gg_stream *stream)
{
    gg_memory *memory = NULL;
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, nbytes, stream, &memory), GG_OK);
    return memory;
}

static inline gg_memory *alloc_pinned(struct fixture *f, size_t nbytes)
{
    gg_memory *memory = NULL;
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_PINNED, nbytes, NULL, &memory), GG_OK);
    return memory;
}

/* Allocate and free a block; returns its address, for comparisons. */
static inline void *alloc_and_free(struct fixture *f, size_t nbytes, gg_stream *stream)
{
    gg_memory *memory = alloc(f, nbytes, stream);
    void *pointer = gg_memory_pointer(memory);
    gg_memory_release(memory);
    return pointer;
}

static inline void keep(struct fixture *f, gg_memory *memory) /* until the end of the test */
{
    assert_true(f->memory_count < OWNED_ROOM);
    f->memories[f->memory_count++] = memory;
}

static inline void assert_reuses(struct fixture *f, size_t nbytes, gg_stream *stream,
                                 const void *pointer)
{
    gg_memory *memory = alloc(f, nbytes, stream);
    keep(f, memory);
    assert_ptr_equal(gg_memory_pointer(memory), pointer);
}

static inline void assert_does_not_reuse(struct fixture *f, size_t nbytes, gg_stream *stream,
                                         const void *pointer)
{
    gg_memory *memory = alloc(f, nbytes, stream);
    keep(f, memory);
    assert_ptr_not_equal(gg_memory_pointer(memory), pointer);
}

/* A simulated driver reports "not ready" a few times in any case, and its threads need time to run. */
static inline void assert_waits(gg_stream *stream)
{
    const struct timespec pause = {0, 1000000};
    for (int i = 0; i < 2000; i++) {
        assert_true(busy(stream));
        if (i % 100 == 0)
            nanosleep(&pause, NULL);
    }
}

/* Hold a stream by its native handle, with work that gpuglue does not track, as if other
 * libraries queued it. */
static inline void *hold_unseen(struct fixture *f, gg_stream *stream)
{
    uint64_t handles[4] = {0};
    gg_stream *borrowed = NULL;
    need(f, GG_OP_stream_native);
    need(f, GG_OP_stream_borrow);
    assert_int_equal(gg_stream_native(stream, handles), GG_OK);
    assert_int_equal(gg_stream_borrow(f->device, handles[0], NULL, NULL, &borrowed), GG_OK);
    assert_true(f->stream_count < OWNED_ROOM);
    f->streams[f->stream_count++] = borrowed;
    return hold(f, borrowed);
}

static const size_t sizes[] = {1, 255, 256, 257, 4096, 70001, (size_t)1 << 20, BLOCK};
#define SIZES (sizeof sizes / sizeof sizes[0])

#endif
