/* module.h: what the files about modules and kernels share. */
#ifndef GPUGLUE_MODULE_H
#define GPUGLUE_MODULE_H

#include "internal.h"

/* A variable of a module that was given out. It hangs in the module's list until its memory is gone. */
struct ggi_global {
    struct ggi_global *next, **link;
    struct gg_module *module; /* a reference */
    gg_memory *memory;        /* no reference; NULL until it is made */
    char *name;
};

struct gg_module {
    _Atomic(int64_t) refs;
    struct gg_device *device;
    struct gg_module_impl *impl;
    struct gg_image *image;
    gg_memory *code; /* stands for what launches use: the module is unloaded when that is idle */
    _Atomic(struct ggi_global *) globals;
    pthread_mutex_t lock; /* globals; taken before a memory's lock */
};

struct gg_kernel {
    _Atomic(int64_t) refs;
    struct gg_module *module; /* a reference */
    struct gg_kernel_impl *impl;
    char *name;
    int32_t parameter_count; /* -1: not known */
    struct gg_parameter *parameters;
    uint32_t max_grid[3], max_block[3], max_threads; /* UINT32_MAX: not known */
    bool cooperative;                                /* the device runs such launches */
    _Atomic(uint32_t) shared_allowed; /* bytes of dynamic shared memory that need no further call */
    uint32_t shared_most;             /* the opt-in limit less what the kernel declares itself */
};

/* A use by work that was submitted, or by a graph. */
static inline void ggi_note_use(gg_memory *memory, gg_stream *stream, uint64_t ticket, bool captured)
{
    if (captured)
        atomic_store(&memory->captured, 1);
    else
        ggi_memory_used(memory, stream, ticket);
}

/* For every variable of the module that is given out: @p stream waits for its uses; it is used. */
gg_status ggi_module_order(gg_module *module, gg_stream *stream);
void ggi_globals_used(gg_module *module, gg_stream *stream, uint64_t ticket, bool captured);
static inline void ggi_module_used(gg_module *module, gg_stream *stream, uint64_t ticket,
                                   bool captured)
{
    ggi_note_use(module->code, stream, ticket, captured);
    if (atomic_load_explicit(&module->globals, memory_order_acquire))
        ggi_globals_used(module, stream, ticket, captured);
}

/* launch_told.c: the kernel, its shape and its arguments go in front of what the record says. */
gg_status ggi_launch_failed(const gg_kernel *kernel, const struct gg_launch *launch,
                            gg_status status);

#endif
