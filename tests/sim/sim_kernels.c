/* sim_kernels.c: host functions that replace the kernels of tests/images/kernels.cu, by name. */
#include "sim_module.h"

#include <stdlib.h>
#include <string.h>

#define VALUE(type, i) (*(const type *)(const void *)launch->values[i])

struct mixed {
    char letter;
    double number;
};

/* The engine's address for a client's memory; NULL where a device would fault. */
static void *reach(uint64_t address, size_t size)
{
    struct sim_alloc *alloc;
    char *at = NULL;
    pthread_mutex_lock(&sim.lock);
    alloc = size ? sim_memory_reach(address, size) : NULL;
    if (alloc && (alloc->kind != SIM_REGISTERED || sim.host_pointers))
        at = sim_memory_alias(alloc, address);
    pthread_mutex_unlock(&sim.lock);
    return at;
}

static unsigned threads_of(const struct sim_launch *launch)
{
    return launch->grid[0] * launch->block[0];
}

static unsigned lesser(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static int run_nothing(const struct sim_launch *launch)
{
    (void)launch;
    return SIM_OK;
}

static int run_write_word(const struct sim_launch *launch)
{
    uint64_t *at = reach(VALUE(uint64_t, 0), sizeof *at);
    if (!at)
        return SIM_ILLEGAL_ADDRESS;
    *at = VALUE(uint64_t, 1);
    return SIM_OK;
}

static int run_scale(const struct sim_launch *launch)
{
    const unsigned count = lesser(VALUE(unsigned, 1), threads_of(launch));
    float *x = reach(VALUE(uint64_t, 0), count * sizeof *x);
    if (!x && count)
        return SIM_ILLEGAL_ADDRESS;
    for (unsigned i = 0; i < count; i++)
        x[i] *= VALUE(float, 2);
    return SIM_OK;
}

static int run_add_table(const struct sim_launch *launch)
{
    const unsigned count = lesser(VALUE(unsigned, 1), threads_of(launch));
    unsigned *x = reach(VALUE(uint64_t, 0), count * sizeof *x);
    const unsigned *table = launch->variable ? reach(launch->variable, 16) : NULL;
    if (!x && count)
        return SIM_ILLEGAL_ADDRESS;
    for (unsigned i = 0; i < count; i++)
        x[i] += table ? table[i & 3] : 0;
    return SIM_OK;
}

static int run_reverse(const struct sim_launch *launch)
{
    const unsigned width = launch->block[0];
    unsigned *x = reach(VALUE(uint64_t, 0), threads_of(launch) * sizeof *x);
    if (!x)
        return SIM_ILLEGAL_ADDRESS;
    for (unsigned block = 0; block < launch->grid[0]; block++)
        for (unsigned i = 0; i < width / 2; i++) {
            unsigned *one = &x[block * width + i], *other = &x[block * width + width - 1 - i];
            const unsigned held = *one;
            *one = *other;
            *other = held;
        }
    return SIM_OK;
}

static int run_say(const struct sim_launch *launch)
{
    double *out = reach(VALUE(uint64_t, 0), 8 * sizeof *out);
    struct mixed mixed;
    if (!out)
        return SIM_ILLEGAL_ADDRESS;
    memcpy(&mixed, launch->values[7], sizeof mixed);
    out[0] = VALUE(signed char, 1);
    out[1] = VALUE(unsigned short, 2);
    out[2] = VALUE(int, 3);
    out[3] = (double)VALUE(long long, 4);
    out[4] = (double)VALUE(float, 5);
    out[5] = VALUE(double, 6);
    out[6] = mixed.letter;
    out[7] = mixed.number;
    return SIM_OK;
}

/* PyCUDA's tutorial: a 4 x 4 block doubles its elements. */
static int run_doublify(const struct sim_launch *launch)
{
    const unsigned count = launch->block[0] * launch->block[1];
    float *x = reach(VALUE(uint64_t, 0), count * sizeof *x);
    if (!x)
        return SIM_ILLEGAL_ADDRESS;
    for (unsigned i = 0; i < count; i++)
        x[i] *= 2;
    return SIM_OK;
}

/* The module's specialisation constants, four at most. */
static int run_constants(const struct sim_launch *launch)
{
    uint64_t *out = reach(VALUE(uint64_t, 0), 4 * sizeof *out);
    if (!out)
        return SIM_ILLEGAL_ADDRESS;
    memcpy(out, launch->constants, lesser(launch->constant_count, 4) * sizeof *out);
    return SIM_OK;
}

/* The same with a call of twice(), which a linked input has. */
static int run_linked(const struct sim_launch *launch)
{
    const int status = run_constants(launch);
    if (!status)
        ((uint64_t *)reach(VALUE(uint64_t, 0), 4 * sizeof(uint64_t)))[3] *= 2;
    return status;
}

static const struct sim_kernel kernels[] = {
    {"nothing", 0, {0}, run_nothing},   {"write_word", 2, {8, 8}, run_write_word},
    {"scale", 3, {8, 4, 4}, run_scale}, {"add_table", 2, {8, 4}, run_add_table},
    {"reverse", 1, {8}, run_reverse},   {"say", 8, {8, 1, 2, 4, 8, 4, 8, 16}, run_say},
    {"doublify", 1, {8}, run_doublify}, {"constants", 1, {8}, run_constants},
    {"linked", 1, {8}, run_linked},
};

const struct sim_kernel *sim_kernel_find(const char *name)
{
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (!strcmp(kernels[i].name, name))
            return &kernels[i];
    return NULL;
}
