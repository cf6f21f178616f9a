/* memory.h: the memory that an instruction accesses: in the GPU's memory, the group's LDS, or a lane's private memory. */
#ifndef MODEL_MEMORY_H
#define MODEL_MEMORY_H

#include "operand.h"

/* Both end the process if the range is outside the memory. */
char *lds_memory(const struct wave *, const struct instruction *, uint64_t offset, size_t bytes);
char *private_memory(const struct wave *, const struct instruction *, int lane, uint64_t offset,
                     size_t bytes);

/* Of global_, flat_ and scratch_ instructions: `at` and `base` are the operands with the address. */
char *lane_memory(const struct wave *, const struct instruction *, int at, int base, int lane,
                  size_t bytes);

/* Copies between registers and memory, as the instruction's name defines. */
void access_load(struct wave *, const struct instruction *, int lane, const char *from);
void access_store(const struct wave *, const struct instruction *, int operand, int lane, char *to);

#endif
