/* all.c: the communicators of all ranks of one process, which is how one program uses several devices. */
#include "base/signals.h"
#include "base/sized.h"
#include "collective/collective.h"

#include <gpuglue/comm_device.h>

#include <stdlib.h>

#include "base/small.h"

struct creating {
    gg_comm *comms[GG_COMM_SIZE_MAX];
    int32_t size;
    _Atomic int32_t failures;
};

/* One rank, which waits for the others: rank 0 runs on the calling thread, each other rank on a thread of its own. */
struct opening {
    struct creating *all;
    gg_comm *comm;
    struct gg_comm_device_options options;
    pthread_t thread;
    bool started;
    gg_status status;
    int32_t order; /* of its failure, among those of all ranks */
    struct ggi_kept_error error;
};

/* The others do not wait for a rank that has failed. */
static void opening_fail(struct opening *self, gg_status status)
{
    self->status = status;
    self->order = atomic_fetch_add(&self->all->failures, 1);
    ggi_error_keep(&self->error);
    gg_comm_abort(self->comm);
}

static void *opening_run(void *argument)
{
    struct opening *self = argument;
    const gg_status status = gg_comm_open_device(self->comm, &self->options);
    if (status)
        opening_fail(self, status);
    return NULL;
}

static void *opening_thread(void *argument)
{
    pthread_setname_np(pthread_self(), "gpuglue-open");
    return opening_run(argument);
}

static void opening_start(struct opening *self)
{
    sigset_t before;
    ggi_block_signals(&before);
    const int error = pthread_create(&self->thread, NULL, opening_thread, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    self->started = !error;
    if (error)
        opening_fail(self, ggi_fail(GG_ERR_OUT_OF_MEMORY,
                                    "gg_comm_create_all: a thread cannot be started: %s",
                                    strerror(error)));
}

/* The first failure explains the others, except for an interrupt, which only the caller can report. */
static gg_status openings_result(const struct opening *openings, int32_t size)
{
    const struct opening *first = NULL;
    for (int32_t rank = 0; rank < size; rank++)
        if (openings[rank].status && (!first || openings[rank].order < first->order))
            first = &openings[rank];
    if (first && openings[0].status == GG_ERR_INTERRUPTED)
        first = &openings[0];
    if (!first)
        return GG_OK;
    ggi_error_restore(&first->error);
    return first->status;
}

static gg_status creating_open(struct creating *self, const struct gg_comm_all_options *options)
{
    struct opening *openings = calloc((size_t)self->size, sizeof *openings);
    if (!openings)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "gg_comm_create_all: no memory for %d ranks",
                        self->size);
    for (int32_t rank = 0; rank < self->size; rank++)
        openings[rank] = (struct opening){.all = self,
                                          .comm = self->comms[rank],
                                          .options = {.struct_size = sizeof openings->options,
                                                      .device = options->devices[rank],
                                                      .transport = options->transport}};
    for (int32_t rank = 1; rank < self->size; rank++)
        opening_start(&openings[rank]);
    opening_run(&openings[0]);
    for (int32_t rank = 1; rank < self->size; rank++)
        if (openings[rank].started)
            pthread_join(openings[rank].thread, NULL);
    const gg_status status = openings_result(openings, self->size);
    free(openings);
    return status;
}

static gg_status options_check(const struct gg_comm_all_options *options)
{
    if (options->size < 1 || options->size > GG_COMM_SIZE_MAX)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "gg_comm_create_all: size is %d, expected 1 to %d",
                        options->size, GG_COMM_SIZE_MAX);
    return GG_OK;
}

gg_status gg_comm_create_all(const struct gg_comm_all_options *options, gg_comm **out)
{
    const size_t first = GGI_SIZE_TO(struct gg_comm_all_options, timeout_ns);
    if (!ggi_sized_fits(options, first))
        return ggi_sized_refuse("gg_comm_create_all", "gg_comm_all_options", options, first);
    gg_status status = options_check(options);
    if (status)
        return status;
    struct creating self = {.size = options->size};
    status = ggi_comm_create_all(self.size, options->timeout_ns, self.comms);
    if (status)
        return status;
    if (options->devices)
        status = creating_open(&self, options);
    for (int32_t rank = 0; rank < self.size; rank++)
        if (status)
            gg_comm_release(self.comms[rank]);
        else
            out[rank] = self.comms[rank];
    return status;
}
