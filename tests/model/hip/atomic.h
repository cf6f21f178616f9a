/* atomic.h: the operations of atomic instructions. */
#ifndef MODEL_ATOMIC_H
#define MODEL_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

/* 4 or 8 bytes of each; `compare` is used by compare-and-swap only. */
typedef uint64_t combine_function(uint64_t old, uint64_t value, uint64_t compare, int bytes);

struct atomic_row {
    const char *name;
    combine_function *combine;
};

/* The row of a name, as in global_atomic_ and ds_ instructions; NULL if there is none. */
const struct atomic_row *atomic_row(const char *name);

#endif
