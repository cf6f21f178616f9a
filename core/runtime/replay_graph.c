/* replay_graph.c: graphs that the core records: lists of operations, which a launch queues one after the other. If the
 * driver can record them, too, a graph that is launched again becomes one of the driver's, which a launch queues by one
 * call. */
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "runtime/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The core's own, where the backend defines none. */
struct gg_graph_impl {
    struct ggi_commands *commands; /* a reference */
    gg_stream **others;            /* one for each other device whose streams joined the capture */
    size_t other_count;
    enum {
        GRAPH_FRESH,    /* not launched since it was made or updated */
        GRAPH_LAUNCHED, /* once: the next launch makes the driver's graph */
        GRAPH_NATIVE,   /* launches use `native` */
        GRAPH_QUEUED    /* launches queue the operations */
    } state;
    struct gg_graph_impl *native; /* the backend's, which its launches may still use; or NULL */
};

/* ---- operations ---- */

static gg_status command_copy(const struct gg_backend_ops *ops, struct gg_stream_impl *stream,
                              const struct ggi_command *command)
{
    if (command->op == GG_OP_copy_region)
        return ops->copy_region(stream, command->copy.dst, command->copy.src, &command->copy.region,
                                command->copy.kind);
    if (command->op == GG_OP_copy_peer)
        return ops->copy_peer(stream, command->copy.dst_device, command->copy.dst,
                              command->copy.src_device, command->copy.src, command->copy.nbytes);
    return ops->copy(stream, command->copy.dst, command->copy.src, command->copy.nbytes,
                     command->copy.kind, command->copy.pageable);
}

static gg_status command_run(const struct gg_backend_ops *ops, struct gg_stream_impl *stream,
                             const struct ggi_command *command)
{
    if (command->op == GG_OP_kernel_launch)
        return ops->kernel_launch(stream, command->launch.kernel, command->launch.call);
    if (command->op == GG_OP_fill)
        return ops->fill(stream, command->fill.dst, command->fill.pattern, command->fill.size,
                         command->fill.count);
    if (command->op == GG_OP_stream_host_func)
        return ops->stream_host_func(stream, command->host.function, command->host.argument);
    return command_copy(ops, stream, command);
}

/* ---- the driver's graph ---- */

static bool driver_records(const gg_device *device)
{
    const struct gg_backend_ops *ops = device->ops;
    return ops->capture_begin && ops->capture_end && ops->graph_launch && ops->graph_destroy &&
           (!ops->device_supports ||
            ops->device_supports(atomic_load(&device->impl), GG_OP_capture_begin));
}

/* Of one device, since a driver may put all work on the device of the first stream; and without pageable memory, which
 * the driver would lock in place. One operation is one call anyway. */
static bool commands_fit(const struct ggi_commands *commands, const gg_device *device)
{
    uint32_t operations = 0;
    for (uint32_t i = 0; i < commands->count; i++) {
        const struct ggi_command *command = &commands->items[i];
        if (command->device != device || command->op == GG_OP_copy_peer ||
            (command->op == GG_OP_copy && command->copy.pageable))
            return false;
        operations += command->op != GG_OP_stream_wait_event;
    }
    return operations > 1;
}

/* One after the other, on a stream that nothing else uses. */
static gg_status native_record(const struct gg_backend_ops *ops, struct gg_stream_impl *stream,
                               const struct ggi_commands *commands, struct gg_graph_impl **out)
{
    gg_status status = ops->capture_begin(stream);
    if (status)
        return status;
    for (uint32_t i = 0; i < commands->count && !status; i++)
        if (commands->items[i].op != GG_OP_stream_wait_event)
            status = command_run(ops, stream, &commands->items[i]);
    const gg_status ended = ops->capture_end(stream, status ? NULL : out);
    return status ? status : ended;
}

static gg_status native_new(gg_device *device, const struct ggi_commands *commands,
                            struct gg_graph_impl **out)
{
    const struct gg_backend_ops *ops = device->ops;
    struct gg_stream_impl *stream = NULL;
    gg_status status =
        ops->stream_create(atomic_load(&device->impl), GG_STREAM_NONBLOCKING, 0, &stream);
    if (status)
        return status;
    status = native_record(ops, stream, commands, out);
    ops->stream_destroy(stream);
    return status;
}

/* Without it the launches queue the operations, and report what is wrong with them. */
static void graph_make_native(gg_device *device, struct gg_graph_impl *graph)
{
    graph->state = GRAPH_QUEUED;
    if (!driver_records(device) || !commands_fit(graph->commands, device))
        return;
    ggi_suppress_errors(1);
    const gg_status status = native_new(device, graph->commands, &graph->native);
    ggi_suppress_errors(-1);
    if (!status)
        graph->state = GRAPH_NATIVE;
    else
        ggi_log(GG_LOG_DEBUG, device->backend->name,
                "each launch of a graph queues its %u operations, since the driver has not "
                "recorded them: %s",
                (unsigned)graph->commands->count, ggi_error_record()->suppressed.message);
}

/* ---- launches ---- */

/* The work of each device is queued on a stream of that device. */
static gg_stream *graph_stream(const struct gg_graph_impl *graph, gg_stream *stream,
                               const struct gg_device *device)
{
    for (size_t i = 0; i < graph->other_count; i++)
        if (graph->others[i]->device == device)
            return graph->others[i];
    return stream;
}

static void launch_describe_error(const struct ggi_commands *commands, uint32_t index)
{
    struct gg_error *error = &ggi_error_record()->error;
    char before[sizeof error->message];
    if (ggi_error_record()->suppress_depth)
        return;
    memcpy(before, error->message, sizeof before);
    struct ggi_text text = ggi_text_begin(error->message, sizeof error->message);
    ggi_text_add(&text, "operation %u of the graph's %u, %s; those before it have been queued: %s",
                 (unsigned)index + 1, (unsigned)commands->count,
                 gg_op_name(commands->items[index].op), before);
}

static gg_status graph_queue(gg_stream *stream, struct gg_graph_impl *graph)
{
    const struct ggi_commands *commands = graph->commands;
    gg_stream *current = stream;
    gg_status status = GG_OK;
    for (uint32_t i = 0; i < commands->count && !status; i++) {
        const struct ggi_command *command = &commands->items[i];
        if (command->op == GG_OP_stream_wait_event)
            continue;
        gg_stream *on = graph_stream(graph, stream, command->device);
        if (on != current)
            status = ggi_stream_fence(on, current, false);
        current = on;
        if (!status)
            status = command_run(on->device->ops, on->impl, command);
        if (status)
            launch_describe_error(commands, i);
    }
    if (current != stream) {                 /* after a failure, too: the work may have begun */
        ggi_suppress_errors(status ? 1 : 0); /* the operation's error counts */
        const gg_status joined = ggi_stream_fence(stream, current, false);
        ggi_suppress_errors(status ? -1 : 0);
        status = status ? status : joined;
    }
    return status;
}

/* A borrowed stream may be of another kind than the one that was recorded. The driver's graph is made at the second launch,
 * so that one which is launched only once costs no more than its operations. */
gg_status ggi_replay_graph_launch(gg_stream *stream, struct gg_graph_impl *graph)
{
    if (stream->borrowed)
        return graph_queue(stream, graph);
    if (graph->state == GRAPH_LAUNCHED)
        graph_make_native(stream->device, graph);
    if (graph->state == GRAPH_NATIVE)
        return stream->device->ops->graph_launch(stream->impl, graph->native);
    const gg_status status = graph_queue(stream, graph);
    if (!status && graph->state == GRAPH_FRESH)
        graph->state = GRAPH_LAUNCHED;
    return status;
}

/* ---- graphs ---- */

static gg_status graph_add_device(struct gg_graph_impl *graph, struct gg_device *device)
{
    const size_t count = graph->other_count;
    gg_stream **others = realloc(graph->others, (count + 1) * sizeof *others);
    if (!others)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a graph");
    graph->others = others;
    const gg_status status = gg_stream_create(device, GG_STREAM_NONBLOCKING, 0, &others[count]);
    if (!status)
        graph->other_count++;
    return status;
}

static gg_status graph_add_devices(struct gg_graph_impl *graph, const struct gg_device *device)
{
    const struct ggi_commands *commands = graph->commands;
    gg_status status = GG_OK;
    for (uint32_t i = 0; i < commands->count && !status; i++) {
        struct gg_device *other = commands->items[i].device;
        if (other != device && !graph_stream(graph, NULL, other))
            status = graph_add_device(graph, other);
    }
    return status;
}

gg_status ggi_replay_graph_new(const struct gg_device *device, struct ggi_commands *commands,
                               struct gg_graph_impl **out)
{
    struct gg_graph_impl *graph = calloc(1, sizeof *graph);
    if (!graph) {
        ggi_commands_release(commands);
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a graph");
    }
    graph->commands = commands;
    const gg_status status = graph_add_devices(graph, device);
    if (status)
        ggi_replay_graph_destroy(device, graph);
    else
        *out = graph;
    return status;
}

/* As in drivers, only the operations, their order, and the direction of copies must be equal. */
static bool command_is_like(const struct ggi_command *one, const struct ggi_command *other)
{
    const bool copies = one->op == GG_OP_copy || one->op == GG_OP_copy_region;
    return one->op == other->op && one->device == other->device &&
           one->after[0] == other->after[0] && one->after[1] == other->after[1] &&
           (!copies || one->copy.kind == other->copy.kind);
}

gg_status ggi_replay_graph_update(struct gg_graph_impl *graph, struct gg_graph_impl *other)
{
    struct ggi_commands *mine = graph->commands, *others = other->commands;
    if (mine->count != others->count)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "the graphs differ: one has %u operations, the other %u; make a new graph",
                        (unsigned)mine->count, (unsigned)others->count);
    for (uint32_t i = 0; i < mine->count; i++)
        if (!command_is_like(&mine->items[i], &others->items[i]))
            return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                            "the graphs differ in operation %u, %s and %s, or in its order; make a "
                            "new graph",
                            (unsigned)i + 1, gg_op_name(mine->items[i].op),
                            gg_op_name(others->items[i].op));
    atomic_fetch_add(&others->refs, 1);
    graph->commands = others;
    graph->state = graph->native ? GRAPH_QUEUED : GRAPH_FRESH; /* its launches may be in flight */
    ggi_commands_release(mine);
    return GG_OK;
}

void ggi_replay_graph_destroy(const struct gg_device *device, struct gg_graph_impl *graph)
{
    if (graph->native)
        device->ops->graph_destroy(graph->native);
    for (size_t i = 0; i < graph->other_count; i++)
        gg_stream_release(graph->others[i]);
    ggi_commands_release(graph->commands);
    free(graph->others);
    free(graph);
}
