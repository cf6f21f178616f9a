/* steps_device.c: backends, devices and their properties, new streams and events, the shutdown. */
#include "program.h"

#include <stdio.h>
#include <string.h>

static int probe(enum gg_probe_level level)
{
    struct gg_reports *reports = NULL;
    const gg_status status = gg_probe(level, &reports);
    if (!status)
        gg_reports_free(reports);
    return (int)status;
}

static int probe_passively(struct program *p, union output *out)
{
    (void)p, (void)out;
    return probe(GG_PASSIVE);
}

static int probe_actively(struct program *p, union output *out)
{
    (void)p, (void)out;
    return probe(GG_ACTIVE);
}

static int count_devices(struct program *p, union output *out)
{
    return (int)gg_device_count(p->backend, &out->numbers[0]);
}

static int get_device(struct program *p, union output *out)
{
    const gg_status status = gg_device_get(p->backend, 0, &out->device);
    if (!status)
        p->device = out->device;
    return (int)status;
}

static int get_other_device(struct program *p, union output *out)
{
    const gg_status status = p->device ? gg_device_get(p->backend, 1, &out->device) : GG_OK;
    if (!p->device)
        return SKIPPED;
    if (!status)
        p->other = out->device;
    return (int)status;
}

static int query_info(struct program *p, union output *out)
{
    if (!p->device)
        return SKIPPED;
    out->info.struct_size = sizeof out->info;
    p->sized = true;
    return (int)gg_device_info(p->device, &out->info);
}

static int find_by_address(struct program *p, union output *out)
{
    struct gg_device_info info = {.struct_size = sizeof info};
    char name[64];
    if (!p->device || gg_device_info(p->device, &info) || !info.pci_bus_id[0])
        return SKIPPED;
    snprintf(name, sizeof name, "pci:%s", info.pci_bus_id);
    return (int)gg_device_find(name, &out->device);
}

/* Queries all attributes. One that a device lacks is unsupported, with or without a fault. */
static int query_attributes(struct program *p, union output *out)
{
    gg_status status = GG_OK;
    if (!p->device)
        return SKIPPED;
    for (int i = 0; i < GG_ATTR_COUNT && (!status || status == GG_ERR_UNSUPPORTED); i++) {
        int64_t value = 0;
        status = gg_device_attribute(p->device, (gg_attribute)i, &value);
        if (status && value)
            p->wrong = "a failed call wrote an attribute";
    }
    (void)out;
    return status == GG_ERR_UNSUPPORTED ? GG_OK : (int)status;
}

static int query_current(struct program *p, union output *out)
{
    return p->device ? (int)gg_current_device(&out->device) : SKIPPED;
}

static int query_priorities(struct program *p, union output *out)
{
    return p->device ? (int)gg_stream_priority_range(p->device, &out->numbers[0], &out->numbers[1])
                     : SKIPPED;
}

static int query_memory(struct program *p, union output *out)
{
    return p->device ? (int)gg_device_memory_info(p->device, &out->handles[0], &out->handles[1])
                     : SKIPPED;
}

/* Without the vendor's management library it is unsupported, with or without a fault. */
static int query_stats(struct program *p, union output *out)
{
    if (!p->device)
        return SKIPPED;
    struct gg_device_stats stats = {.struct_size = sizeof stats};
    const gg_status status = gg_device_stats(p->device, &stats);
    (void)out;
    return status == GG_ERR_UNSUPPORTED ? GG_OK : (int)status;
}

static int query_native(struct program *p, union output *out)
{
    return p->device ? (int)gg_device_native(p->device, out->handles) : SKIPPED;
}

static int query_what_is_supported(struct program *p, union output *out)
{
    (void)out;
    if (!p->device)
        return SKIPPED;
    for (int op = 0; op < GG_OP_COUNT; op++)
        gg_device_supports(p->device, (gg_op)op);
    return GG_OK;
}

static int query_default_stream(struct program *p, union output *out)
{
    return p->device ? (int)gg_device_default_stream(p->device, &out->stream) : SKIPPED;
}

/* ---- streams and events ---- */

static int create_stream(struct program *p, union output *out, uint32_t flags, int32_t priority,
                         gg_stream **stream)
{
    if (!p->device)
        return SKIPPED;
    const gg_status status = gg_stream_create(p->device, flags, priority, &out->stream);
    if (!status)
        *stream = out->stream;
    return (int)status;
}

static int create_first_stream(struct program *p, union output *out)
{
    return create_stream(p, out, GG_STREAM_NONBLOCKING, 0, &p->first);
}

static int create_second_stream(struct program *p, union output *out)
{
    return create_stream(p, out, 0, 0, &p->second);
}

static int create_urgent_stream(struct program *p, union output *out)
{
    return create_stream(p, out, GG_STREAM_NONBLOCKING, -1, &p->urgent);
}

static int create_event(struct program *p, union output *out, uint32_t flags, gg_event **event)
{
    if (!p->device)
        return SKIPPED;
    const gg_status status = gg_event_create(p->device, flags, &out->event);
    if (!status)
        *event = out->event;
    return (int)status;
}

static int create_plain_event(struct program *p, union output *out)
{
    return create_event(p, out, 0, &p->plain);
}

static int create_blocking_event(struct program *p, union output *out)
{
    return create_event(p, out, GG_EVENT_BLOCKING, &p->blocking);
}

static int create_start_event(struct program *p, union output *out)
{
    return create_event(p, out, GG_EVENT_TIMING, &p->start);
}

static int create_stop_event(struct program *p, union output *out)
{
    return create_event(p, out, GG_EVENT_TIMING | GG_EVENT_BLOCKING, &p->stop);
}

static const struct step begin[] = {
    {"probe passively", probe_passively, GG_OK},
    {"probe actively", probe_actively, GG_OK},
    {"count devices", count_devices, GG_OK},
    {"get a device", get_device, GG_OK},
    {"get another device", get_other_device, GG_OK},
    {"device info", query_info, GG_OK},
    {"find a device by its address", find_by_address, GG_OK},
    {"attributes", query_attributes, GG_OK},
    {"current device", query_current, GG_OK},
    {"priority range", query_priorities, GG_OK},
    {"memory info", query_memory, GG_OK},
    {"native handles of the device", query_native, GG_OK},
    {"statistics", query_stats, GG_OK},
    {"supported features", query_what_is_supported, GG_OK},
    {"default stream", query_default_stream, GG_OK},
    {"create a stream", create_first_stream, GG_OK},
    {"create a blocking stream", create_second_stream, GG_OK},
    {"create a high-priority stream", create_urgent_stream, GG_OK},
    {"create an event", create_plain_event, GG_OK},
    {"create a blocking event", create_blocking_event, GG_OK},
    {"create a timing event", create_start_event, GG_OK},
    {"create a blocking timing event", create_stop_event, GG_OK},
};
const struct steps device_steps = {begin, sizeof begin / sizeof begin[0]};

/* ---- the shutdown ---- */

static int release_all(struct program *p, union output *out)
{
    gg_memory *memories[] = {p->small,   p->large,         p->second_block,
                             p->pinned,  p->pinned_second, p->empty,
                             p->wrapped, p->managed,       p->memory_of_other};
    gg_event *events[] = {p->plain, p->blocking,       p->start,
                          p->stop,  p->borrowed_event, p->event_of_other};
    gg_stream *streams[] = {p->first,     p->second,  p->urgent,  p->borrowed,
                            p->ownerless, p->foreign, p->of_other};
    (void)out;
    for (size_t i = 0; i < sizeof memories / sizeof memories[0]; i++)
        gg_memory_release(memories[i]);
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        gg_event_release(events[i]);
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++)
        gg_stream_release(streams[i]);
    return GG_OK;
}

static int synchronize(struct program *p, union output *out)
{
    (void)out;
    return p->device ? (int)gg_device_synchronize(p->device) : SKIPPED;
}

/* Where memory is freed in the order of a stream, that is queued there until something waits for it. */
static int synchronize_other(struct program *p, union output *out)
{
    (void)out;
    return p->other ? (int)gg_device_synchronize(p->other) : SKIPPED;
}

static int trim(struct program *p, union output *out)
{
    (void)out;
    return p->device ? (int)gg_device_trim(p->device) : SKIPPED;
}

static int shut_down(struct program *p, union output *out)
{
    (void)out;
    gg_shutdown(2000000000u);
    if (atomic_load(&p->released) > p->given)
        p->wrong = "an owner was released twice";
    return GG_OK;
}

static const struct step end[] = {
    {"synchronize the device with all objects alive", synchronize, GG_OK},
    {"release everything", release_all, GG_OK},
    {"synchronize the device", synchronize, GG_OK},
    {"synchronize the other device", synchronize_other, GG_OK},
    {"synchronize the other device again", synchronize_other, GG_OK},
    {"trim", trim, GG_OK},
    {"shut down", shut_down, GG_OK},
};
const struct steps end_steps = {end, sizeof end / sizeof end[0]};
