/* sim_opencl.h: kernels of SPIR-V modules, run by an OpenCL driver for the CPU, such as PoCL. GPUGLUE_SIM_OPENCL names
 * its library; without it the simulation has host functions for the test kernels only (sim_kernels.c). */
#ifndef SIM_OPENCL_H
#define SIM_OPENCL_H

#include "sim_engine.h"

struct sim_program;
struct sim_code;

struct sim_value { /* an argument */
    size_t size;   /* 0: never set */
    void *bytes;   /* NULL: local memory of that size */
};

struct sim_shape {
    unsigned grid[3], block[3];
    struct sim_value *values; /* one for each parameter */
};

bool sim_opencl_wanted(void);
/* Call these with the lock held. */
int sim_opencl_build(const void *image, size_t size, struct sim_program **out);
const char *sim_opencl_log(void); /* of the last build, until the next one */
void sim_opencl_release(struct sim_program *program);
int sim_opencl_code(struct sim_program *program, const char *name, struct sim_code **out);
void sim_code_release(struct sim_code *code);
unsigned sim_code_count(const struct sim_code *code); /* parameters */
unsigned sim_code_local(const struct sim_code *code); /* bytes of static local memory */
bool sim_code_pointer(const struct sim_code *code, unsigned index);
/* SIM_OK, SIM_NOT_FOUND (no such parameter) or SIM_INVALID (its size is another one). */
int sim_code_check(struct sim_code *code, unsigned index, size_t size, const void *bytes);
/* The address and the size of a variable, which the program's kernel where_<name>(global ulong *out) returns. */
int sim_opencl_variable(struct sim_program *program, const char *name, uint64_t *address,
                        size_t *size);
/* Without the lock: runs the kernel and waits for it. */
int sim_code_run(struct sim_code *code, const struct sim_shape *shape);

/* sim_spirv.c: SPIR-V as LLVM bitcode, for drivers that take no SPIR-V; the caller frees it. The log is "" or the
 * reason of a failure. */
int sim_spirv_translate(const void *image, size_t size, void **out, size_t *out_size, char log[256]);
bool sim_spirv_translates(void); /* whether a translator is installed */

#endif
