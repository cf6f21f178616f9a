/** @file
 *  What an address refers to.
 *
 *  @par Ordering
 *  Nothing here orders work.
 *  @par Threads
 *  Any thread. */
#ifndef GG_POINTER_H
#define GG_POINTER_H

#include <gpuglue/memory.h>

GG_BEGIN_DECLS

/** What gg_pointer_query returns. */
struct gg_pointer_info {
    uint32_t struct_size;     /**< sizeof(struct gg_pointer_info) */
    enum gg_memory_kind kind; /**< GG_MEMORY_HOST for memory that no driver knows */
    int32_t device;           /**< ordinal, or -1 */
    uint32_t reserved;        /**< 0 */
    void *base;  /**< of the driver's allocation; NULL if the driver does not report it */
    size_t size; /**< of the driver's allocation, in bytes */
};

/** Query the drivers of all backends in use about an address. Base and size describe the driver's allocation, which may hold
 *  several blocks of a pool. An address in a released block is still known while the pool keeps the block.
 *
 *  @param pointer       any address
 *  @param[out] device   NULL for memory that none of the drivers knows
 *  @param[in,out] info  set its struct_size first
 *  @return GG_OK
 *  @retval GG_ERR_INVALID_ARGUMENT  @p pointer is NULL, or struct_size is too small */
GG_API gg_status gg_pointer_query(const void *pointer, gg_device **device,
                                  struct gg_pointer_info *info);

GG_END_DECLS
#endif
