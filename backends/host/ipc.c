/* ipc.c: handles to device memory for other processes. A handle has a range of the exporter's file (shared.c), which the
 * importer opens through /proc, and what identifies the process and the file: numbers of both are reused. */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HANDLE_MAGIC 0x50494847u /* "GHIP" */
#define STAT_START 22            /* field of /proc/PID/stat: see proc(5) */

struct host_ipc {
    uint32_t magic;
    int32_t process, file;
    uint32_t reserved;
    uint64_t started; /* when the process was, in ticks since boot */
    uint64_t inode;
    uint64_t offset, size; /* of the block in the file */
    uint64_t checksum;     /* of the members above */
};
_Static_assert(sizeof(struct host_ipc) <= GG_IPC_NATIVE_SIZE, "the size of a handle");

static uint64_t handle_checksum(const struct host_ipc *handle) /* FNV-1a */
{
    const unsigned char *bytes = (const unsigned char *)handle;
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < offsetof(struct host_ipc, checksum); i++)
        sum = (sum ^ bytes[i]) * 0x100000001b3u;
    return sum;
}

/* 0 if there is no such process. By its first thread: qemu-user estimates the time in /proc/PID/stat of the process itself. */
static uint64_t process_started(int32_t process)
{
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)process, (int)process);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    const size_t size = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[size] = '\0';
    char *at = strrchr(line, ')'); /* ends the name, which may contain anything */
    for (int field = 2; at && field < STAT_START; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

/* ---- exporting ---- */

static gg_status ipc_refuse_block(const struct host_block *block, const void *pointer)
{
    if (block && block->global)
        return host_api->fail(
            GG_ERR_UNSUPPORTED, NULL,
            "%p is a variable of a module, which other processes cannot map: copy "
            "it to allocated memory, and export that",
            pointer);
    if (block && !block->mapped)
        return host_api->fail(
            GG_ERR_UNSUPPORTED, NULL,
            "%zu bytes share their pages with other memory of this process, so that other "
            "processes cannot map them: unset GPUGLUE_ALLOCATOR",
            block->size);
    return host_api->fail(
        GG_ERR_INVALID_ARGUMENT, NULL,
        "%p is not the start of memory that this process allocated from the device", pointer);
}

static gg_status ipc_export_block(struct gg_device_impl *device, struct host_block *block,
                                  struct host_ipc *handle)
{
    gg_status status = block->shared ? GG_OK : host_shared_convert(device, block);
    if (status)
        return status;
    if (!host_shared_is_current(device, block))
        return host_api->fail(
            GG_ERR_INVALID_ARGUMENT, NULL,
            "the program has closed the file descriptor of the memory, through which "
            "other processes would open it: close no descriptors of libraries, or "
            "allocate the memory after that");
    *handle = (struct host_ipc){.magic = HANDLE_MAGIC,
                                .process = (int32_t)getpid(),
                                .file = device->file,
                                .started = process_started((int32_t)getpid()),
                                .inode = block->inode,
                                .offset = block->offset,
                                .size = block->size};
    handle->checksum = handle_checksum(handle);
    return GG_OK;
}

gg_status host_ipc_export(struct gg_device_impl *device, const void *pointer,
                          uint8_t native[GG_IPC_NATIVE_SIZE])
{
    struct host_block block;
    struct host_ipc handle;
    static pthread_mutex_t export_lock = PTHREAD_MUTEX_INITIALIZER; /* which may wait for work */
    pthread_mutex_lock(&export_lock); /* one conversion of a block, and one pause of all devices */
    const bool found = host_block_get(device, pointer, &block);
    const bool own = found && block.mapped && block.kind == GG_MEMORY_DEVICE && !block.imported;
    gg_status status = own ? ipc_export_block(device, &block, &handle)
                           : ipc_refuse_block(found ? &block : NULL, pointer);
    if (!status)
        host_block_set(device, &block);
    pthread_mutex_unlock(&export_lock);
    if (status)
        return status;
    memset(native, 0, GG_IPC_NATIVE_SIZE);
    memcpy(native, &handle, sizeof handle);
    return GG_OK;
}

/* ---- opening ---- */

static gg_status ipc_check_handle(const struct host_ipc *handle)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (handle->magic != HANDLE_MAGIC || handle->checksum != handle_checksum(handle) ||
        !handle->size || handle->offset % page)
        return host_api->fail(GG_ERR_INVALID_ARGUMENT, NULL,
                              "the handle is damaged: send the bytes that the exporter made");
    if (process_started(handle->process) != handle->started)
        return host_api->fail(
            GG_ERR_INVALID_ARGUMENT, NULL,
            "process %d, which exported the memory, has ended, or is not visible here: keep it "
            "running "
            "until the memory is open, and give both containers one PID namespace",
            (int)handle->process);
    return GG_OK;
}

static gg_status ipc_refuse_open(const struct host_ipc *handle)
{
    return host_api->fail(
        GG_ERR_INVALID_ARGUMENT, NULL,
        "the memory of process %d cannot be opened: %s. Both processes must belong "
        "to one user",
        (int)handle->process, strerror(errno));
}

/* Any other file may have the same inode number on its own file system. */
static bool file_has_name(const char *path)
{
    static const char expected[] = "/memfd:" HOST_FILE_NAME " (deleted)";
    char name[sizeof expected] = "";
    return readlink(path, name, sizeof name) == sizeof expected - 1 &&
           !memcmp(name, expected, sizeof expected - 1);
}

static gg_status ipc_check_file(const struct host_ipc *handle, int file, const char *path)
{
    struct stat found;
    const bool same = !fstat(file, &found) && found.st_ino == handle->inode && file_has_name(path);
    const uint64_t end = same ? (uint64_t)found.st_size : 0;
    if (handle->size <= end && handle->offset <= end - handle->size)
        return GG_OK;
    return host_api->fail(
        GG_ERR_INVALID_ARGUMENT, NULL,
        same ? "the handle claims %llu bytes, which the memory of process %d does not have"
             : "the %llu bytes that process %d exported no longer exist",
        (unsigned long long)handle->size, (int)handle->process);
}

/* A handle may name any descriptor, and to open a device or a pipe has effects: O_PATH has none. */
static gg_status ipc_open_file(const struct host_ipc *handle, int *out)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)handle->process, (int)handle->file);
    const int found = open(path, O_PATH | O_CLOEXEC);
    if (found < 0)
        return ipc_refuse_open(handle);
    snprintf(path, sizeof path, "/proc/self/fd/%d", found);
    gg_status status = ipc_check_file(handle, found, path);
    if (!status && (*out = open(path, O_RDWR | O_CLOEXEC)) < 0)
        status = ipc_refuse_open(handle);
    close(found);
    return status;
}

static gg_status ipc_map(struct gg_device_impl *device, const struct host_ipc *handle, int file,
                         void **out)
{
    struct host_block block = {
        .size = handle->size, .kind = GG_MEMORY_DEVICE, .mapped = true, .imported = true};
    void *base =
        mmap(NULL, block.size, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)handle->offset);
    block.base = base;
    if (base != MAP_FAILED && host_block_insert(device, &block)) {
        *out = base;
        return GG_OK;
    }
    if (base != MAP_FAILED)
        munmap(base, block.size);
    return host_api->fail(GG_ERR_OUT_OF_MEMORY, NULL,
                          "%zu bytes of another process cannot be mapped", block.size);
}

gg_status host_ipc_open(struct gg_device_impl *device, const uint8_t native[GG_IPC_NATIVE_SIZE],
                        void **out)
{
    struct host_ipc handle;
    int file = -1;
    memcpy(&handle, native, sizeof handle);
    gg_status status = ipc_check_handle(&handle);
    if (!status)
        status = ipc_open_file(&handle, &file);
    if (status)
        return status;
    status = ipc_map(device, &handle, file, out);
    close(file);
    return status;
}

gg_status host_ipc_close(struct gg_device_impl *device, void *pointer)
{
    struct host_block block;
    if (!host_block_get(device, pointer, &block) || !block.imported)
        return host_api->fail(GG_ERR_INVALID_ARGUMENT, NULL, "%p is not memory of another process",
                              pointer);
    host_block_drop(device, pointer);
    munmap(block.base, block.size);
    return GG_OK;
}
