/* runtime.h: shared by the files that interpose on the HSA runtime. */
#ifndef MODEL_RUNTIME_H
#define MODEL_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

enum {
    STATUS_SUCCESS = 0,
    STATUS_INFO_BREAK = 1,
    STATUS_MEMORY_FAULT = 43,
    STATUS_INVALID_ARGUMENT = 0x1001,
    STATUS_OUT_OF_RESOURCES = 0x1008
};

struct agent {
    uint64_t handle;
};

struct pool {
    uint64_t handle;
};

/* The runtime's own function of that name. The runtime is not in the program's scope, which RTLD_NEXT searches. */
#define NEXT(name) (__extension__(__typeof__(&(name))) runtime_symbol(#name))
void *runtime_symbol(const char *name);

/* Memory of the first GPU that all of them reach. */
int runtime_allocate(uint32_t count, const struct agent *agents, size_t size, void **memory);
int runtime_free(void *memory);

/* Counts memory that the runtime does not know, by the pointer that names it; false where there is none left. */
bool runtime_reserve(struct pool, void *name, size_t size);
void runtime_unreserve(const void *name);

/* The runtime's model of the driver allocates memory; the flags are the driver's. */
void runtime_allocated(uint32_t flags);

#endif
