/** @file
 *  Communicators: several processes that combine and exchange data.
 *
 *  Each process of a program is a rank of a communicator, from 0 to size - 1. All ranks call the same collective
 *  operations in the same order. The transport is shared memory, so all ranks run on one machine (except with
 *  GG_COMM_SEVERAL_MACHINES), and the data must be in memory that the processor can access: host memory, pinned and
 *  managed memory, and memory of the host backend. Where the kernel allows it, ranks read large data directly from each
 *  other's memory.
 *
 *  All ranks report the same failure. If a rank ends, does not take part within the timeout, closes or aborts, every other
 *  rank that calls or waits gets GG_ERR_COMMUNICATOR, and gg_comm_failed_ranks returns the failed rank. After that the
 *  communicator cannot be used: release it, and create a new one from the remaining ranks. After a timeout in a send or
 *  receive, the reported rank is the other rank of the message, which may itself wait for the rank that hangs.
 *
 *  @par Ordering
 *  An operation is complete when it returns. It waits for no stream: synchronize with device work on the data first.
 *  @par Threads
 *  One thread at a time may call an operation of a communicator; a second one gets GG_ERR_INVALID_ARGUMENT. gg_comm_abort
 *  may be called meanwhile. Waits call the wait hook every 50 ms; if it ends a wait, the communicator is aborted. */
#ifndef GG_COMM_H
#define GG_COMM_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** One rank of a group of processes. Reference counted. */
typedef struct gg_comm gg_comm;

/** The largest gg_comm_options::size. */
#define GG_COMM_SIZE_MAX 256

/** Bytes of a name that gg_comm_set_type_name takes, with its final zero. */
#define GG_COMM_TYPE_NAME_SIZE 24

/** The color of a rank that is in no communicator of gg_comm_split. */
#define GG_COMM_NO_COLOR (-1)

/** Element types of reductions. Other operations move bytes of any type. */
typedef enum gg_comm_type {
    GG_COMM_INT8 = 0,         /**< int8_t; sums and products of integers wrap around */
    GG_COMM_UINT8 = 1,        /**< uint8_t */
    GG_COMM_INT16 = 2,        /**< int16_t */
    GG_COMM_UINT16 = 3,       /**< uint16_t */
    GG_COMM_INT32 = 4,        /**< int32_t */
    GG_COMM_UINT32 = 5,       /**< uint32_t */
    GG_COMM_INT64 = 6,        /**< int64_t */
    GG_COMM_UINT64 = 7,       /**< uint64_t */
    GG_COMM_FLOAT16 = 8,      /**< IEEE binary16; computed as float, rounded once */
    GG_COMM_BFLOAT16 = 9,     /**< the upper half of a float; computed as float, rounded once */
    GG_COMM_FLOAT32 = 10,     /**< float */
    GG_COMM_FLOAT64 = 11,     /**< double */
    GG_COMM_COMPLEX64 = 12,   /**< two floats; only GG_COMM_SUM, GG_COMM_PROD and GG_COMM_AVG */
    GG_COMM_COMPLEX128 = 13,  /**< two doubles; only GG_COMM_SUM, GG_COMM_PROD and GG_COMM_AVG */
    GG_COMM_FLOAT8_E4M3 = 14, /**< 8 bits; only in device memory, where the library has it */
    GG_COMM_FLOAT8_E5M2 = 15, /**< likewise */
} gg_comm_type;

/** Operators of reductions. They are applied in the order of the ranks, so that all ranks get the same bits. */
typedef enum gg_comm_reduction {
    GG_COMM_SUM = 0,  /**< the sum */
    GG_COMM_PROD = 1, /**< the product */
    GG_COMM_MIN = 2,  /**< the smallest; NaN if one value is NaN, with NCCL and RCCL if all are */
    GG_COMM_MAX = 3,  /**< the largest; NaN likewise */
    GG_COMM_AVG = 4,  /**< the sum, divided by the number of ranks; not of integers */
} gg_comm_reduction;

/** gg_comm_options::flags: the ranks may be on several machines. If they are, the communicator has only gg_comm_barrier,
 *  gg_comm_split and the operations of comm_device.h, and gg_comm_open_device fails unless all ranks have devices that one library connects. */
#define GG_COMM_SEVERAL_MACHINES 1u

/** How to create a communicator. All ranks give the same values, except for rank. */
struct gg_comm_options {
    uint32_t struct_size; /**< sizeof(struct gg_comm_options) */
    int32_t rank;         /**< of this process: 0 to size - 1 */
    int32_t size;         /**< number of ranks: 1 to GG_COMM_SIZE_MAX */
    int32_t port;         /**< TCP port on which rank 0 listens during creation: 1 to 65535 */
    const char *host;     /**< name or address of rank 0's machine; NULL: 127.0.0.1 */
    const char *id; /**< at most 63 bytes that ranks compare, such as a job's number; NULL: "" */
    uint64_t timeout_ns; /**< limit of the creation, and of each wait for another rank; GG_FOREVER: none. A rank whose
                          *   connection rank 0 has accepted waits until rank 0 reports the missing ranks */
    uint32_t flags; /**< 0 or GG_COMM_SEVERAL_MACHINES */
};

/** Create a communicator. Rank 0 listens on the port until all ranks have connected; the others try again until it does. A
 *  communicator of one rank opens no port.
 *
 *  @param options   what all ranks agree on
 *  @param[out] out  one reference
 *  @return GG_OK
 *  @retval GG_ERR_COMMUNICATOR      ranks did not connect within the timeout (gg_comm_failed_ranks); the port is in use;
 *                                   this rank differs from rank 0 in size, id, version, machine or user; another process has
 *                                   the same rank; another rank is in this process; or the creation failed on another rank
 *  @retval GG_ERR_INVALID_ARGUMENT  a value is outside its range
 *  @retval GG_ERR_OUT_OF_MEMORY     there is not enough memory, or the process's limit on file sizes is too low
 *  @retval GG_ERR_UNSUPPORTED       the system has no files in memory, Unix sockets or record locks; or the process that
 *                                   listens on the port passed no shared memory of this user
 *  @retval GG_ERR_INTERNAL          ranks have different versions of gpuglue
 *  @retval GG_ERR_INTERRUPTED       the wait hook ended the wait */
GG_API gg_status gg_comm_create(const struct gg_comm_options *options, gg_comm **out);

/** Create communicators of the ranks that give the same color. All ranks call it. The new ones have the timeout, but neither a
 *  device nor a type name.
 *
 *  @param comm      a communicator of gg_comm_create or gg_comm_create_all
 *  @param color     0 or larger, or GG_COMM_NO_COLOR
 *  @param key       orders the ranks of the new communicator, then their ranks in @p comm
 *  @param[out] out  one reference; NULL with GG_COMM_NO_COLOR. Written on success only
 *  @return GG_OK, or an error of gg_comm_create
 *  @retval GG_ERR_COMMUNICATOR      a rank failed
 *  @retval GG_ERR_INVALID_ARGUMENT  color is negative, but not GG_COMM_NO_COLOR; or another rank calls another operation
 *  @retval GG_ERR_UNSUPPORTED       other code created the communicator
 *  @retval GG_ERR_FORKED            called in a child of the process that created it */
GG_API gg_status gg_comm_split(gg_comm *comm, int32_t color, int32_t key, gg_comm **out);

/** Add a reference.
 *
 *  @param comm  a communicator
 *  @return @p comm */
GG_API gg_comm *gg_comm_retain(gg_comm *comm);

/** Drop a reference. Dropping the last one closes this rank: ranks that need it later get GG_ERR_COMMUNICATOR.
 *
 *  @param comm  may be NULL */
GG_API void gg_comm_release(gg_comm *comm);

/** Make all waits of all ranks in this communicator fail with GG_ERR_COMMUNICATOR, now or when they begin. Never waits.
 *
 *  @param comm  a communicator
 *  @return GG_OK
 *  @retval GG_ERR_FORKED  called in a child of the process that created it */
GG_API gg_status gg_comm_abort(gg_comm *comm);

/** This process's rank.
 *
 *  @param comm  a communicator
 *  @return 0 to size - 1 */
GG_API int32_t gg_comm_rank(gg_comm *comm);

/** The number of ranks.
 *
 *  @param comm  a communicator
 *  @return 1 to GG_COMM_SIZE_MAX */
GG_API int32_t gg_comm_size(gg_comm *comm);

/** Name the type of the elements that this rank's following operations move or combine, such as "<f4". Ranks compare the
 *  names as they compare sizes: if two differ, they get GG_ERR_INVALID_ARGUMENT, and nothing is copied. A rank without a name,
 *  as each is at first, agrees with all.
 *
 *  @param comm  a communicator
 *  @param name  at most GG_COMM_TYPE_NAME_SIZE - 1 bytes, which are copied; NULL or "": none
 *  @return GG_OK
 *  @retval GG_ERR_INVALID_ARGUMENT  the name is too long, or another thread is in an operation
 *  @retval GG_ERR_FORKED            called in a child of the process that created it */
GG_API gg_status gg_comm_set_type_name(gg_comm *comm, const char *name);

/** Change the limit of each wait for another rank that begins later. Any thread may call it.
 *
 *  @param comm        a communicator
 *  @param timeout_ns  as gg_comm_options::timeout_ns
 *  @return GG_OK
 *  @retval GG_ERR_FORKED  called in a child of the process that created it */
GG_API gg_status gg_comm_set_timeout(gg_comm *comm, uint64_t timeout_ns);

/** The ranks that the calling thread's last GG_ERR_COMMUNICATOR names, in ascending order.
 *
 *  @param[out] ranks  array of @p room ranks; NULL if @p room is 0
 *  @param room        length of @p ranks
 *  @return the number of failed ranks, which may be more than @p room; 0 if the failure names none */
GG_API size_t gg_comm_failed_ranks(int32_t *ranks, size_t room);

/** @name Collective operations
 *  All ranks call them in the same order, with the same sizes, types, operators and roots; if they differ, all ranks get
 *  GG_ERR_INVALID_ARGUMENT, and the communicator remains usable. @p dst and @p src may be the same pointer, or one may be
 *  the calling rank's block of the other; otherwise they must not overlap. Both of a reduction are aligned to an element.
 *
 *  An argument that is wrong on one rank by itself, such as memory that overlaps, is an error on that rank only. The others
 *  wait for it until it calls the operation again, closes or aborts, or the timeout expires.
 *
 *  Each returns GG_OK, or
 *  - GG_ERR_COMMUNICATOR: a rank failed; gg_comm_failed_ranks names it
 *  - GG_ERR_INVALID_ARGUMENT: an argument is wrong, or ranks disagree
 *  - GG_ERR_INTERRUPTED: the wait hook ended the wait; the communicator is aborted
 *  - GG_ERR_FORKED: called in a child of the process that created it
 *  @{ */

/** Return when all ranks have called it. It does not wait for operations that are queued on devices.
 *
 *  @param comm  a communicator
 *  @return see above */
GG_API gg_status gg_comm_barrier(gg_comm *comm);

/** Copy data of one rank to all.
 *
 *  @param comm    a communicator
 *  @param dst     @p nbytes bytes
 *  @param src     @p nbytes bytes; used on the root only
 *  @param nbytes  size of the data
 *  @param root    the rank that has the data
 *  @return see above */
GG_API gg_status gg_comm_broadcast(gg_comm *comm, void *dst, const void *src, size_t nbytes,
                                   int32_t root);

/** Collect one block of each rank, in the order of the ranks, on all ranks.
 *
 *  @param comm    a communicator
 *  @param dst     size blocks
 *  @param src     one block
 *  @param nbytes  size of a block
 *  @return see above */
GG_API gg_status gg_comm_all_gather(gg_comm *comm, void *dst, const void *src, size_t nbytes);

/** Collect one block of each rank, in the order of the ranks, on one rank.
 *
 *  @param comm    a communicator
 *  @param dst     size blocks; used on the root only
 *  @param src     one block
 *  @param nbytes  size of a block
 *  @param root    the rank that collects
 *  @return see above */
GG_API gg_status gg_comm_gather(gg_comm *comm, void *dst, const void *src, size_t nbytes,
                                int32_t root);

/** Distribute the blocks of one rank: block r to rank r.
 *
 *  @param comm    a communicator
 *  @param dst     one block
 *  @param src     size blocks; used on the root only
 *  @param nbytes  size of a block
 *  @param root    the rank that distributes
 *  @return see above */
GG_API gg_status gg_comm_scatter(gg_comm *comm, void *dst, const void *src, size_t nbytes,
                                 int32_t root);

/** Exchange blocks: block q of rank p becomes block p of rank q.
 *
 *  @param comm    a communicator
 *  @param dst     size blocks
 *  @param src     size blocks
 *  @param nbytes  size of a block
 *  @return see above */
GG_API gg_status gg_comm_all_to_all(gg_comm *comm, void *dst, const void *src, size_t nbytes);

/** Combine arrays of all ranks element by element, on all ranks.
 *
 *  @param comm       a communicator
 *  @param dst        @p count elements
 *  @param src        @p count elements
 *  @param count      number of elements
 *  @param type       of the elements
 *  @param reduction  the operator
 *  @return see above */
GG_API gg_status gg_comm_all_reduce(gg_comm *comm, void *dst, const void *src, size_t count,
                                    gg_comm_type type, gg_comm_reduction reduction);

/** Combine arrays of all ranks element by element, on one rank.
 *
 *  @param comm       a communicator
 *  @param dst        @p count elements; used on the root only
 *  @param src        @p count elements
 *  @param count      number of elements
 *  @param type       of the elements
 *  @param reduction  the operator
 *  @param root       the rank that gets the result
 *  @return see above */
GG_API gg_status gg_comm_reduce(gg_comm *comm, void *dst, const void *src, size_t count,
                                gg_comm_type type, gg_comm_reduction reduction, int32_t root);

/** Combine arrays of all ranks element by element; rank r gets block r of the result.
 *
 *  @param comm       a communicator
 *  @param dst        @p count elements
 *  @param src        size blocks of @p count elements
 *  @param count      number of elements of a block
 *  @param type       of the elements
 *  @param reduction  the operator
 *  @return see above */
GG_API gg_status gg_comm_reduce_scatter(gg_comm *comm, void *dst, const void *src, size_t count,
                                        gg_comm_type type, gg_comm_reduction reduction);
/** @} */

/** @name Operations between two ranks
 *  A send and the receive that matches it must have the same size and type name; if not, both get
 *  GG_ERR_INVALID_ARGUMENT and nothing is copied. They return as collective operations do.
 *  @{ */

/** Send data. Returns when the other rank has received it.
 *
 *  @param comm    a communicator
 *  @param src     @p nbytes bytes
 *  @param nbytes  size of the data
 *  @param to      another rank
 *  @return see above */
GG_API gg_status gg_comm_send(gg_comm *comm, const void *src, size_t nbytes, int32_t to);

/** Receive data that another rank sends.
 *
 *  @param comm    a communicator
 *  @param dst     @p nbytes bytes
 *  @param nbytes  size of the data
 *  @param from    another rank
 *  @return see above */
GG_API gg_status gg_comm_recv(gg_comm *comm, void *dst, size_t nbytes, int32_t from);

/** Send and receive at the same time, as in a shift around a ring, where gg_comm_send and gg_comm_recv one after the other
 *  would wait forever. A rank may also exchange with itself.
 *
 *  @param comm        a communicator
 *  @param src         @p src_nbytes bytes; must not overlap @p dst
 *  @param src_nbytes  size of what is sent
 *  @param to          the rank that receives @p src
 *  @param dst         @p dst_nbytes bytes
 *  @param dst_nbytes  size of what is received
 *  @param from        the rank that sends to this one
 *  @return see above */
GG_API gg_status gg_comm_send_recv(gg_comm *comm, const void *src, size_t src_nbytes, int32_t to,
                                   void *dst, size_t dst_nbytes, int32_t from);
/** @} */

GG_END_DECLS
#endif
