/* replay_graph.c: graphs of backends that have none: lists of operations, which a launch queues one after the other. */
#include "base/error.h"
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
};

/* ---- launches ---- */

static gg_status command_copy(gg_stream *stream, const struct ggi_command *command)
{
    const struct gg_backend_ops *ops = stream->device->ops;
    if (command->op == GG_OP_copy_region)
        return ops->copy_region(stream->impl, command->copy.dst, command->copy.src,
                                &command->copy.region, command->copy.kind);
    if (command->op == GG_OP_copy_peer)
        return ops->copy_peer(stream->impl, command->copy.dst_device, command->copy.dst,
                              command->copy.src_device, command->copy.src, command->copy.nbytes);
    return ops->copy(stream->impl, command->copy.dst, command->copy.src, command->copy.nbytes,
                     command->copy.kind, command->copy.pageable);
}

static gg_status command_run(gg_stream *stream, const struct ggi_command *command)
{
    const struct gg_backend_ops *ops = stream->device->ops;
    if (command->op == GG_OP_kernel_launch)
        return ops->kernel_launch(stream->impl, command->launch.kernel, command->launch.call);
    if (command->op == GG_OP_fill)
        return ops->fill(stream->impl, command->fill.dst, command->fill.pattern, command->fill.size,
                         command->fill.count);
    if (command->op == GG_OP_stream_host_func)
        return ops->stream_host_func(stream->impl, command->host.function, command->host.argument);
    return command_copy(stream, command);
}

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

gg_status ggi_replay_graph_launch(gg_stream *stream, struct gg_graph_impl *graph)
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
            status = command_run(on, command);
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
        ggi_replay_graph_destroy(graph);
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
    ggi_commands_release(mine);
    return GG_OK;
}

void ggi_replay_graph_destroy(struct gg_graph_impl *graph)
{
    for (size_t i = 0; i < graph->other_count; i++)
        gg_stream_release(graph->others[i]);
    ggi_commands_release(graph->commands);
    free(graph->others);
    free(graph);
}
