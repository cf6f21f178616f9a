/* steps_copies.c: copies of any strides, through slots and by boxes, and memory for results. */
#include "program.h"

#include <string.h>

enum { SIDE = 512, ROW = SIDE * 4 }; /* a square of LARGE bytes */

static const size_t square[] = {SIDE, SIDE};
static const ptrdiff_t turned[] = {4, ROW};

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

/* Too many calls for the device, so it goes through slots. */
static int up_turned(struct program *p, union output *out)
{
    (void)out;
    if (!p->large)
        return SKIPPED;
    memset(p->host, 31, LARGE);
    struct gg_end dst = device_end(p, p->large), src = host_end(p, p->host);
    const int status = (int)gg_copy_nd(&dst, NULL, &src, turned, 2, square, 4, NULL, 0);
    memset(p->host, 99, LARGE); /* it is ours again */
    return status;
}

static int down_turned(struct program *p, union output *out)
{
    (void)out;
    if (!p->large)
        return SKIPPED;
    struct gg_end dst = host_end(p, p->host), src = device_end(p, p->large);
    const int status = (int)gg_copy_nd(&dst, turned, &src, NULL, 2, square, 4, NULL, 0);
    return status ? status : check_bytes(p, p->host, LARGE, 31, "a turned copy lost its bytes");
}

/* Small enough for the ring. */
static int up_small_turned(struct program *p, union output *out)
{
    static const size_t shape[] = {32, 32};
    static const ptrdiff_t strides[] = {4, 128};
    (void)out;
    if (!p->small)
        return SKIPPED;
    struct gg_end dst = device_end(p, p->small), src = host_end(p, p->host);
    return (int)gg_copy_nd(&dst, NULL, &src, strides, 2, shape, 4, NULL, 0);
}

static int rows_of_pinned(struct program *p, union output *out)
{
    static const size_t shape[] = {64, SIDE};
    static const ptrdiff_t apart[] = {2 * SIDE, 1};
    (void)out;
    if (!p->large || !p->pinned)
        return SKIPPED;
    struct gg_end dst = device_end(p, p->large), src = device_end(p, p->pinned);
    return (int)gg_copy_nd(&dst, NULL, &src, apart, 2, shape, 1, p->first, GG_COPY_ASYNC);
}

static int box_between_blocks(struct program *p, union output *out)
{
    static const size_t shape[] = {4, 8, 100};
    static const ptrdiff_t apart[] = {4096, 256, 1};
    (void)out;
    if (!p->large || !p->twin)
        return SKIPPED;
    struct gg_end dst = device_end(p, p->twin), src = device_end(p, p->large);
    return (int)gg_copy_nd(&dst, NULL, &src, apart, 3, shape, 1, NULL, 0);
}

/* The second time its pages are locked. */
static int get_result(struct program *p, union output *out)
{
    void *result = p;
    int32_t fresh = 7;
    (void)out;
    if (!p->large)
        return SKIPPED;
    int status = (int)gg_result_alloc(p->device, LARGE, &result, &fresh);
    if (status) {
        if (result != (void *)p || fresh != 7)
            p->wrong = "a result that failed wrote its outputs";
        return status;
    }
    struct gg_end dst = host_end(p, result), src = device_end(p, p->large);
    status = (int)gg_copy(&dst, &src, LARGE, NULL, fresh ? GG_COPY_FRESH : 0);
    gg_result_free(result);
    return status;
}

static int trim(struct program *p, union output *out)
{
    (void)out;
    return p->device ? (int)gg_device_trim(p->device) : SKIPPED;
}

static const struct step steps[] = {
    {"copy up a turned square", up_turned, GG_OK},
    {"copy it down and turn it back", down_turned, GG_OK},
    {"copy up a small turned square", up_small_turned, GG_OK},
    {"copy up rows of pinned memory", rows_of_pinned, GG_OK},
    {"copy a box between blocks", box_between_blocks, GG_OK},
    {"get a result", get_result, GG_OK},
    {"get a result again", get_result, GG_OK},
    {"get a third result", get_result, GG_OK},
    {"trim", trim, GG_OK},
    {"copy up a turned square after that", up_turned, GG_OK},
    {"get a result after that", get_result, GG_OK},
};
const struct steps copies_steps = {steps, sizeof steps / sizeof steps[0]};
