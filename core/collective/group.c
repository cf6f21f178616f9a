/* group.c: operations that progress at the same time. */
#include "collective/collective.h"
#include "memory/memory.h"

#include <gpuglue/comm_device.h>

#include <stdlib.h>
#include <string.h>

bool ggi_collective_in_group(const struct ggi_collective *self)
{
    return self->grouping && pthread_equal(self->group_thread, pthread_self());
}

/* Nothing orders the operations of a group: what one writes no other may use. */
static gg_status group_check_memory(const struct ggi_collective *self,
                                    const struct collective_item *item)
{
    for (size_t i = 0; i < self->group_count; i++) {
        const struct collective_item *old = &self->group[i];
        if (collective_overlap(item->task.dst, item->dst_nbytes, old->task.dst, old->dst_nbytes) ||
            collective_overlap(item->task.dst, item->dst_nbytes, old->task.src, old->src_nbytes) ||
            collective_overlap(item->task.src, item->src_nbytes, old->task.dst, old->dst_nbytes))
            return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                            "%s and %s of one group use the same memory, which one of them writes; "
                            "use two groups",
                            ggi_collective_names[old->task.operation],
                            ggi_collective_names[item->task.operation]);
    }
    return GG_OK;
}

static gg_status group_check(const struct ggi_collective *self, const struct collective_item *item,
                             gg_stream *stream)
{
    if (self->group_count && self->group[0].stream != stream)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "all operations of a group are on one stream: give all the same, or none");
    if (item->task.operation == GG_COMM_ALL_TO_ALL && item->task.dst == item->task.src)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "all_to_all in place cannot be part of a group: give another destination");
    return group_check_memory(self, item);
}

static gg_status group_reserve(struct ggi_collective *self)
{
    const size_t room = self->group_room ? 2 * self->group_room : 16;
    if (self->group_count < self->group_room)
        return GG_OK;
    struct collective_item *larger = realloc(self->group, room * sizeof *larger);
    if (!larger)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no memory for a group of %zu operations", room);
    self->group = larger;
    self->group_room = room;
    return GG_OK;
}

gg_status ggi_collective_group_add(struct ggi_collective *self, const struct collective_item *item,
                                   gg_stream *stream)
{
    gg_status status = group_check(self, item, stream);
    if (!status)
        status = group_reserve(self);
    if (status)
        return status;
    struct collective_item *added = &self->group[self->group_count++];
    *added = *item;
    added->stream = stream;
    if (stream)
        gg_stream_retain(stream);
    if (item->dst)
        gg_memory_retain(item->dst);
    if (item->src)
        gg_memory_retain(item->src);
    return GG_OK;
}

gg_status gg_comm_group_begin(gg_comm *comm)
{
    gg_status status = ggi_collective_enter(comm, "gg_comm_group_begin");
    if (status)
        return status;
    struct ggi_collective *self = comm->collective;
    if (self->grouping)
        status = ggi_fail(GG_ERR_INVALID_ARGUMENT,
                          "gg_comm_group_begin: a group has begun, and is not ended");
    else {
        self->group_thread = pthread_self();
        self->grouping = true;
    }
    return ggi_comm_leave(comm, status);
}

void ggi_collective_group_drop(struct ggi_collective *self)
{
    for (size_t i = 0; i < self->group_count; i++) {
        gg_memory_release(self->group[i].dst);
        gg_memory_release(self->group[i].src);
        gg_stream_release(self->group[i].stream);
    }
    self->group_count = 0;
    self->grouping = false;
}

gg_status gg_comm_group_end(gg_comm *comm, int32_t drop)
{
    struct ggi_collective *self = comm->collective;
    gg_status status = ggi_comm_check_process(comm, "gg_comm_group_end");
    if (!status && (!self || !ggi_collective_in_group(self)))
        status = ggi_fail(GG_ERR_INVALID_ARGUMENT,
                          "gg_comm_group_end: this thread has not begun a group");
    if (status)
        return status;
    if (!drop && self->group_count) {
        status = ggi_collective_enter(comm, "gg_comm_group_end");
        if (!status)
            status = ggi_comm_leave(comm, ggi_collective_run(comm, self->group, self->group_count,
                                                             self->group[0].stream));
    }
    ggi_collective_group_drop(self);
    return status;
}
