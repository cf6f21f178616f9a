/** @file
 *  What a device is doing now: load, memory, power, temperature, clocks, processes.
 *
 *  @par Ordering
 *  Nothing here orders work, or waits for it.
 *  @par Threads
 *  Any thread. No lock is held while the vendor's library works. */
#ifndef GG_STATS_H
#define GG_STATS_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

#define GG_THROTTLES(X)                                                                      \
    X(IDLE, 0, "idle")         /**< there is no work */                                      \
    X(SETTING, 1, "setting")   /**< a limit that a user or an administrator set */           \
    X(POWER, 2, "power")       /**< the power limit */                                       \
    X(THERMAL, 3, "thermal")   /**< the temperature */                                       \
    X(HARDWARE, 4, "hardware") /**< the hardware, for a cause that the vendor leaves open */ \
    X(SYNC, 5, "sync")         /**< kept equal to the clocks of other devices */             \
    X(CURRENT, 6, "current")   /**< the current limit */                                     \
    X(SUPPLY, 7, "supply")     /**< the power supply requested it */
#define GG_THROTTLE_ENUM(name, bit, word) GG_THROTTLE_##name = 1 << bit,
/** Why the clocks are lower than they could be. */
enum gg_throttle {
    GG_THROTTLES(GG_THROTTLE_ENUM) GG_THROTTLE_UNKNOWN = 1 << 30 /**< the vendor does not report it */
};
#undef GG_THROTTLE_ENUM

/** A process that uses a device. */
struct gg_process_stats {
    uint32_t pid;      /**< in the vendor's view, which in a container may be the host's */
    uint32_t reserved; /**< 0 */
    uint64_t memory;   /**< bytes of device memory; UINT64_MAX: unknown */
};

/** Values of a device. One that the vendor does not report is unknown: NaN, UINT64_MAX for bytes, -1 for the count of
 *  processes, GG_THROTTLE_UNKNOWN alone for the throttle reasons. */
struct gg_device_stats {
    uint32_t struct_size;               /**< sizeof(struct gg_device_stats) */
    uint32_t throttle_reasons;          /**< of enum gg_throttle */
    double compute_utilization,         /**< % of time with work */
        memory_utilization;             /**< % of time with accesses to memory */
    uint64_t memory_used,               /**< bytes, of all processes */
        memory_total;                   /**< bytes */
    double power;                       /**< W */
    double temperature;                 /**< degrees Celsius */
    double compute_clock,               /**< MHz */
        memory_clock;                   /**< MHz */
    struct gg_process_stats *processes; /**< set by the caller: array of process_room entries, or NULL */
    uint32_t process_room;              /**< set by the caller */
    int32_t process_count;              /**< of all processes; may be more than process_room */
    char source[32];                    /**< where the values come from, such as "NVML" */
};

/** Read the values from the vendor's management library, which is loaded at the first call and need not be installed
 *  otherwise. Needs no context. Where the vendor has counters only (the processor's load; on some devices also load and
 *  power), a value is the mean since the previous call in this process, and unknown at the first call.
 *
 *  @param device         any device
 *  @param[in,out] stats  set its struct_size, processes and process_room first
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_UNSUPPORTED       the plugin has no statistics, the library is missing or does not know the device (the
 *                                   message names what was tried)
 *  @retval GG_ERR_INVALID_ARGUMENT  struct_size is too small */
GG_API gg_status gg_device_stats(gg_device *device, struct gg_device_stats *stats);

/** Name of one throttle reason.
 *
 *  @param reason  one bit of enum gg_throttle
 *  @return such as "thermal"; NULL for an unknown bit; static */
GG_API const char *gg_throttle_name(uint32_t reason);

GG_END_DECLS
#endif
