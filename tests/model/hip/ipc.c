/* ipc.c: memory shared with another process, which AMD's model of the kernel driver does not support. All memory of a process
 * is one file there; a process that opens a handle allocates as much and maps that part of the other's file over it. */
#include "model.h"
#include "runtime.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAGIC = 0x67676d6f };
enum { WHOLE = 2 << 20 }; /* the runtime keeps no freed memory of this size for other uses */

struct ipc_handle {
    uint32_t magic, process;
    int32_t file;
    uint32_t reserved;
    uint64_t offset, size;
};

struct mapping {
    uint64_t begin, end, offset;
    char path[256];
};

int hsa_amd_ipc_memory_create(void *memory, size_t size, struct ipc_handle *handle);
int hsa_amd_ipc_memory_attach(const struct ipc_handle *handle, size_t size, uint32_t agent_count,
                              const struct agent *agents, void **memory);
int hsa_amd_ipc_memory_detach(void *memory);

/* ---- the file that backs memory ---- */

static bool mapping_of(const void *address, struct mapping *found)
{
    char line[512];
    const uint64_t at = (uint64_t)(uintptr_t)address;
    bool there = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && !there && fgets(line, sizeof line, maps)) {
        const int fields = sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %255[^\n]",
                                  &found->begin, &found->end, &found->offset, found->path);
        there = fields == 4 && found->begin <= at && at < found->end;
    }
    if (maps)
        fclose(maps);
    return there;
}

/* The descriptor of a file by its name in mappings; -1 if there is none. */
static int descriptor_of(const char *path)
{
    char link[64], name[256];
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        const ssize_t length = readlink(link, name, sizeof name - 1);
        name[length > 0 ? length : 0] = 0;
        if (length > 0 && !strcmp(name, path))
            return fd;
    }
    return -1;
}

/* The address at which a GPU has the memory mapped, or NULL. */
static const void *mapped_by_gpu(const void *memory, struct mapping *mapping)
{
    for (int n = 0; model_gpu(n); n++) {
        const void *at = gpu_memory(model_gpu(n), (uint64_t)(uintptr_t)memory);
        if (mapping_of(at, mapping))
            return at;
    }
    return NULL;
}

/* ---- the runtime's functions ---- */

EXPORT int hsa_amd_ipc_memory_create(void *memory, size_t size, struct ipc_handle *handle)
{
    struct mapping mapping;
    const char *at = mapped_by_gpu(memory, &mapping);
    const int file = at ? descriptor_of(mapping.path) : -1;
    if (file < 0)
        return STATUS_INVALID_ARGUMENT;
    *handle = (struct ipc_handle){MAGIC,
                                  (uint32_t)getpid(),
                                  file,
                                  0,
                                  mapping.offset + ((uint64_t)(uintptr_t)at - mapping.begin),
                                  size};
    return STATUS_SUCCESS;
}

static bool map_over(void *at, const struct ipc_handle *handle, int file)
{
    return mmap(at, handle->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                (off_t)handle->offset) != MAP_FAILED;
}

static bool map_everywhere(void *memory, const struct ipc_handle *handle, int file)
{
    struct mapping mapping;
    bool done = true;
    for (int n = 0; model_gpu(n); n++) {
        void *at = gpu_memory(model_gpu(n), (uint64_t)(uintptr_t)memory);
        if (mapping_of(at, &mapping))
            done = map_over(at, handle, file) && done;
    }
    return mapping_of(memory, &mapping) ? map_over(memory, handle, file) && done : done;
}

EXPORT int hsa_amd_ipc_memory_attach(const struct ipc_handle *handle, size_t size,
                                     uint32_t agent_count, const struct agent *agents, void **memory)
{
    char path[64];
    (void)size;
    if (handle->magic != MAGIC || !agent_count)
        return STATUS_INVALID_ARGUMENT;
    snprintf(path, sizeof path, "/proc/%u/fd/%d", handle->process, handle->file);
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return STATUS_INVALID_ARGUMENT;
    const size_t whole = (handle->size + WHOLE - 1) / WHOLE * WHOLE;
    int status = runtime_allocate(agent_count, agents, whole, memory);
    if (status == STATUS_SUCCESS && !map_everywhere(*memory, handle, file)) {
        runtime_free(*memory);
        status = STATUS_OUT_OF_RESOURCES;
    }
    close(file);
    return status;
}

EXPORT int hsa_amd_ipc_memory_detach(void *memory)
{
    return runtime_free(memory);
}
