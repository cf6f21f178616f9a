/* sim_ze_program.h: what a module of Level Zero is made of: SPIR-V with constants, flags and further inputs, or a native
 * binary. */
#ifndef SIM_ZE_PROGRAM_H
#define SIM_ZE_PROGRAM_H

#include "sim_module.h"
#include "sim_ze.h"

struct ze_program {
    unsigned char *bytes; /* the inputs, one after the other, with the constants that were set */
    size_t size, first;   /* first: bytes of the first input */
    uint64_t constants[SIM_MAX_CONSTANTS]; /* of all inputs, in their order */
    unsigned constant_count;
    bool stateful, unlinked;
};

/* A ze_result_t, or an error of the engine; the caller frees the bytes. The log is "" unless a compiler would have one. */
int ze_program_make(const ze_module_desc_t *desc, struct ze_program *out, char log[256]);
/* The native binary of a module with that program; the size alone if @p out is NULL. */
void ze_program_binary(const struct ze_program *program, size_t *size, uint8_t *out);

#endif
