/* vmem.c: addresses that are reserved, and memory that is mapped there later: managed memory and the pools of
 * hipMallocAsync need it, and AMD's model of the kernel driver is older. The memory is the host's, which the GPUs reach. */
#include "model.h"
#include "runtime.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The runtime's values. */
enum { ACCESS_READ_WRITE = 3 };
#define PAGE 4096u

struct vmem_handle {
    uint64_t handle;
};

struct memory_access {
    int permissions;
    struct agent agent;
};

/* What a handle stands for. */
struct vmem_block {
    int file;
};

int hsa_amd_vmem_address_reserve(void **address, size_t size, uint64_t hint, uint64_t flags);
int hsa_amd_vmem_address_reserve_align(void **address, size_t size, uint64_t hint,
                                       uint64_t alignment, uint64_t flags);
int hsa_amd_vmem_address_free(void *address, size_t size);
int hsa_amd_vmem_handle_create(struct pool, size_t size, int type, uint64_t flags,
                               struct vmem_handle *);
int hsa_amd_vmem_handle_release(struct vmem_handle);
int hsa_amd_vmem_map(void *address, size_t size, size_t offset, struct vmem_handle, uint64_t flags);
int hsa_amd_vmem_unmap(void *address, size_t size);
int hsa_amd_vmem_set_access(void *address, size_t size, const struct memory_access *, size_t count);
int hsa_amd_vmem_get_access(void *address, int *permissions, struct agent);

/* ---- addresses ---- */

/* Addresses beyond the GPUs' apertures are the host's own; the first ones that fit the alignment are taken. */
EXPORT int hsa_amd_vmem_address_reserve_align(void **address, size_t size, uint64_t hint,
                                              uint64_t alignment, uint64_t flags)
{
    const size_t align = alignment > PAGE ? alignment : PAGE;
    (void)hint;
    (void)flags;
    char *at = mmap(NULL, size + align, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return STATUS_OUT_OF_RESOURCES;
    const size_t before = (align - (uintptr_t)at % align) % align;
    if (before)
        munmap(at, before);
    munmap(at + before + size, align - before);
    *address = at + before;
    return STATUS_SUCCESS;
}

EXPORT int hsa_amd_vmem_address_reserve(void **address, size_t size, uint64_t hint, uint64_t flags)
{
    return hsa_amd_vmem_address_reserve_align(address, size, hint, PAGE, flags);
}

EXPORT int hsa_amd_vmem_address_free(void *address, size_t size)
{
    return munmap(address, size) ? STATUS_INVALID_ARGUMENT : STATUS_SUCCESS;
}

/* ---- memory ---- */

EXPORT int hsa_amd_vmem_handle_create(struct pool pool, size_t size, int type, uint64_t flags,
                                      struct vmem_handle *handle)
{
    (void)type;
    (void)flags;
    struct vmem_block *block = malloc(sizeof *block);
    if (!block || !runtime_reserve(pool, block, size)) {
        free(block);
        return STATUS_OUT_OF_RESOURCES;
    }
    block->file = memfd_create("gpu model", MFD_CLOEXEC);
    handle->handle = (uint64_t)(uintptr_t)block;
    if (block->file >= 0 && !ftruncate(block->file, (off_t)size))
        return STATUS_SUCCESS;
    hsa_amd_vmem_handle_release(*handle);
    return STATUS_OUT_OF_RESOURCES;
}

/* What is mapped stays until it is unmapped. */
EXPORT int hsa_amd_vmem_handle_release(struct vmem_handle handle)
{
    struct vmem_block *block = (struct vmem_block *)(uintptr_t)handle.handle;
    runtime_unreserve(block);
    close(block->file);
    free(block);
    return STATUS_SUCCESS;
}

EXPORT int hsa_amd_vmem_map(void *address, size_t size, size_t offset, struct vmem_handle handle,
                            uint64_t flags)
{
    const struct vmem_block *block = (const struct vmem_block *)(uintptr_t)handle.handle;
    (void)flags;
    const void *at = mmap(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                          block->file, (off_t)offset);
    return at == MAP_FAILED ? STATUS_OUT_OF_RESOURCES : STATUS_SUCCESS;
}

EXPORT int hsa_amd_vmem_unmap(void *address, size_t size)
{
    const void *at = mmap(address, size, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return at == MAP_FAILED ? STATUS_INVALID_ARGUMENT : STATUS_SUCCESS;
}

/* ---- access: each GPU has it ---- */

EXPORT int hsa_amd_vmem_set_access(void *address, size_t size, const struct memory_access *access,
                                   size_t count)
{
    (void)address;
    (void)size;
    (void)access;
    (void)count;
    return STATUS_SUCCESS;
}

EXPORT int hsa_amd_vmem_get_access(void *address, int *permissions, struct agent agent)
{
    (void)address;
    (void)agent;
    *permissions = ACCESS_READ_WRITE;
    return STATUS_SUCCESS;
}
