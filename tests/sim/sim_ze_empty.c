/* sim_ze_empty.c: Level Zero: a loader of 1.8 rejects a driver that lacks one of these getters.
 * Empty tables are enough: their functions are then unsupported. No header is included, because
 * the types do not matter here. */
#include <stdint.h>

enum { SUCCESS = 0, NULL_POINTER = 0x78000007 };

#define EMPTY(getter)                                                                 \
    __attribute__((visibility("default"))) int getter(uint32_t version, void *table); \
    int getter(uint32_t version, void *table)                                         \
    {                                                                                 \
        (void)version;                                                                \
        return table ? SUCCESS : NULL_POINTER;                                        \
    }
#include "sim_ze_empty.def"
#undef EMPTY
