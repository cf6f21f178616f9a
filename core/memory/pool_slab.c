/* pool_slab.c: slabs: driver allocations that the blocks of one small size are carved from. */
#include "base/error.h"
#include "memory/pool.h"

#include <stdlib.h>

#define SLAB_UNIT ((size_t)2 << 20)
#define SLAB_BLOCKS_MIN 8u
/* Where blocks are split, the first slabs of a class are smaller, so that few blocks hold little memory. */
#define SLAB_DOUBLINGS 3

static void slab_destroy(struct ggi_retired *self)
{
    struct ggi_slab *slab = (struct ggi_slab *)self;
    struct ggi_pool *pool = slab->pool;
    ggi_driver_free(pool, slab->base, slab->size, NULL);
    pthread_mutex_lock(&pool->lock);
    ggi_pool_uncount_retired(pool, slab->size);
    pthread_mutex_unlock(&pool->lock);
    free(slab);
}

/* The size unit of the class's next slab. */
static size_t slab_unit(struct ggi_pool *pool, uint32_t size_class)
{
    size_t unit = SLAB_UNIT;
    pthread_mutex_lock(&pool->lock);
    if (pool->splits && pool->slab_doublings[size_class] < SLAB_DOUBLINGS)
        unit >>= SLAB_DOUBLINGS - pool->slab_doublings[size_class]++;
    pthread_mutex_unlock(&pool->lock);
    return unit;
}

static struct ggi_slab *slab_new(struct ggi_pool *pool, uint32_t size_class)
{
    struct ggi_slab *slab = calloc(1, sizeof *slab);
    const size_t block_size = ggi_size_class_bytes(size_class), unit = slab_unit(pool, size_class);
    if (!slab)
        return NULL;
    slab->retired.destroy = slab_destroy;
    slab->retired.may_wait = ggi_pool_free_may_wait(pool);
    slab->pool = pool;
    slab->size_class = size_class;
    slab->size = (SLAB_BLOCKS_MIN * block_size + unit - 1) / unit * unit;
    slab->capacity = (uint32_t)(slab->size / block_size);
    return slab;
}

void ggi_pool_list_slab(struct ggi_pool *pool, struct ggi_slab *slab)
{
    slab->next_open = pool->slab[slab->size_class]; /* another thread may have added one, too */
    pool->slab[slab->size_class] = slab;
    slab->next = pool->slabs;
    pool->slabs = slab;
}

gg_status ggi_pool_add_slab(struct ggi_pool *pool, uint32_t size_class)
{
    struct ggi_slab *slab = slab_new(pool, size_class);
    void *base = NULL;
    if (!slab)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a slab");
    gg_status status = ggi_driver_alloc(pool, slab->size, NULL, &base);
    if (status) {
        free(slab);
        return status;
    }
    slab->base = base;
    pthread_mutex_lock(&pool->lock);
    ggi_pool_list_slab(pool, slab);
    pthread_mutex_unlock(&pool->lock);
    return GG_OK;
}

bool ggi_slab_is(const struct ggi_retired *item)
{
    return item->destroy == slab_destroy;
}
