/* sim_module.h: modules and launches (sim_module.c), and what stands for kernels (sim_kernels.c). */
#ifndef SIM_MODULE_H
#define SIM_MODULE_H

#include "sim_engine.h"

enum { SIM_MAX_THREADS = 1024, SIM_MAX_SHARED = 232448, SIM_MAX_ARGUMENTS = 8 };

struct sim_launch;

struct sim_kernel {
    const char *name;
    unsigned count, sizes[SIM_MAX_ARGUMENTS];    /* bytes of each argument; 16 at most */
    int (*run)(const struct sim_launch *launch); /* without the lock */
};

struct sim_module {
    struct sim_slot slot;
    struct sim_context *context;
    char *image;
    size_t size;
    uint64_t variable; /* device memory, once it was asked for */
};

struct sim_function {
    struct sim_slot slot;
    struct sim_module *module;
    char *name;
    const struct sim_kernel *kernel; /* NULL: launches are recorded and do nothing */
    unsigned shared_most; /* bytes of dynamic shared memory: a launch with more is refused */
    /* Where group size and arguments are set before: */
    unsigned block[3];
    _Alignas(16) unsigned char values[SIM_MAX_ARGUMENTS][16];
};

struct sim_launch {
    unsigned grid[3], block[3], shared;
    const struct sim_kernel *kernel;
    struct sim_context *context;
    uint64_t variable;
    struct sim_launch *next;
    _Alignas(16) unsigned char values[SIM_MAX_ARGUMENTS][16];
};

const struct sim_kernel *sim_kernel_find(const char *name);
int sim_module_load(struct sim_context *context, const void *image, size_t size,
                    struct sim_module **out);
void sim_module_unload(struct sim_module *module); /* waits for the context's work */
int sim_module_function(struct sim_module *module, const char *name, struct sim_function **out);
/* The same, but the function that was made before, if any: drivers but Level Zero's have one of a name. */
int sim_module_one_function(struct sim_module *module, const char *name, unsigned shared_most,
                            struct sim_function **out);
int sim_module_global(struct sim_module *module, const char *name, uint64_t *address, size_t *size);
/* The work of a launch, with its arguments' values. */
int sim_module_prepare(struct sim_queue *queue, const struct sim_function *function,
                       const struct sim_launch *shape, void **arguments, struct sim_work *work);
int sim_module_launch(struct sim_queue *queue, const struct sim_function *function,
                      const struct sim_launch *shape, void **arguments);

#endif
