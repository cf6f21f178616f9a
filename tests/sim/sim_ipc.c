/* sim_ipc.c: memory shared between processes: a handle has the file of the device's memory and an
 * offset in it. */
#include "sim_ipc.h"
#include "sim_engine.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAGIC 0x73696d2d697063u

struct sim_ipc {
    uint64_t magic;
    int32_t process, file;
    int32_t physical; /* the device; its ordinal may differ in the other process */
    uint32_t unused;
    uint64_t offset, size, serial;
    uint64_t rest[2];
};
_Static_assert(sizeof(struct sim_ipc) == 64, "the size of a handle");

int sim_ipc_export(uint64_t address, void *handle)
{
    const struct sim_alloc *alloc = sim_memory_find(address);
    struct sim_ipc made = {.magic = MAGIC, .process = (int32_t)getpid()};
    if (!handle || !alloc || alloc->kind != SIM_DEVICE || alloc->base != address || alloc->pool ||
        alloc->imported || alloc->freed_on)
        return SIM_INVALID;
    made.file = alloc->device->file;
    made.physical = alloc->device->physical;
    made.offset = address - alloc->device->base;
    made.size = alloc->size;
    made.serial = alloc->serial;
    memcpy(handle, &made, sizeof made);
    return SIM_OK;
}

static bool is_open(const struct sim_ipc *handle, const struct sim_context *context)
{
    for (const struct sim_alloc *at = sim_memory_next(NULL); at; at = sim_memory_next(at))
        if (at->imported && at->context == context && at->serial == handle->serial &&
            at->flags == (unsigned)handle->process)
            return true;
    return false;
}

/* Maps the exporter's memory, extended to whole pages. */
static int map(struct sim_context *context, const struct sim_ipc *handle, int file, uint64_t *out)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t inside = handle->offset % page;
    const size_t size = (inside + handle->size + page - 1) / page * page;
    int status = sim_memory_import(context, file, handle->offset - inside, size, inside, out);
    struct sim_alloc *alloc = status ? NULL : sim_memory_find(*out);
    if (alloc) { /* is_open uses them to detect a second open */
        alloc->serial = handle->serial;
        alloc->flags = (unsigned)handle->process;
    }
    return status;
}

/* A handle of this process, or one that is already open, is refused: the strictest behaviour among
 * the vendors. */
int sim_ipc_open(struct sim_context *context, const void *handle, uint64_t *out)
{
    struct sim_ipc given;
    char path[64];
    int file, status;
    memcpy(&given, handle, sizeof given);
    if (!out || given.magic != MAGIC || given.physical != context->device->physical)
        return SIM_INVALID;
    if (given.process == (int32_t)getpid())
        return SIM_NO_CONTEXT;
    if (is_open(&given, context))
        return SIM_ALREADY_REGISTERED;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", given.process, given.file);
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return SIM_INVALID;
    status = map(context, &given, file, out);
    close(file);
    return status;
}

int sim_ipc_close(uint64_t address)
{
    struct sim_alloc *alloc = sim_memory_find(address);
    if (!alloc || !alloc->imported || alloc->imported != address)
        return SIM_INVALID;
    sim_wait_device(alloc->device);
    sim_command_wait_lost();
    alloc = sim_memory_find(address); /* the table may have been reallocated */
    if (!alloc || !alloc->imported)
        return SIM_INVALID;
    sim_memory_release(alloc);
    return SIM_OK;
}
