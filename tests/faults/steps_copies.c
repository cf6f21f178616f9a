/* steps_copies.c: strided copies, through slots and as rectangular regions, and readback memory. */
#include "program.h"

#include <string.h>

enum { SIDE = 512, ROW = SIDE * 4 }; /* a square of LARGE bytes */

static const size_t square[] = {SIDE, SIDE};
static const ptrdiff_t turned[] = {4, ROW};

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

/* A strided copy that would need too many device copies, so it goes through slots. */
static int up_turned(struct program *p, union output *out)
{
    (void)out;
    if (!p->large)
        return SKIPPED;
    memset(p->host, 31, LARGE);
    struct gg_copy_operand dst = device_end(p, p->large), src = host_operand(p, p->host);
    const int status = (int)gg_copy_nd(&dst, NULL, &src, turned, 2, square, 4, NULL, 0);
    memset(p->host, 99, LARGE); /* the call has returned, so the buffer is free for use */
    return status;
}

static int down_turned(struct program *p, union output *out)
{
    (void)out;
    if (!p->large)
        return SKIPPED;
    struct gg_copy_operand dst = host_operand(p, p->host), src = device_end(p, p->large);
    const int status = (int)gg_copy_nd(&dst, turned, &src, NULL, 2, square, 4, NULL, 0);
    return status ? status : check_bytes(p, p->host, LARGE, 31, "transposed bytes are wrong");
}

/* Small enough for the ring. */
static int up_small_turned(struct program *p, union output *out)
{
    static const size_t shape[] = {32, 32};
    static const ptrdiff_t strides[] = {4, 128};
    (void)out;
    if (!p->small)
        return SKIPPED;
    struct gg_copy_operand dst = device_end(p, p->small), src = host_operand(p, p->host);
    return (int)gg_copy_nd(&dst, NULL, &src, strides, 2, shape, 4, NULL, 0);
}

static int rows_of_pinned(struct program *p, union output *out)
{
    static const size_t shape[] = {64, SIDE};
    static const ptrdiff_t apart[] = {2 * SIDE, 1};
    (void)out;
    if (!p->large || !p->pinned)
        return SKIPPED;
    struct gg_copy_operand dst = device_end(p, p->large), src = device_end(p, p->pinned);
    return (int)gg_copy_nd(&dst, NULL, &src, apart, 2, shape, 1, p->first, GG_COPY_ASYNC);
}

static int box_between_blocks(struct program *p, union output *out)
{
    static const size_t shape[] = {4, 8, 100};
    static const ptrdiff_t apart[] = {4096, 256, 1};
    (void)out;
    if (!p->large || !p->second_block)
        return SKIPPED;
    struct gg_copy_operand dst = device_end(p, p->second_block), src = device_end(p, p->large);
    return (int)gg_copy_nd(&dst, NULL, &src, apart, 3, shape, 1, NULL, 0);
}

/* The pages are pinned at the second use. */
static int get_readback(struct program *p, union output *out)
{
    void *result = p;
    int32_t fresh = 7;
    (void)out;
    if (!p->large)
        return SKIPPED;
    int status = (int)gg_readback_alloc(p->device, LARGE, &result, &fresh);
    if (status) {
        if (result != (void *)p || fresh != 7)
            p->wrong = "a failed readback wrote its outputs";
        return status;
    }
    struct gg_copy_operand dst = host_operand(p, result), src = device_end(p, p->large);
    status = (int)gg_copy(&dst, &src, LARGE, NULL, fresh ? GG_COPY_DST_UNTOUCHED : 0);
    gg_readback_free(result);
    return status;
}

static int trim(struct program *p, union output *out)
{
    (void)out;
    return p->device ? (int)gg_device_trim(p->device) : SKIPPED;
}

static const struct step steps[] = {
    {"upload a transposed square", up_turned, GG_OK},
    {"download the transposed square", down_turned, GG_OK},
    {"upload a small transposed square", up_small_turned, GG_OK},
    {"upload rows of pinned memory", rows_of_pinned, GG_OK},
    {"copy a box between blocks", box_between_blocks, GG_OK},
    {"get readback memory", get_readback, GG_OK},
    {"get readback memory again", get_readback, GG_OK},
    {"get readback memory a third time", get_readback, GG_OK},
    {"trim", trim, GG_OK},
    {"upload a transposed square after the trim", up_turned, GG_OK},
    {"get readback memory after the trim", get_readback, GG_OK},
};
const struct steps copies_steps = {steps, sizeof steps / sizeof steps[0]};
