/* sim_ops.c: runs the commands of each kind, in a worker and without the lock. */
#include "sim_engine.h"

#include <string.h>
#include <time.h>

size_t sim_region_span(size_t width, size_t height, size_t depth, size_t pitch, size_t slice)
{
    return (depth - 1) * slice + (height - 1) * pitch + width;
}

/* The engine's address for a client's range; NULL if the memory was freed. */
static char *resolve(uint64_t address, size_t size, bool tracked)
{
    char *found = NULL;
    pthread_mutex_lock(&sim.lock);
    if (tracked || sim_memory_reserved(address)) {
        const struct sim_alloc *alloc = sim_memory_reach(address, size);
        if (alloc)
            found = sim_memory_alias(alloc, address);
    } else {
        found = (char *)(uintptr_t)address;
    }
    pthread_mutex_unlock(&sim.lock);
    return found;
}

/* The device of an address; -1: host memory. */
static int device_at(uint64_t address)
{
    for (int i = 0; i < sim.device_count; i++)
        if (address - sim.devices[i].base < sim.devices[i].size)
            return i;
    return -1;
}

static bool is_lost(const struct sim_region *region)
{
    const int dst = device_at(region->dst), src = device_at(region->src);
    return sim.peers == SIM_PEERS_LOSE && dst >= 0 && src >= 0 && dst != src;
}

static int run_copy(const struct sim_work *work)
{
    const struct sim_region *region = &work->copy;
    size_t width = region->width, height = region->height, depth = region->depth;
    char *dst = resolve(region->dst,
                        sim_region_span(width, height, depth, region->dst_pitch, region->dst_slice),
                        work->dst_tracked);
    char *src = resolve(region->src,
                        sim_region_span(width, height, depth, region->src_pitch, region->src_slice),
                        work->src_tracked);
    if (!dst || !src)
        return SIM_ILLEGAL_ADDRESS;
    if (is_lost(region))
        return SIM_OK;
    for (size_t z = 0; z < depth; z++)
        for (size_t y = 0; y < height; y++)
            memmove(dst + z * region->dst_slice + y * region->dst_pitch,
                    src + z * region->src_slice + y * region->src_pitch, width);
    return SIM_OK;
}

static void fill_row(char *row, const struct sim_fill *fill)
{
    uint16_t half = (uint16_t)fill->value;
    if (fill->element == 1) {
        memset(row, (int)(fill->value & 0xff), fill->width);
        return;
    }
    for (size_t i = 0; i < fill->width; i++) {
        if (fill->element == 2)
            memcpy(row + i * 2, &half, sizeof half);
        else
            memcpy(row + i * 4, &fill->value, sizeof fill->value);
    }
}

static int run_fill(const struct sim_work *work)
{
    const struct sim_fill *fill = &work->fill;
    size_t bytes = fill->width * fill->element;
    char *dst = resolve(fill->dst, sim_region_span(bytes, fill->height, 1, fill->pitch, 0),
                        work->dst_tracked);
    if (!dst)
        return SIM_ILLEGAL_ADDRESS;
    for (size_t y = 0; y < fill->height; y++)
        fill_row(dst + y * fill->pitch, fill);
    return SIM_OK;
}

static uint64_t load(const char *address, unsigned bytes)
{
    if (bytes == 4)
        return __atomic_load_n((const uint32_t *)(const void *)address, __ATOMIC_ACQUIRE);
    return __atomic_load_n((const uint64_t *)(const void *)address, __ATOMIC_ACQUIRE);
}

static bool holds(const struct sim_word *word, uint64_t found)
{
    switch (word->compare) {
    case SIM_GREATER_EQUAL:
        return word->bytes == 4 ? (int32_t)((uint32_t)found - (uint32_t)word->value) >= 0
                                : (int64_t)(found - word->value) >= 0;
    case SIM_EQUAL:
        return found == word->value;
    case SIM_ANY_BIT:
        return (found & word->value) != 0;
    case SIM_NOR:
        return (uint32_t) ~(found | word->value) != 0;
    }
    return true;
}

static int run_word(const struct sim_work *work)
{
    const struct sim_word *word = &work->word;
    char *address = resolve(word->address, word->bytes, work->dst_tracked);
    if (!address)
        return SIM_ILLEGAL_ADDRESS;
    if (work->kind == SIM_WAIT)
        return holds(word, load(address, word->bytes)) ? SIM_OK : SIM_NOT_READY;
    const uint64_t late = sim_setting("GPUGLUE_SIM_LATE_WORDS", 0); /* milliseconds */
    if (late)
        nanosleep(&(struct timespec){.tv_nsec = (long)(late * 1000000)}, NULL);
    if (word->bytes == 4)
        __atomic_store_n((uint32_t *)(void *)address, (uint32_t)word->value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint64_t *)(void *)address, word->value, __ATOMIC_RELEASE);
    return SIM_OK;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The clock wraps just after its first timestamp, so that every process meets a wrap. */
static uint64_t clock_of(uint64_t ticks)
{
    uint64_t start = 0;
    atomic_compare_exchange_strong(&sim.clock_start, &start, 0 - ticks - 1);
    return ticks + atomic_load(&sim.clock_start);
}

/* A device's clock: word.value is the mask of its bits. */
static int run_time(const struct sim_work *work)
{
    const struct sim_word *word = &work->word;
    char *address = resolve(word->address, sizeof word->value, work->dst_tracked);
    if (!address)
        return SIM_ILLEGAL_ADDRESS;
    uint64_t ticks = (uint64_t)((double)now_ns() * 1e-9 * (double)sim.clock_hz);
    __atomic_store_n((uint64_t *)(void *)address, clock_of(ticks) & word->value, __ATOMIC_RELEASE);
    return SIM_OK;
}

static int run_host(const struct sim_work *work)
{
    sim_in_host_function = true;
    work->host.run(work->host.data);
    sim_in_host_function = false;
    return SIM_OK;
}

static int run_free(const struct sim_work *work)
{
    struct sim_alloc *alloc;
    pthread_mutex_lock(&sim.lock);
    alloc = sim_memory_find(work->free.address);
    if (alloc && alloc->serial == work->free.serial)
        sim_memory_release(alloc);
    pthread_mutex_unlock(&sim.lock);
    return SIM_OK;
}

static int run_mark(struct sim_command *command)
{
    command->time_ns = now_ns();
    return SIM_OK;
}

int sim_run(struct sim_command *command)
{
    static const char *const names[] = {"@mark",  "@copy", "@fill", "@host",
                                        "@write", "@wait", "@free", "@time"};
    const struct sim_work *work = &command->work;
    int fault = sim_fault(names[work->kind]);
    if (fault)
        return fault;
    switch (work->kind) {
    case SIM_MARK:
        return run_mark(command);
    case SIM_COPY:
        return run_copy(work);
    case SIM_FILL:
        return run_fill(work);
    case SIM_HOST:
        return run_host(work);
    case SIM_WRITE:
    case SIM_WAIT:
        return run_word(work);
    case SIM_FREE:
        return run_free(work);
    case SIM_TIME:
        return run_time(work);
    }
    return SIM_OK;
}
