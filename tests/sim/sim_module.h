/* sim_module.h: modules and launches (sim_module.c), and host functions that replace kernels
 * (sim_kernels.c). */
#ifndef SIM_MODULE_H
#define SIM_MODULE_H

#include "sim_engine.h"
#include "sim_opencl.h"

enum {
    SIM_MAX_THREADS = 1024,
    SIM_MAX_SHARED = 232448,
    SIM_MAX_ARGUMENTS = 8,
    SIM_MAX_CONSTANTS = 8
};

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
    uint64_t variable;           /* device memory; 0 until its first query */
    struct sim_program *program; /* its code; NULL: see sim_kernels.c */
    bool stateful;               /* its kernels keep offsets in a block of memory in 32 bits */
    bool unlinked;               /* it calls functions that it does not have */
    uint64_t constants[SIM_MAX_CONSTANTS]; /* Level Zero's specialisation constants, in their order */
    unsigned constant_count;
    size_t first; /* bytes of the first of several inputs */
};

struct sim_function {
    struct sim_slot slot;
    struct sim_module *module;
    char *name;
    const struct sim_kernel *kernel; /* NULL: launches run `code`, or are recorded and do nothing */
    struct sim_code *code;           /* of the module's program */
    struct sim_value *values_set;    /* one for each parameter of `code` */
    unsigned shared_most; /* bytes of dynamic shared memory: a launch with more is refused */
    /* For APIs that set the group size and the arguments before the launch: */
    unsigned block[3];
    _Alignas(16) unsigned char values[SIM_MAX_ARGUMENTS][16];
};

struct sim_launch {
    unsigned grid[3], block[3], shared;
    const struct sim_kernel *kernel;
    struct sim_code *code;
    struct sim_value *values_set; /* copies, for `code` */
    struct sim_context *context;
    uint64_t variable;
    uint64_t constants[SIM_MAX_CONSTANTS]; /* of the module */
    unsigned constant_count;
    struct sim_launch *next;
    _Alignas(16) unsigned char values[SIM_MAX_ARGUMENTS][16];
};

const struct sim_kernel *sim_kernel_find(const char *name);
int sim_module_load(struct sim_context *context, const void *image, size_t size,
                    struct sim_module **out);
/* From then on the module's kernels are those of the program, which it releases. */
void sim_module_use(struct sim_module *module, struct sim_program *program);
void sim_module_unload(struct sim_module *module); /* waits for the context's work */
int sim_module_function(struct sim_module *module, const char *name, struct sim_function **out);
/* The same, but returns the existing function of that name, if any. Only Level Zero has several
 * functions of one name. */
int sim_module_one_function(struct sim_module *module, const char *name, unsigned shared_most,
                            struct sim_function **out);
int sim_module_global(struct sim_module *module, const char *name, uint64_t *address, size_t *size);
/* Makes the work of a launch, with a copy of its arguments. */
int sim_module_prepare(struct sim_queue *queue, const struct sim_function *function,
                       const struct sim_launch *shape, void **arguments, struct sim_work *work);
int sim_module_launch(struct sim_queue *queue, const struct sim_function *function,
                      const struct sim_launch *shape, void **arguments);

#endif
