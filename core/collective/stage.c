/* stage.c: device memory in an operation on the host. Its copy engine copies from and to the chunks that the ranks share, whose pages the
 * driver has locked. Where it cannot lock them, or the processor has to change what is copied, the copy engine fills one of two pinned
 * buffers while the ranks exchange what is in the other, or empties one while the ranks fill the other. */
#include "base/log.h"
#include "base/process_state.h"
#include "collective/collective.h"
#include "memory/uses.h"

#include <gpuglue/copy.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAGE_NBYTES (1u << 20) /* of a buffer; more if the parts of many blocks do not fit */
#define STAGE_BUFFERED                                                                      \
    "the device copies through buffers, because the memory that the ranks share cannot be " \
    "locked: "

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
    gg_memory *chunks; /* of the segment; NULL: they are not locked */
    bool asked;        /* whether a driver has been asked to lock them */
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

/* The pages are unlocked now, if the device is idle: until then they stay mapped. */
static void staging_free(struct ggi_comm_staging *self)
{
    struct gg_device *device = self->chunks ? self->chunks->device : NULL;
    buffers_free(&self->sides[0]);
    buffers_free(&self->sides[1]);
    gg_memory_release(self->chunks);
    if (device)
        ggi_drain(device);
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

/* ---- the chunks ---- */

static pthread_mutex_t chunks_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t chunks_once = PTHREAD_ONCE_INIT;

static void chunks_init(void)
{
    ggi_reset_in_child(&chunks_lock);
}

/* Another rank of this process may have locked them. */
static gg_status chunks_find(struct gg_device *device, gg_memory *found)
{
    if (found->device->backend == device->backend)
        return GG_OK;
    return ggi_fail(GG_ERR_UNSUPPORTED, "another rank of this process has locked it for %s",
                    found->device->backend->name);
}

static gg_status chunks_register(struct gg_comm *comm, struct gg_device *device, gg_memory **out)
{
    size_t nbytes, offset;
    char *data = ggi_comm_chunks(comm, &nbytes);
    pthread_once(&chunks_once, chunks_init);
    pthread_mutex_lock(&chunks_lock);
    *out = ggi_pinned_find(data, nbytes, &offset);
    const bool found = *out;
    const gg_status status =
        found ? chunks_find(device, *out)
              : gg_memory_host_register(device, data, nbytes, ggi_comm_mapping_drop, comm->mapping,
                                        out);
    pthread_mutex_unlock(&chunks_lock);
    if (found || status)
        ggi_comm_mapping_drop(comm->mapping);
    if (!status)
        return GG_OK;
    if (found)
        gg_memory_release(*out);
    *out = NULL;
    return status;
}

/* Ask a driver once. */
static gg_status chunks_lock_pages(struct gg_comm *comm, struct gg_device *device)
{
    struct ggi_comm_staging *self = comm->staging;
    if (self->asked)
        return GG_OK;
    self->asked = true;
    gg_status status = chunks_register(comm, device, &self->chunks);
    if (status)
        ggi_log(GG_LOG_INFO, device->backend->name, "%s: " STAGE_BUFFERED "%s", comm->call,
                ggi_error_record()->error.message);
    return status;
}

/* Whether the device copies from and to the chunks. */
static bool chunks_open(struct gg_comm *comm, struct gg_device *device)
{
    const struct ggi_comm_staging *self = comm->staging;
    chunks_lock_pages(comm, device);
    return self->chunks && self->chunks->device->backend == device->backend;
}

static gg_status staging_open(struct gg_comm *comm)
{
    if (!comm->staging && !(comm->staging = calloc(1, sizeof *comm->staging)))
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "%s: no memory for buffers", comm->call);
    comm->free_staging = staging_free;
    return GG_OK;
}

void ggi_stage_prepare(struct gg_comm *comm, struct ggi_collective *part)
{
    gg_status status = part->device ? staging_open(comm) : GG_OK;
    if (!status && part->device)
        status = chunks_lock_pages(comm, part->device);
    if (!status)
        return;
    const size_t used = strlen(part->reason);
    snprintf(part->reason + used, sizeof part->reason - used, "%s" STAGE_BUFFERED "%s",
             used ? "; " : "", ggi_error_record()->error.message);
}

/* ---- copies ---- */

static struct stage_buffer *stage_buffer(const struct ggi_stage *self, size_t unit)
{
    return &self->buffers->of[unit & 1];
}

/* Between locked memory of the host and the same part of each block on the device. */
static gg_status stage_queue(const struct ggi_stage *self, gg_memory *locked,
                             const struct comm_parts *parts)
{
    gg_status status = GG_OK;
    for (size_t block = 0; block < (size_t)parts->blocks && !status; block++) {
        const struct gg_copy_operand host = {
            .memory = locked,
            .offset = (size_t)(parts->data - (char *)locked->pointer) + block * parts->pitch};
        const struct gg_copy_operand device = {
            .memory = self->memory, .offset = self->offset + block * self->block + parts->at};
        status = gg_copy(self->writes ? &device : &host, self->writes ? &host : &device,
                         parts->nbytes, self->buffers->stream, GG_COPY_ASYNC);
    }
    return status;
}

static gg_status stage_record(const struct ggi_stage *self, struct stage_buffer *buffer)
{
    const gg_status status = gg_event_record(buffer->copied, self->buffers->stream);
    buffer->copying = !status;
    return status;
}

/* Between the buffer of a unit, up to @p end, and the device. */
static gg_status stage_copy(const struct ggi_stage *self, size_t unit, size_t end)
{
    struct stage_buffer *buffer = stage_buffer(self, unit);
    const size_t left = end - unit * self->unit;
    const struct comm_parts parts = {.data = buffer->pinned->pointer,
                                     .pitch = self->unit,
                                     .at = unit * self->unit,
                                     .nbytes = left < self->unit ? left : self->unit,
                                     .blocks = self->blocks};
    const gg_status status = stage_queue(self, buffer->pinned, &parts);
    return status ? status : stage_record(self, buffer);
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

static gg_status stage_open(const struct ggi_stage *self, struct gg_comm *comm,
                            struct stage_buffers **out)
{
    gg_status status = staging_open(comm);
    if (status)
        return status;
    *out = &comm->staging->sides[self->writes];
    return buffers_open(*out, self->memory->device);
}

/* The copies do not wait for other work: that of the memory is waited for here, where an interrupt harms no rank. */
static gg_status stage_settle(struct ggi_stage *self, struct stage_buffers *buffers)
{
    gg_status status = ggi_memory_wait_before_use(self->memory, buffers->stream, true);
    if (!status)
        status = ggi_stream_synchronize(buffers->stream, true);
    if (!status)
        self->buffers = buffers;
    return status;
}

static gg_status stage_begin(struct comm_stage *base, struct gg_comm *comm, int32_t blocks,
                             size_t nbytes, size_t step)
{
    struct ggi_stage *self = (struct ggi_stage *)base;
    struct stage_buffers *buffers;
    stage_measure(self, blocks, nbytes, step);
    gg_status status = stage_open(self, comm, &buffers);
    if (!status)
        status = buffers_reserve(buffers, 1 + (self->unit < nbytes), (size_t)blocks * self->unit);
    if (!status)
        status = stage_settle(self, buffers);
    return status || self->writes ? status : stage_copy(self, 0, nbytes);
}

static gg_status stage_attach(struct comm_stage *base, struct gg_comm *comm, size_t nbytes)
{
    struct ggi_stage *self = (struct ggi_stage *)base;
    struct stage_buffers *buffers;
    gg_status status = stage_open(self, comm, &buffers);
    if (!status && !chunks_open(comm, self->memory->device))
        return GG_NOT_READY;
    if (!status)
        status = stage_settle(self, buffers);
    self->block = nbytes;
    self->chunks = comm->staging ? comm->staging->chunks : NULL;
    base->attached = !status;
    return status;
}

static gg_status stage_copy_chunks(struct comm_stage *base, uint32_t number,
                                   const struct comm_parts *parts)
{
    struct ggi_stage *self = (struct ggi_stage *)base;
    const gg_status status = stage_queue(self, self->chunks, parts);
    return status ? status : stage_record(self, stage_buffer(self, number));
}

static gg_status stage_copied(struct comm_stage *base, uint32_t number, bool wait)
{
    const struct ggi_stage *self = (const struct ggi_stage *)base;
    struct stage_buffer *buffer = stage_buffer(self, number);
    if (wait)
        return stage_wait(self, number);
    const gg_status status = buffer->copying ? gg_event_poll(buffer->copied) : GG_OK;
    if (!status)
        buffer->copying = false;
    return status;
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
    base->attached = false;
    return end;
}

struct ggi_stage ggi_stage_of(gg_memory *memory, size_t offset, bool writes)
{
    return (struct ggi_stage){.base = {.begin = stage_begin,
                                       .view = stage_view,
                                       .attach = stage_attach,
                                       .copy = stage_copy_chunks,
                                       .copied = stage_copied,
                                       .finish = stage_finish},
                              .memory = memory,
                              .offset = offset,
                              .writes = writes};
}
