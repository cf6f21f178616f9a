/* replay.c: captures of streams whose backend has none: which streams and events belong to them, and what they record.
 */
#include "base/error.h"
#include "runtime/replay.h"

#include <stdlib.h>
#include <string.h>

/* A stream in a capture. */
struct branch {
    struct branch *next;
    gg_stream *stream; /* a reference to one of its handles */
    uint32_t last;     /* command; 0: none */
};

/* An event that was recorded in a capture. */
struct point {
    struct point *next;
    const struct gg_event_impl *event;
    const struct branch *branch;
    uint32_t at; /* command; 0: the begin */
};

struct replay {
    struct replay *next;
    uint64_t id;
    struct branch *origin, *branches; /* the first one is the last of the list */
    struct point *points;             /* the newest comes first */
    struct ggi_commands *commands;
    void (*release)(gg_stream *stream);
    bool invalid;
};

_Atomic(int) ggi_captures;

/* No other lock is taken under it, and no call of a backend is made. */
static pthread_mutex_t replay_lock = PTHREAD_MUTEX_INITIALIZER;
GGI_RESET_IN_CHILD(replay_lock)
static struct replay *replays; /* under the lock, as: */
static uint64_t last_id;

/* ---- commands ---- */

static struct ggi_commands *commands_new(void)
{
    struct ggi_commands *commands = calloc(1, sizeof *commands);
    if (commands)
        atomic_init(&commands->refs, 1);
    return commands;
}

void ggi_commands_release(struct ggi_commands *commands)
{
    if (!commands || atomic_fetch_sub(&commands->refs, 1) != 1)
        return;
    for (uint32_t i = 0; i < commands->count; i++)
        if (commands->items[i].op == GG_OP_kernel_launch)
            free(commands->items[i].launch.call);
    free(commands->items);
    free(commands);
}

static bool commands_reserve(struct ggi_commands *commands)
{
    if (commands->count < commands->room)
        return true;
    const uint32_t room = commands->room ? 2 * commands->room : 16;
    struct ggi_command *items =
        room > commands->room ? realloc(commands->items, room * sizeof *items) : NULL;
    if (!items)
        return false;
    commands->items = items;
    commands->room = room;
    return true;
}

static gg_status commands_add(struct ggi_commands *commands, const struct ggi_command *command,
                              uint32_t *number)
{
    if (!commands_reserve(commands))
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for operation %u of a capture",
                        (unsigned)commands->count + 1);
    commands->items[commands->count++] = *command;
    *number = commands->count;
    return GG_OK;
}

/* Each follows only commands with smaller numbers. */
static gg_status commands_check_end(const struct ggi_commands *commands, uint32_t last)
{
    const uint32_t count = commands->count;
    char *reached = calloc((size_t)count + 1, 1);
    uint32_t found = 0;
    if (!reached)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory to end a capture");
    reached[last] = 1;
    for (uint32_t i = count; i > 0; i--) {
        if (!reached[i])
            continue;
        reached[commands->items[i - 1].after[0]] = 1;
        reached[commands->items[i - 1].after[1]] = 1;
        found++;
    }
    free(reached);
    return found == count
               ? GG_OK
               : ggi_fail(GG_ERR_UNSUPPORTED,
                          "stream is capturing: a stream that joined the capture has work that the "
                          "first stream does not wait for: let it wait before the end");
}

/* ---- finding ---- */

/* By which other code knows it; 0: it does not. */
static uint64_t stream_handle(const gg_stream *stream)
{
    return stream->native ? stream->native
                          : atomic_load_explicit(&((gg_stream *)(uintptr_t)stream)->handle,
                                                 memory_order_relaxed);
}

static bool stream_is(const gg_stream *one, const gg_stream *other)
{
    return one == other || (one->device == other->device && stream_handle(one) &&
                            stream_handle(one) == stream_handle(other));
}

/* With the lock held. */
static struct branch *branch_find(const gg_stream *stream, struct replay **out)
{
    for (*out = replays; *out; *out = (*out)->next)
        for (struct branch *branch = (*out)->branches; branch; branch = branch->next)
            if (stream_is(branch->stream, stream))
                return branch;
    return NULL;
}

/* With the lock held: the link to the point. */
static struct point **point_find(const struct gg_event_impl *event, struct replay **out)
{
    for (*out = replays; *out; *out = (*out)->next)
        for (struct point **at = &(*out)->points; *at; at = &(*at)->next)
            if ((*at)->event == event)
                return at;
    return NULL;
}

bool ggi_replay_is_capturing(const gg_stream *stream)
{
    struct replay *replay;
    if (!stream->device->replays || stream->is_default)
        return false;
    pthread_mutex_lock(&replay_lock);
    const bool found = branch_find(stream, &replay);
    pthread_mutex_unlock(&replay_lock);
    return found;
}

gg_status ggi_replay_capture_id(gg_stream *stream, uint64_t *id)
{
    struct replay *replay;
    pthread_mutex_lock(&replay_lock);
    *id = branch_find(stream, &replay) && !replay->invalid ? replay->id : 0;
    pthread_mutex_unlock(&replay_lock);
    return GG_OK;
}

/* ---- begin and end ---- */

/* With the lock held. */
static struct branch *branch_add(struct replay *replay, gg_stream *stream)
{
    struct branch *branch = malloc(sizeof *branch);
    if (!branch)
        return NULL;
    atomic_fetch_add(&stream->refs, 1);
    *branch = (struct branch){.next = replay->branches, .stream = stream};
    replay->branches = branch;
    return branch;
}

static void replay_free(struct replay *replay)
{
    struct branch *branch = replay->branches, *next_branch;
    struct point *point = replay->points, *next_point;
    for (; branch; branch = next_branch) {
        next_branch = branch->next;
        replay->release(branch->stream);
        free(branch);
    }
    for (; point; point = next_point) {
        next_point = point->next;
        free(point);
    }
    ggi_commands_release(replay->commands);
    free(replay);
}

gg_status ggi_replay_capture_begin(gg_stream *stream, void (*release)(gg_stream *stream))
{
    struct replay *replay = calloc(1, sizeof *replay);
    if (replay)
        replay->release = release;
    if (replay)
        replay->commands = commands_new();
    if (replay && replay->commands)
        replay->origin = branch_add(replay, stream);
    if (!replay || !replay->origin) {
        if (replay)
            replay_free(replay);
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a capture");
    }
    pthread_mutex_lock(&replay_lock);
    replay->id = ++last_id;
    replay->next = replays;
    replays = replay;
    pthread_mutex_unlock(&replay_lock);
    return GG_OK;
}

/* The capture that began on the stream, which is over. */
static struct replay *replay_take(const gg_stream *stream)
{
    pthread_mutex_lock(&replay_lock);
    struct replay **at = &replays;
    while (*at && (*at)->origin->stream != stream)
        at = &(*at)->next;
    struct replay *replay = *at;
    if (replay)
        *at = replay->next;
    pthread_mutex_unlock(&replay_lock);
    return replay;
}

static gg_status replay_fail_invalid(void)
{
    return ggi_fail(GG_ERR_UNSUPPORTED,
                    "stream is capturing: an earlier call has invalidated the capture: end it, and "
                    "capture the work again without that call");
}

/* Each stream that joined has a command, so even a stream without work must be joined again. */
static gg_status replay_check(const struct replay *replay)
{
    if (replay->invalid)
        return replay_fail_invalid();
    return commands_check_end(replay->commands, replay->origin->last);
}

gg_status ggi_replay_capture_end(gg_stream *stream, struct ggi_commands **out)
{
    struct replay *replay = replay_take(stream);
    if (!replay)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "the stream is not being captured");
    gg_status status = replay_check(replay);
    if (!status && out) {
        *out = replay->commands;
        replay->commands = NULL;
    }
    replay_free(replay);
    return status;
}

/* ---- the order ---- */

/* With the lock held. */
static gg_status branch_add_command(struct replay *replay, struct branch *branch,
                                    struct ggi_command *command)
{
    if (replay->invalid)
        return replay_fail_invalid();
    command->device = branch->stream->device;
    return commands_add(replay->commands, command, &branch->last);
}

/* With the lock held: the event's point, which is the first of its capture. */
static struct point *point_renew(struct replay *replay, const struct gg_event_impl *event)
{
    struct replay *old;
    struct point **at = point_find(event, &old), *point = at ? *at : malloc(sizeof *point);
    if (!point)
        return NULL;
    if (at)
        *at = point->next;
    point->next = replay->points;
    replay->points = point;
    return point;
}

gg_status ggi_replay_event_record(gg_stream *stream, const struct gg_event_impl *event)
{
    struct replay *replay;
    gg_status status = GG_OK;
    pthread_mutex_lock(&replay_lock);
    const struct branch *branch = branch_find(stream, &replay);
    if (!branch || replay->invalid)
        status = replay_fail_invalid();
    struct point *point = status ? NULL : point_renew(replay, event);
    if (point) {
        point->event = event;
        point->branch = branch;
        point->at = branch->last;
    }
    pthread_mutex_unlock(&replay_lock);
    return status || point ? status
                           : ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a captured event");
}

void ggi_replay_forget_event(const struct gg_event_impl *event)
{
    struct replay *replay;
    struct point *forgotten = NULL, **at;
    if (!atomic_load(&ggi_captures))
        return;
    pthread_mutex_lock(&replay_lock);
    at = point_find(event, &replay);
    if (at) {
        forgotten = *at;
        *at = forgotten->next;
    }
    pthread_mutex_unlock(&replay_lock);
    free(forgotten);
}

/* With the lock held: @p branch, or a new one, continues after the point as well. */
static gg_status branch_join(struct replay *replay, struct branch *branch, gg_stream *stream,
                             const struct point *point)
{
    struct ggi_command command = {.op = GG_OP_stream_wait_event};
    const bool fresh = !branch;
    if (branch == point->branch) /* a stream is in order anyway */
        return GG_OK;
    if (replay->invalid)
        return replay_fail_invalid();
    if (fresh)
        branch = branch_add(replay, stream);
    if (!branch)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a captured stream");
    command.after[0] = branch->last;
    command.after[1] = point->at;
    const gg_status status = branch_add_command(replay, branch, &command);
    if (status && fresh) {
        replay->branches = branch->next;
        atomic_fetch_sub(&stream->refs, 1); /* the caller has one, too */
        free(branch);
    }
    return status;
}

gg_status ggi_replay_wait_event(gg_stream *stream, const struct gg_event_impl *event)
{
    struct replay *of_stream = NULL, *of_event = NULL;
    gg_status status = GG_NOT_READY;
    pthread_mutex_lock(&replay_lock);
    struct branch *branch = branch_find(stream, &of_stream);
    struct point **point = point_find(event, &of_event);
    if (point && (!branch || of_stream == of_event))
        status = branch_join(of_event, branch, stream, *point);
    else if (branch) {
        of_stream->invalid = true;
        if (of_event)
            of_event->invalid = true;
        status = ggi_fail(GG_ERR_UNSUPPORTED,
                          "stream is capturing: it cannot wait for an event that was recorded "
                          "outside of the capture, which is invalid now");
    }
    pthread_mutex_unlock(&replay_lock);
    return status;
}

/* ---- the operations ---- */

static gg_status replay_add(gg_stream *stream, struct ggi_command *command)
{
    struct replay *replay;
    gg_status status;
    pthread_mutex_lock(&replay_lock);
    struct branch *branch = branch_find(stream, &replay);
    if (branch)
        command->after[0] = branch->last;
    status = branch
                 ? branch_add_command(replay, branch, command)
                 : ggi_fail(GG_ERR_UNSUPPORTED,
                            "stream is capturing no longer: another thread has ended the capture");
    pthread_mutex_unlock(&replay_lock);
    return status;
}

gg_status ggi_replay_copy(gg_stream *stream, void *dst, const void *src, size_t nbytes,
                          enum gg_copy_kind kind, int32_t pageable)
{
    struct ggi_command command = {
        .op = GG_OP_copy,
        .copy = {.dst = dst, .src = src, .nbytes = nbytes, .kind = kind, .pageable = pageable}};
    return replay_add(stream, &command);
}

gg_status ggi_replay_copy_region(gg_stream *stream, void *dst, const void *src,
                                 const struct gg_region *region, enum gg_copy_kind kind)
{
    struct ggi_command command = {
        .op = GG_OP_copy_region, .copy = {.dst = dst, .src = src, .region = *region, .kind = kind}};
    return replay_add(stream, &command);
}

gg_status ggi_replay_copy_peer(gg_stream *stream, struct gg_device_impl *dst_device, void *dst,
                               struct gg_device_impl *src_device, const void *src, size_t nbytes)
{
    struct ggi_command command = {.op = GG_OP_copy_peer,
                                  .copy = {.dst = dst,
                                           .src = src,
                                           .nbytes = nbytes,
                                           .dst_device = dst_device,
                                           .src_device = src_device}};
    return replay_add(stream, &command);
}

gg_status ggi_replay_fill(gg_stream *stream, void *dst, uint32_t pattern, uint32_t pattern_size,
                          size_t count)
{
    struct ggi_command command = {
        .op = GG_OP_fill,
        .fill = {.dst = dst, .count = count, .pattern = pattern, .size = pattern_size}};
    return replay_add(stream, &command);
}

gg_status ggi_replay_stream_host_func(gg_stream *stream, void (*function)(void *), void *argument)
{
    struct ggi_command command = {.op = GG_OP_stream_host_func, .host = {function, argument}};
    return replay_add(stream, &command);
}

#define VALUE_ALIGNMENT 16u /* of each argument's copy, as malloc()'s */

static size_t value_room(const struct gg_launch *launch, uint32_t index)
{
    const size_t size = launch->arguments[index] ? launch->sizes[index] : 0;
    return (size + VALUE_ALIGNMENT - 1) & ~(size_t)(VALUE_ALIGNMENT - 1);
}

/* In one block: the launch, addresses and sizes of its arguments, their values. NULL: no memory. */
static struct gg_launch *launch_copy(const struct gg_launch *launch)
{
    struct head {
        _Alignas(VALUE_ALIGNMENT) struct gg_launch launch;
    };
    const uint32_t count = launch->argument_count;
    size_t values = 0;
    for (uint32_t i = 0; i < count; i++)
        values += value_room(launch, i);
    struct head *head = malloc(sizeof *head + values + count * (sizeof(void *) + sizeof(size_t)));
    if (!head)
        return NULL;
    char *value = (char *)(head + 1);
    const void **arguments = (const void **)(void *)(value + values);
    size_t *sizes = (size_t *)(void *)(arguments + count);
    for (uint32_t i = 0; i < count; i++) {
        arguments[i] = launch->arguments[i] ? value : NULL;
        sizes[i] = launch->sizes[i];
        if (arguments[i])
            memcpy(value, launch->arguments[i], sizes[i]);
        value += value_room(launch, i);
    }
    head->launch = *launch;
    head->launch.arguments = arguments;
    head->launch.sizes = sizes;
    head->launch.memories = NULL; /* the graph holds them */
    head->launch.memory_count = 0;
    return &head->launch;
}

gg_status ggi_replay_kernel_launch(gg_stream *stream, struct gg_kernel_impl *kernel,
                                   const struct gg_launch *launch)
{
    struct ggi_command command = {.op = GG_OP_kernel_launch,
                                  .launch = {kernel, launch_copy(launch)}};
    if (!command.launch.call)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a captured launch");
    const gg_status status = replay_add(stream, &command);
    if (status)
        free(command.launch.call);
    return status;
}
