/* sim_ze_list.c: Level Zero: immediate command lists, in order only with the flag of API 1.7. */
#include "sim_ze.h"
#include "sim_module.h"

enum { MOST_WAITS = 16 };

static int check_queue(const ze_command_queue_desc_t *desc)
{
    const uint32_t in_order = SIM_ZE_SINCE(7) ? SIM_ZE_QUEUE_IN_ORDER : 0;
    const uint32_t known = in_order | (SIM_ZE_SINCE(14) ? SIM_ZE_QUEUE_OFFLOAD : 0);
    const uint32_t compute = ze_has_copy_queue() ? 1 : 0; /* the group */
    if (desc->stype != ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC || desc->flags & ~known ||
        (int)desc->mode > ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS ||
        (int)desc->priority > ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH)
        return ZE_RESULT_ERROR_INVALID_ENUMERATION;
    if (desc->ordinal > compute || desc->index >= (desc->ordinal == compute ? SIM_ZE_QUEUES : 1))
        return SIM_INVALID;
    return desc->mode == ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS ? SIM_OK : SIM_UNSUPPORTED;
}

ze_result_t zeCommandListCreateImmediate(ze_context_handle_t hContext, ze_device_handle_t hDevice,
                                         const ze_command_queue_desc_t *altdesc,
                                         ze_command_list_handle_t *phCommandList)
{
    struct sim_context *context;
    struct sim_queue *list;
    int status;
    const ze_result_t result = ze_enter_context("zeCommandListCreateImmediate", hContext, &context);
    if (result)
        return result;
    struct sim_device *device = ze_device(hDevice);
    if (!device || !altdesc || !phCommandList)
        return ze_leave(device ? ZE_RESULT_ERROR_INVALID_NULL_POINTER
                               : ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    status = check_queue(altdesc);
    if (!status)
        status = sim_queue_create(device->primary, true, 0, &list);
    if (status)
        return ze_leave(status);
    list->loose = !(altdesc->flags & SIM_ZE_QUEUE_IN_ORDER);
    list->copies_only = ze_has_copy_queue() && altdesc->ordinal == 0;
    list->offloads = ze_has_copy_queue() && altdesc->flags & SIM_ZE_QUEUE_OFFLOAD;
    *phCommandList = (ze_command_list_handle_t)(void *)list;
    return ze_leave(SIM_OK);
}

ze_result_t zeCommandListDestroy(ze_command_list_handle_t hCommandList)
{
    struct sim_queue *list;
    ze_attempt(&sim_queues, hCommandList);
    const ze_result_t result = ze_enter("zeCommandListDestroy");
    if (result)
        return result;
    list = sim_table_find(&sim_queues, hCommandList);
    if (!list)
        return ze_leave(SIM_BAD_HANDLE);
    sim_list_destroy(list);
    return ze_leave(SIM_OK);
}

/* ---- appending */

struct events { /* as passed by the caller */
    ze_event_handle_t signal;
    uint32_t count;
    ze_event_handle_t *waits;
};

static int append(struct sim_queue *list, struct sim_append *what, const struct events *events)
{
    struct sim_event *waits[MOST_WAITS];
    if (events->count > MOST_WAITS || (events->count && !events->waits))
        return ZE_RESULT_ERROR_INVALID_SIZE;
    for (uint32_t i = 0; i < events->count; i++) {
        waits[i] = sim_table_find(&sim_events, events->waits[i]);
        if (!waits[i])
            return ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT;
    }
    what->signal = sim_table_find(&sim_events, events->signal);
    if (events->signal && !what->signal)
        return ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT;
    what->waits = waits;
    what->wait_count = events->count;
    if (list->capture) /* see sim_ze_graph.c */
        return events->signal || events->count ? SIM_CAPTURE_UNSUPPORTED
                                               : sim_capture_work(list, &what->work);
    sim_list_append(list, what);
    return SIM_OK;
}

static bool on_device(uint64_t address)
{
    const struct sim_alloc *alloc = sim_memory_find(address);
    return alloc && alloc->kind == SIM_DEVICE;
}

/* As CommandListCoreFamily::isCopyOffloadAllowed of intel/compute-runtime: a list that offloads its copies keeps those
 * within the memory of devices. */
static enum sim_unit unit_of(const struct sim_queue *list, const struct sim_region *copy)
{
    const bool offloads = list->offloads && !(on_device(copy->dst) && on_device(copy->src));
    return list->copies_only || offloads ? SIM_COPY_UNIT : SIM_COMPUTE_UNIT;
}

static bool valid_end(const void *pointer, size_t size, bool *tracked)
{
    const uint64_t address = (uintptr_t)pointer;
    *tracked = sim_memory_range(address, size) != NULL;
    return *tracked || (address && !sim_memory_reserved(address));
}

/* Memory of another device may be inaccessible. */
static bool reachable(const struct sim_queue *list, const void *pointer)
{
    const struct sim_alloc *alloc = sim_memory_find((uintptr_t)pointer);
    return !alloc || alloc->kind != SIM_DEVICE || alloc->device == list->context->device ||
           sim.peers != SIM_PEERS_APART;
}

ze_result_t zeCommandListAppendMemoryCopy(ze_command_list_handle_t hCommandList, void *dstptr,
                                          const void *srcptr, size_t size,
                                          ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                          ze_event_handle_t *phWaitEvents)
{
    const struct events events = {hSignalEvent, numWaitEvents, phWaitEvents};
    struct sim_append what = {.work = {.kind = SIM_COPY}};
    struct sim_queue *list;
    const ze_result_t result = ze_enter_list("zeCommandListAppendMemoryCopy", hCommandList, &list);
    if (result)
        return result;
    what.work.copy = (struct sim_region){
        .dst = (uintptr_t)dstptr, .src = (uintptr_t)srcptr, .width = size, .height = 1, .depth = 1};
    if (!size || !valid_end(dstptr, size, &what.work.dst_tracked) ||
        !valid_end(srcptr, size, &what.work.src_tracked) || !reachable(list, dstptr) ||
        !reachable(list, srcptr))
        return ze_leave_list(list, SIM_INVALID);
    what.work.unit = unit_of(list, &what.work.copy);
    return ze_leave_list(list, append(list, &what, &events));
}

/* The start of a side. Depth 0 means one slice and ignores the slice pitch. */
static bool place(const struct sim_queue *list, const void *pointer, const ze_copy_region_t *region,
                  size_t pitch, size_t slice, uint64_t *address, bool *tracked)
{
    const size_t depth = region->depth ? region->depth : 1;
    const size_t start = region->originZ * slice + region->originY * pitch + region->originX;
    const char *first = (const char *)pointer + start;
    const size_t size = sim_region_span(region->width, region->height, depth, pitch, slice);
    *address = (uintptr_t)first;
    return pitch >= region->originX + region->width &&
           (!region->depth || slice >= pitch * region->height) && valid_end(first, size, tracked) &&
           reachable(list, first);
}

ze_result_t zeCommandListAppendMemoryCopyRegion(
    ze_command_list_handle_t hCommandList, void *dstptr, const ze_copy_region_t *dstRegion,
    uint32_t dstPitch, uint32_t dstSlicePitch, const void *srcptr,
    const ze_copy_region_t *srcRegion, uint32_t srcPitch, uint32_t srcSlicePitch,
    ze_event_handle_t hSignalEvent, uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents)
{
    const struct events events = {hSignalEvent, numWaitEvents, phWaitEvents};
    struct sim_append what = {.work = {.kind = SIM_COPY}};
    struct sim_region *copy = &what.work.copy;
    struct sim_queue *list;
    const ze_result_t result =
        ze_enter_list("zeCommandListAppendMemoryCopyRegion", hCommandList, &list);
    if (result)
        return result;
    if (!dstptr || !srcptr || !dstRegion || !srcRegion)
        return ze_leave_list(list, ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    *copy = (struct sim_region){.width = dstRegion->width,
                                .height = dstRegion->height,
                                .depth = dstRegion->depth ? dstRegion->depth : 1,
                                .dst_pitch = dstPitch,
                                .src_pitch = srcPitch,
                                .dst_slice = dstRegion->depth ? dstSlicePitch : 0,
                                .src_slice = dstRegion->depth ? srcSlicePitch : 0};
    if (!copy->width || !copy->height || srcRegion->width != dstRegion->width ||
        srcRegion->height != dstRegion->height || srcRegion->depth != dstRegion->depth ||
        !place(list, dstptr, dstRegion, dstPitch, copy->dst_slice, &copy->dst,
               &what.work.dst_tracked) ||
        !place(list, srcptr, srcRegion, srcPitch, copy->src_slice, &copy->src,
               &what.work.src_tracked))
        return ze_leave_list(list, SIM_INVALID);
    what.work.unit = unit_of(list, copy);
    return ze_leave_list(list, append(list, &what, &events));
}

static uint32_t value_of(const void *pattern, size_t size)
{
    const unsigned char *bytes = pattern;
    uint32_t value = 0;
    for (size_t i = size; i-- > 0;)
        value = value << 8 | bytes[i];
    return value;
}

ze_result_t zeCommandListAppendMemoryFill(ze_command_list_handle_t hCommandList, void *ptr,
                                          const void *pattern, size_t pattern_size, size_t size,
                                          ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                          ze_event_handle_t *phWaitEvents)
{
    const struct events events = {hSignalEvent, numWaitEvents, phWaitEvents};
    struct sim_append what = {.work = {.kind = SIM_FILL}};
    struct sim_queue *list;
    const ze_result_t result = ze_enter_list("zeCommandListAppendMemoryFill", hCommandList, &list);
    if (result)
        return result;
    if (!pattern || !pattern_size || pattern_size & (pattern_size - 1) ||
        pattern_size > (list->copies_only ? 1 : SIM_ZE_FILL_MOST) || !size || size % pattern_size)
        return ze_leave_list(list, ZE_RESULT_ERROR_INVALID_SIZE);
    if (!valid_end(ptr, size, &what.work.dst_tracked) || !what.work.dst_tracked ||
        !reachable(list, ptr))
        return ze_leave_list(list, SIM_INVALID);
    what.work.fill = (struct sim_fill){.dst = (uintptr_t)ptr,
                                       .width = size / pattern_size,
                                       .height = 1,
                                       .value = value_of(pattern, pattern_size),
                                       .element = (unsigned)pattern_size};
    what.work.unit = list->copies_only ? SIM_COPY_UNIT : SIM_COMPUTE_UNIT;
    return ze_leave_list(list, append(list, &what, &events));
}

static ze_result_t append_mark(const char *name, ze_command_list_handle_t handle, bool barrier,
                               const struct events *events)
{
    struct sim_append what = {.work = {.kind = SIM_MARK}, .barrier = barrier};
    struct sim_queue *list;
    const ze_result_t result = ze_enter_list(name, handle, &list);
    if (result)
        return result;
    return ze_leave_list(list, append(list, &what, events));
}

ze_result_t zeCommandListAppendBarrier(ze_command_list_handle_t hCommandList,
                                       ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                       ze_event_handle_t *phWaitEvents)
{
    const struct events events = {hSignalEvent, numWaitEvents, phWaitEvents};
    return append_mark("zeCommandListAppendBarrier", hCommandList, true, &events);
}

ze_result_t zeCommandListAppendSignalEvent(ze_command_list_handle_t hCommandList,
                                           ze_event_handle_t hEvent)
{
    const struct events events = {.signal = hEvent};
    return append_mark("zeCommandListAppendSignalEvent", hCommandList, false, &events);
}

ze_result_t zeCommandListAppendWaitOnEvents(ze_command_list_handle_t hCommandList,
                                            uint32_t numEvents, ze_event_handle_t *phEvents)
{
    const struct events events = {NULL, numEvents, phEvents};
    return append_mark("zeCommandListAppendWaitOnEvents", hCommandList, true, &events);
}

ze_result_t zeCommandListAppendWriteGlobalTimestamp(ze_command_list_handle_t hCommandList,
                                                    uint64_t *dstptr, ze_event_handle_t hSignalEvent,
                                                    uint32_t numWaitEvents,
                                                    ze_event_handle_t *phWaitEvents)
{
    const struct events events = {hSignalEvent, numWaitEvents, phWaitEvents};
    struct sim_append what = {.work = {.kind = SIM_TIME}};
    struct sim_queue *list;
    const ze_result_t result =
        ze_enter_list("zeCommandListAppendWriteGlobalTimestamp", hCommandList, &list);
    if (result)
        return result;
    what.work.word = (struct sim_word){
        .address = (uintptr_t)dstptr, .value = ((uint64_t)1 << 36) - 1, .bytes = 8};
    if (!valid_end(dstptr, 8, &what.work.dst_tracked) || !what.work.dst_tracked ||
        (uintptr_t)dstptr % 8)
        return ze_leave_list(list, SIM_INVALID);
    return ze_leave_list(list, append(list, &what, &events));
}

/* As appendMemoryPrefetch of intel/compute-runtime, which checks only that the pointer is in an allocation. */
ze_result_t zeCommandListAppendMemoryPrefetch(ze_command_list_handle_t hCommandList,
                                              const void *ptr, size_t size)
{
    const struct events none = {NULL, 0, NULL};
    struct sim_append what = {.work = {.kind = SIM_MARK}};
    struct sim_queue *list;
    const ze_result_t result =
        ze_enter_list("zeCommandListAppendMemoryPrefetch", hCommandList, &list);
    if (result)
        return result;
    if (!ptr || !sim_memory_range((uintptr_t)ptr, size))
        return ze_leave_list(list, SIM_INVALID);
    return ze_leave_list(list, append(list, &what, &none));
}

/* As appendMemAdvise there: it applies at once, and needs shared memory. 8 and 9 are advice of 1.4: before that the
 * specification has 7 as the largest. */
ze_result_t zeCommandListAppendMemAdvise(ze_command_list_handle_t hCommandList,
                                         ze_device_handle_t hDevice, const void *ptr, size_t size,
                                         ze_memory_advice_t advice)
{
    struct sim_queue *list;
    const ze_result_t result = ze_enter_list("zeCommandListAppendMemAdvise", hCommandList, &list);
    if (result)
        return result;
    const struct sim_alloc *alloc = sim_memory_range((uintptr_t)ptr, size);
    if ((int)advice > (SIM_ZE_SINCE(4) ? 9 : ZE_MEMORY_ADVICE_BIAS_UNCACHED))
        return ze_leave_list(list, ZE_RESULT_ERROR_INVALID_ENUMERATION);
    if (!ze_device(hDevice) || !alloc || alloc->kind != SIM_MANAGED)
        return ze_leave_list(list, SIM_INVALID);
    if (list->capture)
        return ze_leave_list(list, sim_capture_work(list, &(struct sim_work){.kind = SIM_MARK}));
    return ze_leave_list(list, SIM_OK);
}

ze_result_t sim_zeCommandListAppendHostFunction(ze_command_list_handle_t hCommandList,
                                                void (*function)(void *), void *data,
                                                const void *next, ze_event_handle_t signal,
                                                uint32_t count, ze_event_handle_t *waits)
{
    const struct events events = {signal, count, waits};
    struct sim_append what = {.work = {.kind = SIM_HOST}};
    struct sim_queue *list;
    const ze_result_t result = ze_enter_list("zeCommandListAppendHostFunction", hCommandList, &list);
    if (result)
        return result;
    if (!SIM_ZE_SINCE(17) || next)
        return ze_leave_list(list, SIM_UNSUPPORTED);
    what.work.host.run = function;
    what.work.host.data = data;
    return ze_leave_list(list, append(list, &what, &events));
}

ze_result_t zeCommandListAppendLaunchKernel(ze_command_list_handle_t hCommandList,
                                            ze_kernel_handle_t hKernel,
                                            const ze_group_count_t *pLaunchFuncArgs,
                                            ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                            ze_event_handle_t *phWaitEvents)
{
    const struct events events = {hSignalEvent, numWaitEvents, phWaitEvents};
    struct sim_append what = {0};
    struct sim_queue *list;
    int status = SIM_BAD_HANDLE;
    const ze_result_t result = ze_enter_list("zeCommandListAppendLaunchKernel", hCommandList, &list);
    if (result)
        return result;
    if (list->copies_only)
        return ze_leave_list(list, ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE);
    const struct sim_function *function = sim_table_find(&sim_functions, hKernel);
    if (function && pLaunchFuncArgs)
        status = ze_prepare(list, function, pLaunchFuncArgs, &what.work);
    return ze_leave_list(list, status ? status : append(list, &what, &events));
}

ze_result_t zeCommandListAppendLaunchCooperativeKernel(ze_command_list_handle_t hCommandList,
                                                       ze_kernel_handle_t hKernel,
                                                       const ze_group_count_t *pLaunchFuncArgs,
                                                       ze_event_handle_t hSignalEvent,
                                                       uint32_t numWaitEvents,
                                                       ze_event_handle_t *phWaitEvents)
{
    const struct events events = {hSignalEvent, numWaitEvents, phWaitEvents};
    struct sim_append what = {0};
    struct sim_queue *list;
    int status = SIM_BAD_HANDLE;
    const ze_result_t result =
        ze_enter_list("zeCommandListAppendLaunchCooperativeKernel", hCommandList, &list);
    if (result)
        return result;
    if (!SIM_ZE_COOPERATIVE)
        return ze_leave_list(list, SIM_UNSUPPORTED);
    if (list->copies_only)
        return ze_leave_list(list, ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE);
    const struct sim_function *function = sim_table_find(&sim_functions, hKernel);
    const ze_group_count_t *groups = pLaunchFuncArgs;
    if (function && groups)
        status = ze_prepare(list, function, groups, &what.work);
    if (!status && (uint64_t)groups->groupCountX * groups->groupCountY * groups->groupCountZ >
                       ze_most_groups(function))
        status = SIM_INVALID;
    return ze_leave_list(list, status ? status : append(list, &what, &events));
}

/* ---- queries */

/* It counts as a use of the list: where it succeeds, intel/compute-runtime (CommandListCoreFamilyImmediate::
 * hostSynchronize) changes what appends change, without a lock. */
ze_result_t sim_zeCommandListHostSynchronize(ze_command_list_handle_t hCommandList, uint64_t timeout)
{
    struct sim_queue *list;
    const ze_result_t result = ze_enter_list("zeCommandListHostSynchronize", hCommandList, &list);
    if (result)
        return result;
    if (!SIM_ZE_SINCE(6) || list->capture)
        return ze_leave_list(list, list->capture ? SIM_CAPTURE_UNSUPPORTED : SIM_UNSUPPORTED);
    if (!timeout && !sim_list_poll(list))
        return ze_leave_list(list, SIM_NOT_READY);
    return ze_leave_list(list, timeout ? sim_list_wait(list, timeout) : list->context->lost);
}

ze_result_t sim_zeCommandListIsImmediate(ze_command_list_handle_t hCommandList, ze_bool_t *immediate)
{
    const ze_result_t result = ze_enter("zeCommandListIsImmediate");
    if (result)
        return result;
    if (!sim_table_find(&sim_queues, hCommandList))
        return ze_leave(SIM_BAD_HANDLE);
    if (!SIM_ZE_SINCE(9))
        return ze_leave(SIM_UNSUPPORTED);
    *immediate = 1;
    return ze_leave(SIM_OK);
}

ze_result_t sim_zeCommandListGetDeviceHandle(ze_command_list_handle_t hCommandList,
                                             ze_device_handle_t *phDevice)
{
    const ze_result_t result = ze_enter("zeCommandListGetDeviceHandle");
    if (result)
        return result;
    const struct sim_queue *list = sim_table_find(&sim_queues, hCommandList);
    if (!list || !SIM_ZE_SINCE(9))
        return ze_leave(list ? SIM_UNSUPPORTED : SIM_BAD_HANDLE);
    *phDevice = (ze_device_handle_t)(void *)list->context->device;
    return ze_leave(SIM_OK);
}
