/** @file
 *  Collective operations that devices execute: queued on streams, by the vendor's library.
 *
 *  A communicator (comm.h) exchanges host memory. gg_comm_open_device gives it a device on each rank, and lets all
 *  ranks agree on a library that exchanges device memory: NCCL for "cuda", RCCL for "hip". If they cannot all use one,
 *  the transport is "staged": the operations are those of the host, and devices copy from and to the memory that the
 *  ranks share.
 *
 *  @par Ordering
 *  With a library gg_comm_queue returns when the operation is queued. Without a stream it is ordered behind all known uses of its memory,
 *  as every operation is; with one, nothing but that stream's order is guaranteed.
 *  @par Failures
 *  A thread of the communicator checks ten times a second whether the other processes exist, and whether the library
 *  reports an error. If a rank ends while this rank's work is unfinished, or any rank aborts, the work on the device
 *  ends without a result. The next wait for the stream, and each later operation, returns GG_ERR_COMMUNICATOR, which
 *  names the rank. The timeout applies to each operation. It begins when the operation before it has ended. Up to four operations
 *  that are queued within a millisecond have the timeouts of all together. The error names the ranks that have not queued the
 *  operation, whose process does not run or whose device has not begun it, and no rank if none is seen to be behind.
 *  @par Threads
 *  As in comm.h. Operations of different communicators may be queued by different threads. */
#ifndef GG_COMM_DEVICE_H
#define GG_COMM_DEVICE_H

#include <gpuglue/comm.h>

GG_BEGIN_DECLS

/** The operations of gg_comm_queue. comm.h describes what each does. */
typedef enum gg_comm_operation {
    GG_COMM_BROADCAST = 0,      /**< gg_comm_broadcast */
    GG_COMM_ALL_GATHER = 1,     /**< gg_comm_all_gather */
    GG_COMM_GATHER = 2,         /**< gg_comm_gather */
    GG_COMM_SCATTER = 3,        /**< gg_comm_scatter */
    GG_COMM_ALL_TO_ALL = 4,     /**< gg_comm_all_to_all */
    GG_COMM_ALL_REDUCE = 5,     /**< gg_comm_all_reduce */
    GG_COMM_REDUCE = 6,         /**< gg_comm_reduce */
    GG_COMM_REDUCE_SCATTER = 7, /**< gg_comm_reduce_scatter */
    GG_COMM_SEND = 8,           /**< gg_comm_send to the rank `root` */
    GG_COMM_RECV = 9,           /**< gg_comm_recv from the rank `root` */
    GG_COMM_SEND_RECV = 10, /**< gg_comm_send_recv to the rank `root` and from the rank `from` */
} gg_comm_operation;

/** How gg_comm_open_device chooses a transport. All ranks pass the same values, except for the device. */
struct gg_comm_device_options {
    uint32_t struct_size; /**< sizeof(struct gg_comm_device_options) */
    uint32_t flags;       /**< 0 */
    gg_device *device; /**< of this rank; NULL: none, so that the transport is "host" or "staged" */
    const char *transport; /**< "auto", or NULL: a library if all ranks can use it, "host" if no rank has a device, else
                            *   "staged"; "host"; "staged"; or the name of a library, such as "nccl", without which the
                            *   call fails */
};

/** Let all ranks agree on a transport for device memory. All ranks call it, once, directly after gg_comm_create.
 *
 *  @param comm     a communicator
 *  @param options  the device, and the transport that the caller wants
 *  @return GG_OK; gg_comm_transport then returns the transport, and gg_comm_transport_reason why it is "staged"
 *  @retval GG_ERR_COMMUNICATOR      a rank failed, or the library did not connect the ranks within the timeout
 *  @retval GG_ERR_INVALID_ARGUMENT  there is no such transport, ranks want different ones, or it was called before
 *  @retval GG_ERR_UNSUPPORTED       the transport that was named cannot be used; the message has the reason
 *  @retval GG_ERR_INTERRUPTED       the wait hook ended the wait; the communicator is aborted */
GG_API gg_status gg_comm_open_device(gg_comm *comm, const struct gg_comm_device_options *options);

/** How to create the communicators of all ranks in one process. */
struct gg_comm_all_options {
    uint32_t struct_size; /**< sizeof(struct gg_comm_all_options) */
    int32_t size;         /**< number of ranks: 1 to GG_COMM_SIZE_MAX */
    gg_device *const *
        devices; /**< `size` devices, that of rank r at r, each of which may be NULL: none. NULL: none at all */
    const char *transport; /**< as in gg_comm_device_options; not used without devices */
    uint64_t timeout_ns; /**< of the creation, and of each wait for another rank; GG_FOREVER: none */
};

/** Create the communicators of all ranks in this process: one for each device. The result is that of gg_comm_create and
 *  gg_comm_open_device in one process for each rank, without a port. Each communicator is for a thread of its own: a
 *  thread that calls an operation of one rank waits until other threads call it for the others, or until the timeout.
 *
 *  All ranks end with the process, so nothing watches for ranks that end: a thread that ends early is a rank that does
 *  not take part in time. Only the last call of gg_comm_close_device waits for the other ranks, so one thread may close
 *  all.
 *
 *  @param options   the ranks
 *  @param[out] out  `size` references: that of rank r at r; written on success only
 *  @return GG_OK
 *  @retval GG_ERR_INVALID_ARGUMENT  size is outside its range, or there is no such transport
 *  @retval GG_ERR_COMMUNICATOR      the library failed, or did not connect the ranks within the timeout
 *  @retval GG_ERR_UNSUPPORTED       the transport that was named cannot be used; the message has the reason
 *  @retval GG_ERR_OUT_OF_MEMORY     there is not enough memory, or a thread cannot be started
 *  @retval GG_ERR_INTERRUPTED       the wait hook ended the wait */
GG_API gg_status gg_comm_create_all(const struct gg_comm_all_options *options, gg_comm **out);

/** The name of the transport of device memory.
 *
 *  @param comm  a communicator
 *  @return "host" before gg_comm_open_device; then "staged", or the library's name, such as "nccl" */
GG_API const char *gg_comm_transport(gg_comm *comm);

/** Why the transport is "staged", and why this rank's device cannot copy from and to the memory that the ranks share, so that
 *  a processor copies between that and pinned memory.
 *
 *  @param comm  a communicator
 *  @return valid as long as the communicator; "" if the transport is another one, or was requested and the device can copy */
GG_API const char *gg_comm_transport_reason(gg_comm *comm);

/** The library of the transport.
 *
 *  @param comm          a communicator
 *  @param[out] path     the library's file, which lives as long as the process; "" without a library
 *  @param[out] version  10000 * major + 100 * minor + patch; 0 without a library
 *  @return GG_OK */
GG_API gg_status gg_comm_library(gg_comm *comm, const char **path, int32_t *version);

/** Use a communicator of the vendor's library that other code has created. It has no other operations than those of this
 *  header. The other code must keep it, and destroy it after this one was released.
 *
 *  It has no timeout: see gg_comm_set_timeout. After a timeout or gg_comm_abort the waits of this process end with
 *  GG_ERR_COMMUNICATOR, which names no rank, but the work stays on the device until the other code aborts its communicator.
 *
 *  @param device    the device of this rank
 *  @param native    ncclComm_t
 *  @param[out] out  one reference
 *  @return GG_OK
 *  @retval GG_ERR_INVALID_ARGUMENT  the handle is 0, or belongs to another device
 *  @retval GG_ERR_UNSUPPORTED       the device's backend has no such library, or it cannot be used */
GG_API gg_status gg_comm_borrow(gg_device *device, uint64_t native, gg_comm **out);

/** The communicator of the vendor's library, for other code. It is valid until this one is released or fails.
 *
 *  @param comm         a communicator
 *  @param[out] native  ncclComm_t
 *  @return GG_OK
 *  @retval GG_ERR_UNSUPPORTED  the transport has no library */
GG_API gg_status gg_comm_native(gg_comm *comm, uint64_t *native);

/** An operation for gg_comm_queue. Sizes are in elements for reductions, and in bytes for all others. */
struct gg_comm_work {
    uint32_t struct_size;        /**< sizeof(struct gg_comm_work) */
    gg_comm_operation operation; /**< which one */
    gg_memory *dst;              /**< what it writes; NULL on ranks where it writes nothing */
    size_t dst_offset;           /**< in bytes */
    gg_memory *src;              /**< what it reads; NULL on ranks where it reads nothing */
    size_t src_offset;           /**< in bytes */
    size_t count;                /**< of a block */
    size_t dst_count;            /**< GG_COMM_SEND_RECV: of what is received */
    gg_comm_type type;           /**< of a reduction */
    gg_comm_reduction reduction; /**< of a reduction */
    int32_t root;                /**< the root, or the other rank of a message */
    int32_t from;                /**< GG_COMM_SEND_RECV: the rank that sends to this one */
    void *dst_host;       /**< without a library: memory of the host instead of `dst`, or NULL */
    const void *src_host; /**< without a library: memory of the host instead of `src`, or NULL */
};

/** Queue an operation on a stream. All ranks of the operation queue it in the same order, with sizes, types and roots that
 *  match: the library cannot compare them. Both memories are of the communicator's device. In place means the same address,
 *  or that of this rank's block. May be captured into a graph, on all ranks or on none.
 *
 *  Without a library the operation waits for the work of the stream, runs on the host, as those of comm.h do, and is
 *  complete when it returns: the device copies device memory, in parts, from and to the memory that the ranks share, or
 *  pinned buffers (see gg_comm_transport_reason), while the ranks exchange other parts. The ranks compare their calls,
 *  and each may pass memory of any device or of the host. The operation cannot be captured.
 *
 *  @param comm    a communicator
 *  @param work    the operation
 *  @param stream  a stream of the device; NULL: the current one, ordered behind the known uses of both memories
 *  @return GG_OK
 *  @retval GG_ERR_COMMUNICATOR      the communicator has failed, or the library cannot reach a rank
 *  @retval GG_ERR_INVALID_ARGUMENT  an argument is wrong
 *  @retval GG_ERR_UNSUPPORTED       the library cannot combine that type, or the transport has none and the stream is captured */
GG_API gg_status gg_comm_queue(gg_comm *comm, const struct gg_comm_work *work, gg_stream *stream);

/** Collect the operations of the calling thread that follow, until gg_comm_group_end: they begin there and progress at the same
 *  time, so that a rank may send and receive in any order, also to and from itself. Nothing orders them: gg_comm_queue returns
 *  GG_ERR_INVALID_ARGUMENT for one that writes memory which another of the group uses, or the reverse.
 *
 *  @param comm  a communicator
 *  @return GG_OK
 *  @retval GG_ERR_INVALID_ARGUMENT  a group has begun, or the transport has no library */
GG_API gg_status gg_comm_group_begin(gg_comm *comm);

/** Queue the operations of a group.
 *
 *  @param comm  a communicator
 *  @param drop  1: queue none of them, because one was not valid
 *  @return as gg_comm_queue */
GG_API gg_status gg_comm_group_end(gg_comm *comm, int32_t drop);

/** End the operations of the device: wait until those of this rank are complete, until no other rank has unfinished
 *  ones, and up to two seconds until all ranks have called it; then destroy the library's communicator. Without this
 *  call a thread does so after gg_comm_release. Operations on host memory remain possible. For a communicator of
 *  gg_comm_create_all it returns when the operations of this rank are complete, unless all other ranks have called it:
 *  a thread does the rest.
 *
 *  @param comm  a communicator
 *  @return GG_OK; also if the work failed, which the next wait for its stream reports
 *  @retval GG_ERR_INTERRUPTED  the wait hook ended the wait; a thread completes the call */
GG_API gg_status gg_comm_close_device(gg_comm *comm);

GG_END_DECLS
#endif
