/* kernels_host.c: the kernels of kernels.cu as host functions, by host_kernel.h. */
#include <gpuglue/host_kernel.h>

#include <stddef.h>
#include <stdatomic.h>

#define ARGUMENT(type, i) (*(type const *)arguments[i])
#define COUNT(array) ((int32_t)(sizeof(array) / sizeof(array)[0]))

GG_API extern unsigned table[4];
unsigned table[4];

struct mixed {
    char letter;
    double number;
};

static void run_nothing(const struct gg_host_thread *self, const void *const *arguments)
{
    (void)self;
    (void)arguments;
}

static void run_write_word(const struct gg_host_thread *self, const void *const *arguments)
{
    (void)self;
    *ARGUMENT(uint64_t *, 0) = ARGUMENT(uint64_t, 1);
}

static unsigned index_of(const struct gg_host_thread *self)
{
    return self->block.x * self->block_dim.x + self->thread.x;
}

static void run_scale(const struct gg_host_thread *self, const void *const *arguments)
{
    unsigned i = index_of(self);
    if (i < ARGUMENT(unsigned, 1))
        ARGUMENT(float *, 0)[i] *= ARGUMENT(float, 2);
}

static void run_add_table(const struct gg_host_thread *self, const void *const *arguments)
{
    unsigned i = index_of(self);
    if (i < ARGUMENT(unsigned, 1))
        ARGUMENT(unsigned *, 0)[i] += table[i & 3];
}

static void run_reverse(const struct gg_host_thread *self, const void *const *arguments)
{
    unsigned *held = self->shared,
             *block = ARGUMENT(unsigned *, 0) + self->block.x * self->block_dim.x;
    held[self->thread.x] = block[self->thread.x];
    self->barrier(self);
    block[self->thread.x] = held[self->block_dim.x - 1 - self->thread.x];
}

static void run_say(const struct gg_host_thread *self, const void *const *arguments)
{
    double *out = ARGUMENT(double *, 0);
    (void)self;
    out[0] = ARGUMENT(signed char, 1);
    out[1] = ARGUMENT(unsigned short, 2);
    out[2] = ARGUMENT(int, 3);
    out[3] = (double)ARGUMENT(long long, 4);
    out[4] = (double)ARGUMENT(float, 5);
    out[5] = ARGUMENT(double, 6);
    out[6] = ARGUMENT(struct mixed, 7).letter;
    out[7] = ARGUMENT(struct mixed, 7).number;
}

static void run_wait_for(const struct gg_host_thread *self, const void *const *arguments)
{
    (void)self;
    while (!atomic_load((_Atomic(unsigned) *)ARGUMENT(unsigned *, 0))) {
    }
}

static const struct gg_parameter words[] = {{0, 8, GG_PARAMETER_POINTER, 0},
                                            {8, 8, GG_PARAMETER_UNSIGNED, 0}};
static const struct gg_parameter scaled[] = {{0, 8, GG_PARAMETER_POINTER, 0},
                                             {8, 4, GG_PARAMETER_UNSIGNED, 0},
                                             {12, 4, GG_PARAMETER_FLOAT, 0}};
static const struct gg_parameter said[] = {
    {0, 8, GG_PARAMETER_POINTER, 0},   {8, 1, GG_PARAMETER_SIGNED, 0},
    {10, 2, GG_PARAMETER_UNSIGNED, 0}, {12, 4, GG_PARAMETER_SIGNED, 0},
    {16, 8, GG_PARAMETER_SIGNED, 0},   {24, 4, GG_PARAMETER_FLOAT, 0},
    {32, 8, GG_PARAMETER_FLOAT, 0},    {40, 16, GG_PARAMETER_BYTES, 0},
};

#define KERNEL(name, count, parameters)                  \
    static const struct gg_host_kernel name##_kernel = { \
        sizeof name##_kernel, count, #name, parameters, run_##name, 0, 0}

KERNEL(nothing, 0, NULL);
KERNEL(write_word, COUNT(words), words);
KERNEL(scale, COUNT(scaled), scaled);
KERNEL(add_table, 2, scaled);
KERNEL(reverse, 1, scaled);
KERNEL(say, COUNT(said), said);
KERNEL(wait_for, 1, scaled);

static const struct gg_host_kernel *const kernels[] = {
    &nothing_kernel, &write_word_kernel, &scale_kernel,   &add_table_kernel,
    &reverse_kernel, &say_kernel,        &wait_for_kernel};
const struct gg_host_kernels gg_host_kernels = {GG_HOST_KERNELS_MAGIC, GG_HOST_KERNELS_ABI,
                                                sizeof kernels / sizeof kernels[0], kernels};
