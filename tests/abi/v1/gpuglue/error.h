/* error.h: names of status codes, and the error record of each thread. */
#ifndef GG_ERROR_H
#define GG_ERROR_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** Name of a status, such as "ERR_OUT_OF_MEMORY"; "unknown" for an unknown number. Static, never NULL. */
GG_API const char *gg_status_name(gg_status status);

/** Short description of a status, such as "out of memory". Static, never NULL. */
GG_API const char *gg_status_message(gg_status status);

/** Name of a probe status, such as "no-device". Static, never NULL. */
GG_API const char *gg_probe_status_name(gg_probe_status status);

/** Name of an operation, such as "mem_alloc". Static, never NULL. */
GG_API const char *gg_op_name(gg_op op);

/** Details of the last failure on a thread. Texts that do not apply are empty. */
struct gg_error {
    uint32_t struct_size;
    gg_status status;
    int32_t device;         /* ordinal, or -1 */
    int64_t vendor_code;    /* the driver's error number; 0 if no driver was involved */
    char backend[16];       /* "cuda" */
    char op[32];            /* "mem_alloc" */
    char vendor_name[64];   /* "CUDA_ERROR_OUT_OF_MEMORY" */
    char vendor_text[128];  /* the driver's description */
    char library_path[256]; /* the vendor library that returned the error */
    char library_version[32];
    char message[768]; /* one sentence: what was given, what was expected, what to do */
};

/** Copy the error record of the calling thread. Only a failing call changes the record: releases,
 *  gpuglue's internal queries and this function leave it unchanged.
 *  Errors  GG_ERR_INVALID_ARGUMENT: struct_size is too small. */
GG_API gg_status gg_last_error(struct gg_error *error);

GG_END_DECLS
#endif
