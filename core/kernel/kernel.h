/* kernel.h: modules, which are loaded device code and its variables, and their kernels. */
#ifndef GPUGLUE_CORE_KERNEL_H
#define GPUGLUE_CORE_KERNEL_H

#include "memory/uses.h"

struct gg_module {
    _Atomic(int64_t) refs;
    struct gg_device *device;
    struct gg_module_impl *impl;
    struct gg_image *image;
    gg_memory *code; /* records the uses by launches: the module is unloaded once it is idle */
    _Atomic(struct ggi_global *) globals; /* variables with live memory */
    pthread_mutex_t lock;                 /* globals, driver_names; taken before a memory's lock */
    struct ggi_names *driver_names; /* of the kernels, if the image hides them; set at the first request */
};

/* The module whose code @p memory is, or NULL. */
gg_module *ggi_module_of_code(const gg_memory *memory);
/* Make @p stream wait for the uses of all of the module's variables. */
gg_status ggi_module_wait_uses(gg_module *module, gg_stream *stream);
void ggi_module_note_globals(gg_module *module, gg_stream *stream, uint64_t ticket, bool captured);
/* Record a use of the module's code and variables up to @p ticket. */
static inline void ggi_module_note_use(gg_module *module, gg_stream *stream, uint64_t ticket,
                                       bool captured)
{
    ggi_memory_note_use(module->code, stream, ticket, captured);
    if (atomic_load_explicit(&module->globals, memory_order_acquire))
        ggi_module_note_globals(module, stream, ticket, captured);
}

/* The kernel in the image, or NULL. */
const struct gg_image_kernel *ggi_module_image_kernel(const gg_module *module, const char *name);
/* The error for a kernel that the driver does not find. */
gg_status ggi_module_refuse_name(gg_module *module, const char *name);
void ggi_names_free(struct ggi_names *names);

struct gg_kernel {
    _Atomic(int64_t) refs;
    struct gg_module *module; /* a reference */
    struct gg_kernel_impl *impl;
    char *name;
    int32_t parameter_count;                         /* -1: unknown */
    const struct gg_parameter *parameters;           /* the image's, or: */
    struct gg_parameter *driver_parameters;          /* as the driver reports them */
    uint32_t max_grid[3], max_block[3], max_threads; /* UINT32_MAX: unknown */
    bool cooperative;                                /* the device supports such launches */
    bool by_value; /* all parameters have a size, and none is block-local memory */
    _Atomic(uint32_t) shared_allowed; /* dynamic shared memory that needs no opt-in */
    uint32_t shared_max;              /* the opt-in limit minus static shared memory */
};

#endif
