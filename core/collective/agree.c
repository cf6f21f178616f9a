/* agree.c: how the ranks of a communicator choose a transport for device memory, and connect it. */
#include "base/sized.h"
#include "base/text.h"
#include "collective/collective.h"
#include "comm/socket.h"
#include "runtime/call.h"

#include <gpuglue/comm_device.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/small.h"

enum { OFFER_NOTHING, OFFER_LIBRARY, OFFER_REFUSED };

/* What a rank can use, which all ranks get from all. */
struct offer {
    uint32_t kind;
    int32_t version;
    char wanted[16], name[16], backend[16];
    char device[72]; /* equal for equal devices; "" if it is unknown */
    char reason[300];
};

struct agreement {
    struct gg_comm *comm;
    struct gg_device *device;
    const char *path;
    const char *wanted;
    struct offer *offers; /* of all ranks */
    struct ggi_text why;  /* there is no library for all; "" if there is */
};

static bool choice_is_plain(const char *wanted)
{
    return !strcmp(wanted, "host") || !strcmp(wanted, "staged");
}

static gg_status agreement_gather(struct gg_comm *comm, void *all, const void *mine, size_t nbytes)
{
    if (!comm->link)
        return gg_comm_all_gather(comm, all, mine, nbytes);
    comm->call = "gg_comm_open_device";
    return ggi_comm_link_gather(comm, all, mine, nbytes);
}

/* ---- offers ---- */

static void offer_identify(struct offer *offer, struct gg_device *device)
{
    struct gg_device_info info = {.struct_size = sizeof info};
    struct ggi_text text = ggi_text_begin(offer->device, sizeof offer->device);
    if (gg_device_info(device, &info))
        return;
    const char *function = strrchr(info.pci_bus_id, '.');
    for (int i = 0; i < 16 && info.flags & GG_DEVICE_HAS_UUID; i++)
        ggi_text_add(&text, "%02x", info.uuid[i]);
    if (info.flags & GG_DEVICE_HAS_UUID) /* partitions of one GPU may share it */
        ggi_text_add(&text, "%s", function ? function : "");
    else {
        char machine[COMM_MACHINE_SIZE];
        ggi_comm_machine(machine, sizeof machine);
        ggi_text_add(&text, "%s/%s", info.pci_bus_id, machine);
    }
}

/* A failure of this rank alone is part of its offer, so that all ranks get it. */
static void offer_make(struct agreement *self, struct offer *offer)
{
    snprintf(offer->wanted, sizeof offer->wanted, "%s", self->wanted);
    if (!self->device)
        return;
    snprintf(offer->backend, sizeof offer->backend, "%s", self->device->backend->name);
    if (choice_is_plain(self->wanted))
        return;
    gg_status status = ggi_device_ready(self->device);
    if (!status)
        status = ggi_collective_library(self->device, &self->path, &offer->version);
    if (status) {
        offer->kind = OFFER_REFUSED;
        snprintf(offer->reason, sizeof offer->reason, "%.299s", ggi_error_record()->error.message);
        return;
    }
    offer->kind = OFFER_LIBRARY;
    snprintf(offer->name, sizeof offer->name, "%s", self->device->backend->comm_ops->name);
    offer_identify(offer, self->device);
}

/* ---- the choice, which is the same on all ranks ---- */

static void choice_compare(struct agreement *self, int32_t rank)
{
    const struct offer *first = &self->offers[0], *offer = &self->offers[rank];
    if (!offer->backend[0])
        ggi_text_add(&self->why, "rank %d has no device", rank);
    else if (offer->kind == OFFER_REFUSED)
        ggi_text_add(&self->why, "rank %d: %s", rank, offer->reason);
    else if (strcmp(offer->name, first->name))
        ggi_text_add(&self->why, "rank 0 has a device of %s, and rank %d of %s", first->backend,
                     rank, offer->backend);
    else if (offer->version != first->version)
        ggi_text_add(&self->why, "rank 0 has version %d.%d.%d of %s, and rank %d has %d.%d.%d",
                     first->version / 10000, first->version / 100 % 100, first->version % 100,
                     first->name, rank, offer->version / 10000, offer->version / 100 % 100,
                     offer->version % 100);
    for (int32_t other = 0; other < rank && !self->why.used && offer->device[0]; other++)
        if (!strcmp(offer->device, self->offers[other].device))
            ggi_text_add(
                &self->why,
                "ranks %d and %d use the same device, which %s does not support; give each "
                "rank its own, as by Device.for_local_rank()",
                other, rank, offer->name);
}

static gg_status choice_check_wishes(const struct agreement *self)
{
    for (int32_t rank = 0; rank < self->comm->size; rank++)
        if (strncmp(self->offers[rank].wanted, self->offers[0].wanted, sizeof self->offers->wanted))
            return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                            "gg_comm_open_device: rank 0 wants the transport '%.15s', and rank %d "
                            "'%.15s'; give all ranks the same",
                            self->offers[0].wanted, rank, self->offers[rank].wanted);
    return GG_OK;
}

/* A name that no rank's library has is an error; so is one that not all ranks can use. */
static gg_status choice_check_named(struct agreement *self)
{
    if (!strcmp(self->wanted, "auto"))
        return GG_OK;
    for (int32_t rank = 0; !self->why.used && rank < self->comm->size; rank++)
        if (strcmp(self->offers[rank].name, self->wanted))
            ggi_text_add(&self->why, "rank %d has a device of %s, whose library is '%s'", rank,
                         self->offers[rank].backend, self->offers[rank].name);
    if (!self->why.used)
        return GG_OK;
    return ggi_fail(GG_ERR_UNSUPPORTED, "gg_comm_open_device: the transport '%s' cannot be used: %s",
                    self->wanted, self->why.data);
}

/* Without shared memory only a library connects the ranks. */
static gg_status choice_check_apart(const struct agreement *self, bool plain)
{
    if (!plain && !self->why.used)
        return GG_OK;
    return ggi_fail(GG_ERR_UNSUPPORTED,
                    "gg_comm_open_device: the ranks are on several machines, which only NCCL, RCCL "
                    "or MPI (Communicator.from_mpi) connect: %s",
                    plain ? "the transport that was named is within one" : self->why.data);
}

static gg_status choice_make(struct agreement *self)
{
    const bool plain = choice_is_plain(self->wanted);
    gg_status status = choice_check_wishes(self);
    for (int32_t rank = 0; rank < self->comm->size && !self->why.used && !status && !plain; rank++)
        choice_compare(self, rank);
    if (!status && self->comm->link)
        status = choice_check_apart(self, plain);
    return status || plain ? status : choice_check_named(self);
}

/* ---- to connect the ranks ---- */

struct creation {
    struct collective_call call;
    const struct gg_comm_ops *ops;
    struct gg_device *device;
    uint8_t id[GG_COMM_ID_SIZE];
    int32_t size, rank;
    struct gg_comm_impl *impl;
};

static gg_status creation_status(struct gg_device *device, gg_status status)
{
    return status ? ggi_named_op_failed(device, "comm_create", status) : GG_OK;
}

static gg_status creation_run(struct collective_call *call)
{
    struct creation *own = (struct creation *)(void *)call;
    return creation_status(own->device, own->ops->create(atomic_load(&own->device->impl), own->id,
                                                         own->size, own->rank, &own->impl));
}

static gg_status creation_end(struct collective_call *call)
{
    struct creation *own = (struct creation *)(void *)call;
    if (own->impl) {
        own->ops->destroy(own->impl, 1);
        own->ops->destroy(own->impl, 0);
    }
    return GG_OK;
}

static void creation_free(struct collective_call *call)
{
    free(call);
}

static void creation_left(struct collective_call *call)
{
    creation_end(call);
    creation_free(call);
}

/* After a failure, which may also be one of the library. */
static void creation_undo(struct creation *own)
{
    own->call = (struct collective_call){.run = creation_end, .abandoned = creation_free};
    if (!own->impl || ggi_collective_bounded(own->device, &own->call, false))
        free(own);
}

#define OUTCOME_LEFT UINT32_MAX /* it has stopped waiting, because another rank has failed */

/* How a step went on a rank. */
struct outcome {
    uint32_t status;
    uint8_t id[GG_COMM_ID_SIZE];
    char text[400];
};

static void outcome_fill(struct outcome *outcome, gg_status status)
{
    outcome->status = (uint32_t)status;
    if (status)
        snprintf(outcome->text, sizeof outcome->text, "%.399s", ggi_error_record()->error.message);
}

static gg_status connect_share_id(struct agreement *self, uint8_t id[GG_COMM_ID_SIZE])
{
    struct outcome mine = {.status = GG_OK};
    struct outcome *all = calloc((size_t)self->comm->size, sizeof *all);
    const struct comm_ranks root = {{1}};
    if (!all)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "gg_comm_open_device: no memory");
    if (self->comm->rank == 0)
        outcome_fill(&mine,
                     creation_status(self->device, self->device->backend->comm_ops->id(mine.id)));
    gg_status status = agreement_gather(self->comm, all, &mine, sizeof mine);
    memcpy(id, all->id, sizeof all->id);
    if (!status && all->status)
        status = ggi_comm_fail(&root, "gg_comm_open_device: rank 0: %.399s", all->text);
    free(all);
    return status;
}

/* The first failure of a rank is that of all. */
static gg_status connect_confirm(struct agreement *self, gg_status status, bool left)
{
    struct gg_comm *comm = self->comm;
    struct outcome mine = {.status = GG_OK};
    struct outcome *all = calloc((size_t)comm->size, sizeof *all);
    struct comm_ranks failed = {{0}};
    if (!all)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "gg_comm_open_device: no memory");
    outcome_fill(&mine, status);
    if (left)
        mine.status = OUTCOME_LEFT;
    gg_status shared = agreement_gather(comm, all, &mine, sizeof mine);
    for (int32_t rank = 0; rank < comm->size && !shared; rank++) {
        if (!all[rank].status || all[rank].status == OUTCOME_LEFT)
            continue;
        all[rank].text[sizeof all->text - 1] = 0;
        ggi_comm_ranks_add(&failed, rank);
        shared = ggi_comm_fail(&failed, "gg_comm_open_device: rank %d: %s", rank, all[rank].text);
    }
    free(all);
    return shared || !left ? shared : status;
}

static gg_status connect_create(struct agreement *self, struct ggi_collective *part)
{
    struct gg_comm *comm = self->comm;
    const uint64_t now = ggi_now_ns();
    bool left = false;
    struct creation *own = calloc(1, sizeof *own);
    if (!own)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "gg_comm_open_device: no memory");
    own->call.run = creation_run;
    own->call.abandoned = creation_left;
    own->ops = part->ops;
    own->device = self->device;
    own->size = comm->size;
    own->rank = comm->rank;
    atomic_store(&comm_rank(comm, comm->rank)->working, 1);
    gg_status status = connect_share_id(self, own->id);
    if (!status) {
        comm->call = "gg_comm_open_device";
        status = ggi_collective_guard(
            comm, &own->call,
            comm->timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + comm->timeout_ns, false, &left);
        atomic_store(&comm_rank(comm, comm->rank)->working, 0);
        if (status)
            atomic_store(&comm_rank(comm, comm->rank)->created, COMM_CREATION_FAILED);
        if (!atomic_load(&comm->segment->failed))
            status = connect_confirm(self, status, left);
    }
    if (!left) {
        part->impl = status ? NULL : own->impl;
        if (status)
            creation_undo(own);
        else
            free(own);
    }
    return status;
}

static gg_status agreement_use_library(struct agreement *self, struct ggi_collective *part)
{
    part->ops = self->device->backend->comm_ops;
    part->path = self->path;
    part->version = self->offers[self->comm->rank].version;
    gg_status status = ggi_collective_see_others(self->comm);
    if (!status)
        status = connect_create(self, part);
    return status ? status : ggi_collective_watch(self->comm);
}

/* ---- all of it ---- */

/* The transport, unless it has a library: then NULL. */
static const char *agreement_without_library(const struct agreement *self)
{
    bool any = false;
    for (int32_t rank = 0; rank < self->comm->size; rank++)
        any = any || self->offers[rank].backend[0];
    if (choice_is_plain(self->wanted))
        return self->wanted;
    if (!any)
        return "host";
    return self->why.used ? "staged" : NULL;
}

static gg_status agreement_settle(struct agreement *self)
{
    struct gg_comm *comm = self->comm;
    const char *name = agreement_without_library(self);
    gg_status status = GG_OK;
    ggi_comm_segment_use_large(comm, name && !strcmp(name, "staged"));
    struct ggi_collective *part = ggi_collective_new(comm, self->device);
    if (!part)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "gg_comm_open_device: no memory");
    comm->collective = part;
    if (name) {
        snprintf(part->transport, sizeof part->transport, "%s", name);
        if (!strcmp(name, "staged")) {
            snprintf(part->reason, sizeof part->reason, "%.399s", self->why.data);
            ggi_stage_prepare(comm, part);
        }
        return ggi_collective_watch(comm);
    }
    status = agreement_use_library(self, part);
    if (status) {
        if (part->impl)
            part->ops->destroy(part->impl, 0);
        comm->collective = NULL;
        comm->close = NULL;
        ggi_collective_release(part);
    }
    return status;
}

static gg_status agreement_run(struct agreement *self)
{
    struct offer mine = {.kind = OFFER_NOTHING};
    atomic_store(&comm_rank(self->comm, self->comm->rank)->created, 0); /* of an earlier call */
    offer_make(self, &mine);
    gg_status status = agreement_gather(self->comm, self->offers, &mine, sizeof mine);
    if (!status)
        status = choice_make(self);
    return status ? status : agreement_settle(self);
}

static gg_status options_check(struct gg_comm *comm, const struct gg_comm_device_options *options)
{
    const char *wanted = options->transport ? options->transport : "auto";
    if (options->flags)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "gg_comm_open_device: flags 0x%x contain an unknown bit", options->flags);
    if (strlen(wanted) >= sizeof((struct offer *)0)->wanted)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "gg_comm_open_device: there is no transport '%.40s'; expected 'auto', "
                        "'host', 'staged', 'nccl' or 'rccl'",
                        wanted);
    if (comm->collective || comm->external)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "gg_comm_open_device: this communicator has a transport for device memory");
    return GG_OK;
}

gg_status gg_comm_open_device(gg_comm *comm, const struct gg_comm_device_options *options)
{
    const size_t first = GGI_SIZE_TO(struct gg_comm_device_options, transport);
    if (!ggi_sized_fits(options, first))
        return ggi_sized_refuse("gg_comm_open_device", "gg_comm_device_options", options, first);
    gg_status status = ggi_comm_check_process(comm, "gg_comm_open_device");
    if (!status)
        status = options_check(comm, options);
    if (status)
        return status;
    char why[400] = "";
    struct agreement self = {.comm = comm,
                             .device = options->device,
                             .path = "",
                             .wanted = options->transport ? options->transport : "auto",
                             .offers = calloc((size_t)comm->size, sizeof *self.offers),
                             .why = ggi_text_begin(why, sizeof why)};
    if (!self.offers)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "gg_comm_open_device: no memory for %d offers",
                        comm->size);
    status = agreement_run(&self);
    free(self.offers);
    return status;
}
