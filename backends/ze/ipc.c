/* ipc.c: device memory shared with other processes. A handle of Intel's driver begins with the number of a file descriptor.
 * Newer drivers add the process and fetch the file themselves. For the others the unused end of the handle has the process
 * here, and the importer fetches the file with pidfd_getfd. */
#include "ze.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SENDER_MAGIC 0x49475a47u /* "GZGI" */
#define OPAQUE_PROCESS 16        /* offset of the process in a newer handle; 0 in an older one */
#define STAT_START 22            /* field of /proc/PID/stat: see proc(5) */

enum { CALL_PIDFD_OPEN = 434, CALL_PIDFD_GETFD = 438 }; /* Linux 5.6; not in all headers */

/* The end of an older handle. Numbers of processes and of files are reused; the other members are not. */
struct sender {
    uint32_t magic;
    int32_t process;
    uint64_t started; /* when the process was, in ticks since boot */
    uint64_t inode;
};
#define SENDER_AT (GG_IPC_NATIVE_SIZE - sizeof(struct sender))

_Static_assert(sizeof(struct ze_ipc_handle) == GG_IPC_NATIVE_SIZE, "the size of a handle");

/* Drivers may make another handle at each call: the core expects equal handles of equal memory. */
struct ze_export {
    struct ze_export *next;
    const void *pointer;
    uint64_t id; /* of the memory: if others free it, other memory may get its address */
    bool made;
    struct ze_ipc_handle handle; /* as the driver made it */
};

/* 0 if there is no such process. By its first thread, as in backends/host/ipc.c. */
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

static int32_t handle_process(const struct ze_ipc_handle *handle)
{
    int32_t process;
    memcpy(&process, handle->data + OPAQUE_PROCESS, sizeof process);
    return process;
}

/* ---- exporting ---- */

static gg_status handle_sign(struct ze_ipc_handle *handle)
{
    struct stat facts;
    int file;
    memcpy(&file, handle->data, sizeof file);
    if (fstat(file, &facts))
        return ze_api->fail(GG_ERR_UNSUPPORTED, NULL,
                            "the driver's handle contains no file that could be sent: %s",
                            strerror(errno));
    const struct sender sender = {.magic = SENDER_MAGIC,
                                  .process = (int32_t)getpid(),
                                  .started = process_started((int32_t)getpid()),
                                  .inode = facts.st_ino};
    memcpy(handle->data + SENDER_AT, &sender, sizeof sender);
    return GG_OK;
}

/* device->lock is held. */
static struct ze_export **exports_find(struct gg_device_impl *device, const void *pointer)
{
    struct ze_export **at = &device->exports;
    while (*at && (*at)->pointer != pointer)
        at = &(*at)->next;
    return at;
}

/* device->lock is held. */
static gg_status exports_get(struct gg_device_impl *device, const void *pointer, uint64_t id,
                             struct ze_ipc_handle *out)
{
    struct ze_export **at = exports_find(device, pointer), *known = *at;
    if (!known) {
        known = *at = calloc(1, sizeof *known);
        if (!known)
            return ze_no_memory("an exported block");
        known->pointer = pointer;
    }
    if (!known->made || known->id != id) {
        const int code = ze.ipc_get(device->context, pointer, &known->handle);
        if (code)
            return ze_fail(code, "exporting the memory at %p", pointer);
        known->made = true;
        known->id = id;
    }
    *out = known->handle;
    return GG_OK;
}

gg_status ze_ipc_export(struct gg_device_impl *device, const void *pointer,
                        uint8_t native[GG_IPC_NATIVE_SIZE])
{
    struct ze_ipc_handle handle;
    struct ze_pointer_properties properties = {.stype =
                                                   ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
    if (!ze_device_supports(device, GG_OP_ipc_export))
        return ze_api->fail(GG_ERR_UNSUPPORTED, NULL,
                            "this driver reports that it shares no memory between processes");
    const int code = ze.pointer_properties(device->context, pointer, &properties, NULL);
    if (code)
        return ze_fail(code, "attributes of pointer %p", pointer);
    pthread_mutex_lock(&device->lock);
    gg_status status = exports_get(device, pointer, properties.id, &handle);
    pthread_mutex_unlock(&device->lock);
    if (!status && !handle_process(&handle))
        status = handle_sign(&handle);
    if (!status)
        memcpy(native, handle.data, sizeof handle.data);
    return status;
}

/* Before API 1.6 the driver releases a handle with its memory. */
void ze_ipc_forget(struct gg_device_impl *device, const void *pointer)
{
    pthread_mutex_lock(&device->lock);
    struct ze_export **at = exports_find(device, pointer), *known = *at;
    if (known)
        *at = known->next;
    pthread_mutex_unlock(&device->lock);
    if (known && known->made && ze.ipc_put) {
        const int code = ze.ipc_put(device->context, known->handle);
        ze_log_failure(ze_is_unsupported(code) ? 0 : code, "releasing a handle");
    }
    free(known);
}

/* ---- opening ---- */

static gg_status sender_has_ended(int32_t process)
{
    return ze_api->fail(GG_ERR_INVALID_ARGUMENT, NULL,
                        "process %d, which exported the memory, has ended, or is not visible here: "
                        "keep it running until the memory is open, and give both containers one "
                        "PID namespace",
                        (int)process);
}

static gg_status sender_refuses(const struct sender *sender, int error)
{
    if (error == EBADF)
        return ze_api->fail(GG_ERR_INVALID_ARGUMENT, NULL,
                            "process %d no longer has the memory that it exported",
                            (int)sender->process);
    return ze_api->fail(GG_ERR_INVALID_ARGUMENT, NULL,
                        "the memory of process %d cannot be fetched: %s. Both processes must "
                        "belong to one user, who may trace the exporter: see "
                        "/proc/sys/kernel/yama/ptrace_scope and prctl(PR_SET_PTRACER)",
                        (int)sender->process, strerror(error));
}

/* A descriptor of this process for the sender's file. */
static gg_status sender_fetch(const struct sender *sender, int file, int *out)
{
    struct stat facts;
    const int process = (int)syscall(CALL_PIDFD_OPEN, sender->process, 0);
    if (process < 0 && errno == ENOSYS)
        return ze_api->fail(GG_ERR_UNSUPPORTED, NULL,
                            "memory of other processes needs Linux 5.6 or newer");
    if (process < 0 || process_started(sender->process) != sender->started) {
        if (process >= 0)
            close(process);
        return sender_has_ended(sender->process);
    }
    const int fetched = (int)syscall(CALL_PIDFD_GETFD, process, file, 0);
    const int error = errno;
    close(process);
    if (fetched < 0)
        return sender_refuses(sender, error);
    if (fstat(fetched, &facts) || facts.st_ino != sender->inode) {
        close(fetched);
        return sender_refuses(sender, EBADF);
    }
    *out = fetched;
    return GG_OK;
}

/* Replaces the number of the exporter's file by that of ours. */
static gg_status handle_receive(struct ze_ipc_handle *handle, int *fetched)
{
    struct sender sender;
    uint64_t number;
    const int32_t process = handle_process(handle);
    if (process)
        return kill(process, 0) && errno == ESRCH ? sender_has_ended(process) : GG_OK;
    memcpy(&number, handle->data, sizeof number);
    memcpy(&sender, handle->data + SENDER_AT, sizeof sender);
    if (sender.magic != SENDER_MAGIC || sender.process <= 0 || number > INT32_MAX)
        return ze_api->fail(GG_ERR_INVALID_ARGUMENT, NULL,
                            "the handle is damaged: send the bytes that the exporter made");
    const gg_status status = sender_fetch(&sender, (int)number, fetched);
    if (status)
        return status;
    number = (uint64_t)*fetched;
    memcpy(handle->data, &number, sizeof number);
    memset(handle->data + SENDER_AT, 0, sizeof sender);
    return GG_OK;
}

gg_status ze_ipc_open(struct gg_device_impl *device, const uint8_t native[GG_IPC_NATIVE_SIZE],
                      void **out)
{
    struct ze_ipc_handle handle;
    void *pointer = NULL;
    int file = -1;
    memcpy(handle.data, native, sizeof handle.data);
    const gg_status status = handle_receive(&handle, &file);
    if (status)
        return status;
    const int code = ze.ipc_open(device->context, device->gpu->handle, handle, 0, &pointer);
    if (file >= 0)
        close(file); /* the driver has its own reference */
    if (code == ZE_RESULT_ERROR_INVALID_ARGUMENT)
        return ze_api->fail(GG_ERR_INVALID_ARGUMENT, NULL,
                            "the driver refuses the handle: the exporter has freed the memory, or "
                            "the handle is not from this driver");
    if (code)
        return ze_fail(code, "opening memory of another process");
    *out = pointer;
    return GG_OK;
}

gg_status ze_ipc_close(struct gg_device_impl *device, void *pointer)
{
    const int code = ze.ipc_close(device->context, pointer);
    if (!code || ze_is_shut_down(code))
        return GG_OK;
    return ze_fail(code, "closing memory of another process at %p", pointer);
}
