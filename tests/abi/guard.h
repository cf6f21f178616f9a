/* guard.h: a struct with bytes behind it that the library must not write. */
#ifndef GPUGLUE_TESTS_ABI_GUARD_H
#define GPUGLUE_TESTS_ABI_GUARD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GUARD_SIZE 64
#define GUARD 0xa5
#define GUARDED(type)                             \
    union {                                       \
        type known;                               \
        uint32_t struct_size;                     \
        uint8_t bytes[sizeof(type) + GUARD_SIZE]; \
    }
#define GUARD_SET(guarded) memset(&(guarded), GUARD, sizeof(guarded))
/* The bytes from @p from on are as GUARD_SET left them. */
#define GUARD_CHECK(guarded, from) guard_check((guarded).bytes, from, sizeof(guarded))

static inline void guard_check(const uint8_t *bytes, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        assert_int_equal(bytes[i], GUARD);
}

#endif
