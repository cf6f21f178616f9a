/** @file
 *  Versions, status codes, and the types that the other headers share. See gpuglue.h for the conventions.
 *
 *  @par Ordering
 *  Nothing here orders work.
 *  @par Threads
 *  A gg_device, gg_stream, gg_event, gg_memory, gg_module or gg_kernel may be used by several threads at the same time. A
 *  gg_scope belongs to the thread that entered it. */
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

/** Version of this header; gg_version() returns the library's. */
#define GG_VERSION "0.1.0"
/** Major ABI version of this header; gg_abi() returns the library's. A program needs a library with the same one. */
#define GG_ABI_MAJOR 1
/** Minor ABI version of this header: increases when functions are added. */
#define GG_ABI_MINOR 1

#define STATUS(name, number, message) GG_##name = number,
/** Result of a function that can fail. gg_last_error has the details. */
typedef enum gg_status {
#include <gpuglue/status.def>
} gg_status;
#undef STATUS

#define PROBE(name, number, word) GG_PROBE_##name = number,
/** Result of a probe: whether a backend can be used, or why not. */
typedef enum gg_probe_status {
#include <gpuglue/probe.def>
} gg_probe_status;
#undef PROBE

#define OP(slot, need) GG_OP_##slot,
/** The operations of a backend, for gg_device_supports, gg_op_name and tracers. */
typedef enum gg_op {
#include <gpuglue/ops.def>
    GG_OP_COUNT,              /**< number of operations */
    GG_OP_collective = 0x1000 /**< of a communicator: gg_trace::name has its name. Not in the table */
} gg_op;
#undef OP

/** A device of a backend. Lives as long as the process. */
typedef struct gg_device gg_device;
/** A queue of device work, which runs in order. Reference counted. */
typedef struct gg_stream gg_stream;
/** A point in a stream's order that others can wait for. Reference counted. */
typedef struct gg_event gg_event;
/** Memory that the device can reach, and the unfinished work that uses it. Reference counted. */
typedef struct gg_memory gg_memory;
/** Device code loaded onto a device. Reference counted. */
typedef struct gg_module gg_module;
/** A function of a module that runs on the device. Reference counted. */
typedef struct gg_kernel gg_kernel;
/** A device, and possibly a stream, that are current on a thread until the scope is left. */
typedef struct gg_scope gg_scope;

/** A timeout in nanoseconds that never expires. */
#define GG_FOREVER UINT64_MAX

#endif
