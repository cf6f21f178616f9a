/* Level Zero face: a loader of 1.8 takes no driver that lacks one of these getters. Tables left empty will
 * do: their functions are then not supported. The types do not matter here, so no header is included. */
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
