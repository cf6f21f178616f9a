/* fuzz_host_ipc.c: host's own part of an IPC handle, as another process may send it: which file of which process, and where.
 *
 * The input changes bits of a right handle to memory of this process. */
#include "fuzz.h"
#include "runtime/device.h"

#include <gpuglue/gpuglue.h>

#include <stddef.h>
#include <sys/stat.h>

#define BLOCK ((size_t)1 << 20) /* is mapped from the device's file */

/* As in backends/host/ipc.c. */
struct native {
    uint32_t magic;
    int32_t process, file;
    uint32_t reserved;
    uint64_t started, inode, offset, size, checksum;
};

static gg_device *device;
static struct native right;

static uint64_t checksum(const struct native *native)
{
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < offsetof(struct native, checksum); i++)
        sum = (sum ^ ((const uint8_t *)native)[i]) * 0x100000001b3u;
    return sum;
}

static gg_status open_native(const struct native *native, void **out)
{
    uint8_t bytes[GG_IPC_NATIVE_SIZE] = {0};
    memcpy(bytes, native, sizeof *native);
    return device->ops->ipc_open(atomic_load(&device->impl), bytes, out);
}

/* No byte outside of the file is mapped: to read one would end the process. */
static void use(const struct native *native, void *pointer)
{
    struct stat file;
    const volatile char *bytes = pointer;
    FUZZ_CHECK(native->process == right.process && native->inode == right.inode);
    FUZZ_CHECK(!fstat(native->file, &file) && file.st_ino == native->inode);
    FUZZ_CHECK(native->offset + native->size > native->offset);
    FUZZ_CHECK(native->offset + native->size <= (uint64_t)file.st_size);
    (void)bytes[0];
    (void)bytes[native->size - 1];
    FUZZ_CHECK(!device->ops->ipc_close(atomic_load(&device->impl), pointer));
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    static gg_memory *memory; /* left to the process, as its handle requires */
    struct gg_ipc_handle handle = {.struct_size = sizeof handle};
    void *pointer = NULL;
    (void)count;
    (void)arguments;
    FUZZ_CHECK(!gg_device_get("host", 0, &device));
    FUZZ_CHECK(!gg_memory_alloc(device, GG_MEMORY_DEVICE, BLOCK, NULL, &memory));
    FUZZ_CHECK(!gg_ipc_export(memory, &handle));
    memcpy(&right, handle.native, sizeof right);
    FUZZ_CHECK(right.checksum == checksum(&right));
    FUZZ_CHECK(!open_native(&right, &pointer));
    use(&right, pointer);
    return 0;
}

/* The first byte: whether to leave the magic and the checksum as they are, which the fuzzer would rarely guess. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct native native = right;
    void *pointer = NULL;
    for (size_t i = 1; i < size && i <= sizeof native; i++)
        ((uint8_t *)&native)[i - 1] ^= data[i];
    if (size && !(data[0] & 1)) {
        native.magic = right.magic;
        native.checksum = checksum(&native);
    }
    if (!open_native(&native, &pointer))
        use(&native, pointer);
    return 0;
}
