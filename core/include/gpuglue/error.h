/** @file
 *  Names of status codes, and the error record of each thread.
 *
 *  @par Ordering
 *  Nothing here orders work. An error of queued work is returned by a later call on the same device.
 *  @par Threads
 *  Each thread has a record of its own, and reads only that. */
#ifndef GG_ERROR_H
#define GG_ERROR_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** Name of a status.
 *
 *  @param status  any number
 *  @return such as "ERR_OUT_OF_MEMORY"; "unknown" for an unknown number; static, never NULL */
GG_API const char *gg_status_name(gg_status status);

/** Short description of a status.
 *
 *  @param status  any number
 *  @return such as "out of memory"; static, never NULL */
GG_API const char *gg_status_message(gg_status status);

/** Name of a probe status.
 *
 *  @param status  any number
 *  @return such as "no-device"; static, never NULL */
GG_API const char *gg_probe_status_name(gg_probe_status status);

/** Name of an operation.
 *
 *  @param op  any number
 *  @return such as "mem_alloc"; static, never NULL */
GG_API const char *gg_op_name(gg_op op);

/** Details of the last failure on a thread. Texts that do not apply are empty. */
struct gg_error {
    uint32_t struct_size;     /**< sizeof(struct gg_error) */
    gg_status status;         /**< what the call returned */
    int32_t device;           /**< ordinal, or -1 */
    int64_t vendor_code;      /**< the driver's error number; 0 if no driver was involved */
    char backend[16];         /**< "cuda" */
    char op[32];              /**< "mem_alloc" */
    char vendor_name[64];     /**< "CUDA_ERROR_OUT_OF_MEMORY" */
    char vendor_text[128];    /**< the driver's description */
    char library_path[256];   /**< the vendor library that returned the error */
    char library_version[32]; /**< of that library */
    char message[768];        /**< one sentence: what was given, what was expected, what to do */
};

/** Copy the error record of the calling thread. Only a failing call changes the record: releases, gpuglue's internal
 *  queries and this function leave it unchanged.
 *
 *  @param[in,out] error  set its struct_size first
 *  @return GG_OK
 *  @retval GG_ERR_INVALID_ARGUMENT  struct_size is too small */
GG_API gg_status gg_last_error(struct gg_error *error);

GG_END_DECLS
#endif
