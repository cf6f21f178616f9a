/* base.h: versions, status codes, and the types that the other headers share. See gpuglue.h for the
 * conventions. */
#ifndef GG_BASE_H
#define GG_BASE_H

#include <stddef.h>
#include <stdint.h>

/* Around the declarations of a header that C++ may include. */
#ifdef __cplusplus
#define GG_BEGIN_DECLS extern "C" {
#define GG_END_DECLS }
#else
#define GG_BEGIN_DECLS
#define GG_END_DECLS
#endif

#if defined(__GNUC__)
#define GG_API __attribute__((visibility("default")))
#else
#define GG_API
#endif

#define GG_VERSION "0.1.0"
#define GG_ABI_MAJOR 1 /* of this header; gg_abi() returns the library's */
#define GG_ABI_MINOR 1

#define STATUS(name, number, message) GG_##name = number,
typedef enum gg_status {
#include <gpuglue/status.def>
} gg_status;
#undef STATUS

#define PROBE(name, number, word) GG_PROBE_##name = number,
typedef enum gg_probe_status {
#include <gpuglue/probe.def>
} gg_probe_status;
#undef PROBE

#define OP(slot, need) GG_OP_##slot,
typedef enum gg_op {
#include <gpuglue/ops.def>
    GG_OP_COUNT
} gg_op;
#undef OP

typedef struct gg_device gg_device;
typedef struct gg_stream gg_stream;
typedef struct gg_event gg_event;
typedef struct gg_memory gg_memory;
typedef struct gg_module gg_module;
typedef struct gg_kernel gg_kernel;
typedef struct gg_scope gg_scope;

#define GG_FOREVER UINT64_MAX /* a timeout in nanoseconds that never expires */

#endif
