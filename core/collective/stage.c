/* stage.c: device memory in an operation on the host. Its copy engine fills one of two pinned buffers while the ranks exchange what is
 * in the other, or empties one while the ranks fill the other. */
#include "collective/collective.h"
#include "memory/uses.h"

#include <gpuglue/copy.h>

#include <stdlib.h>

#define STAGE_NBYTES (1u << 20) /* of a buffer; more if the parts of many blocks do not fit */

struct stage_buffer {
    gg_memory *pinned;
    size_t room;
    gg_event *copied;
    bool copying;
};
/* Those of sources, or of destinations. */
struct stage_buffers {
    struct gg_device *device; /* NULL: there are none */
    gg_stream *stream;
    struct stage_buffer of[2];
};
struct ggi_comm_staging {
    struct stage_buffers sides[2];
};

/* ---- buffers ---- */

static void buffers_free(struct stage_buffers *self)
{
    for (int i = 0; i < 2; i++) {
        gg_memory_release(self->of[i].pinned);
        gg_event_release(self->of[i].copied);
    }
    gg_stream_release(self->stream);
    *self = (struct stage_buffers){.device = NULL};
}

static void staging_free(struct ggi_comm_staging *self)
{
    buffers_free(&self->sides[0]);
    buffers_free(&self->sides[1]);
    free(self);
}

static gg_status buffers_open(struct stage_buffers *self, struct gg_device *device)
{
    if (self->device == device)
        return GG_OK;
    buffers_free(self);
    gg_status status = gg_stream_create(device, GG_STREAM_NONBLOCKING, 0, &self->stream);
    for (int i = 0; i < 2 && !status; i++)
        status = gg_event_create(device, 0, &self->of[i].copied);
    if (status)
        buffers_free(self);
    else
        self->device = device;
    return status;
}

static gg_status buffers_reserve(struct stage_buffers *self, int count, size_t nbytes)
{
    for (int i = 0; i < count; i++) {
        struct stage_buffer *buffer = &self->of[i];
        if (buffer->room >= nbytes)
            continue;
        gg_memory_release(buffer->pinned);
        buffer->pinned = NULL;
        buffer->room = 0;
        gg_status status =
            gg_memory_alloc(self->device, GG_MEMORY_PINNED, nbytes, NULL, &buffer->pinned);
        if (status)
            return status;
        buffer->room = nbytes;
    }
    return GG_OK;
}

/* ---- copies ---- */

static struct stage_buffer *stage_buffer(const struct ggi_stage *self, size_t unit)
{
    return &self->buffers->of[unit & 1];
}

static gg_status stage_copy_block(const struct ggi_stage *self, size_t unit, size_t nbytes,
                                  size_t block)
{
    const struct gg_copy_operand host = {.memory = stage_buffer(self, unit)->pinned,
                                         .offset = block * self->unit};
    const struct gg_copy_operand device = {
        .memory = self->memory, .offset = self->offset + block * self->block + unit * self->unit};
    return gg_copy(self->writes ? &device : &host, self->writes ? &host : &device, nbytes,
                   self->buffers->stream, GG_COPY_ASYNC);
}

/* Between the buffer of a unit, up to @p end, and the device. */
static gg_status stage_copy(const struct ggi_stage *self, size_t unit, size_t end)
{
    struct stage_buffer *buffer = stage_buffer(self, unit);
    const size_t left = end - unit * self->unit, nbytes = left < self->unit ? left : self->unit;
    gg_status status = GG_OK;
    for (int32_t block = 0; block < self->blocks && !status; block++)
        status = stage_copy_block(self, unit, nbytes, (size_t)block);
    if (!status)
        status = gg_event_record(buffer->copied, self->buffers->stream);
    buffer->copying = !status;
    return status;
}

static gg_status stage_wait(const struct ggi_stage *self, size_t unit)
{
    struct stage_buffer *buffer = stage_buffer(self, unit);
    gg_status status = buffer->copying ? gg_event_wait(buffer->copied, GG_FOREVER) : GG_OK;
    if (!status)
        buffer->copying = false;
    return status;
}

/* ---- as a side of an operation ---- */

/* A unit is one or more steps. */
static void stage_measure(struct ggi_stage *self, int32_t blocks, size_t nbytes, size_t step)
{
    const size_t steps = STAGE_NBYTES / (size_t)blocks / step;
    self->blocks = blocks;
    self->block = nbytes;
    self->unit = steps ? steps * step : step;
    if (self->unit > nbytes)
        self->unit = nbytes;
}

/* The copies do not wait for other work: that of the memory is waited for here, where an interrupt harms no rank. */
static gg_status stage_begin(struct comm_stage *base, struct gg_comm *comm, int32_t blocks,
                             size_t nbytes, size_t step)
{
    struct ggi_stage *self = (struct ggi_stage *)base;
    if (!comm->staging && !(comm->staging = calloc(1, sizeof *comm->staging)))
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "%s: no memory for buffers", comm->call);
    comm->free_staging = staging_free;
    struct stage_buffers *buffers = &comm->staging->sides[self->writes];
    stage_measure(self, blocks, nbytes, step);
    gg_status status = buffers_open(buffers, self->memory->device);
    if (!status)
        status = buffers_reserve(buffers, 1 + (self->unit < nbytes), (size_t)blocks * self->unit);
    if (!status)
        status = ggi_memory_wait_before_use(self->memory, buffers->stream, true);
    if (!status)
        status = ggi_stream_synchronize(buffers->stream, true);
    if (status)
        return status;
    self->buffers = buffers;
    return self->writes ? GG_OK : stage_copy(self, 0, nbytes);
}

/* Wait for the unit, and begin to copy the next one. */
static gg_status stage_read(struct ggi_stage *self, size_t unit)
{
    gg_status status = stage_wait(self, unit);
    if (!status && (unit + 1) * self->unit < self->block)
        status = stage_copy(self, unit + 1, self->block);
    return status;
}

/* Copy the unit before, and wait until the buffer of this one is free. */
static gg_status stage_write(struct ggi_stage *self, size_t unit)
{
    gg_status status = self->end ? stage_copy(self, self->current, self->end) : GG_OK;
    return status ? status : stage_wait(self, unit);
}

static gg_status stage_view(struct comm_stage *base, size_t at, size_t nbytes,
                            struct comm_view *view)
{
    struct ggi_stage *self = (struct ggi_stage *)base;
    const size_t unit = at / self->unit;
    gg_status status = GG_OK;
    if (!self->end || unit != self->current)
        status = self->writes ? stage_write(self, unit) : stage_read(self, unit);
    if (status)
        return status;
    self->current = unit;
    self->end = at + nbytes;
    *view = (struct comm_view){
        (char *)stage_buffer(self, unit)->pinned->pointer + (at - unit * self->unit), self->unit};
    return GG_OK;
}

/* Also after a failure no copy uses the buffers any more. */
static gg_status stage_finish(struct comm_stage *base, gg_status status)
{
    struct ggi_stage *self = (struct ggi_stage *)base;
    if (!self->buffers)
        return GG_OK;
    gg_status end = status;
    if (!end && self->writes && self->end)
        end = stage_copy(self, self->current, self->end);
    for (size_t i = 0; i < 2 && !end; i++)
        end = stage_wait(self, i);
    if (end) {
        ggi_suppress_errors(1);
        ggi_stream_synchronize_uninterruptible(self->buffers->stream);
        ggi_suppress_errors(-1);
        self->buffers->of[0].copying = self->buffers->of[1].copying = false;
    }
    self->buffers = NULL;
    return end;
}

struct ggi_stage ggi_stage_of(gg_memory *memory, size_t offset, bool writes)
{
    return (struct ggi_stage){.base = {stage_begin, stage_view, stage_finish},
                              .memory = memory,
                              .offset = offset,
                              .writes = writes};
}
