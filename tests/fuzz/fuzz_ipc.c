/* fuzz_ipc.c: IPC handles, as another process may send them.
 *
 * The device is that of host, with a UUID and the operations for IPC: a native handle is the size of the block that the
 * exporting process would have. Linked with --wrap=ggi_host_backend. */
#include "fuzz.h"
#include "loader/loader.h"

#include <limits.h>

static const uint8_t uuid[16] = "the only device";
static struct gg_backend_ops ops;
static size_t mapped; /* bytes of the open block */
static void *block;

static gg_status device_info(int32_t ordinal, struct gg_device_info *info)
{
    extern const struct gg_backend_desc *__real_ggi_host_backend(const struct gg_host_api *host);
    gg_status status = __real_ggi_host_backend(ggi_host_api())->ops->device_info(ordinal, info);
    memcpy(info->uuid, uuid, sizeof uuid);
    info->flags |= GG_DEVICE_HAS_UUID;
    return status;
}

static gg_status ipc_export(struct gg_device_impl *device, const void *pointer,
                            uint8_t native[GG_IPC_NATIVE_SIZE])
{
    (void)device;
    (void)pointer;
    memset(native, 0, GG_IPC_NATIVE_SIZE);
    return GG_OK;
}

/* The size is that of the handle's first two bytes; a block of none is refused. */
static gg_status ipc_open(struct gg_device_impl *device, const uint8_t native[GG_IPC_NATIVE_SIZE],
                          void **out)
{
    (void)device;
    FUZZ_CHECK(!block); /* the core does not open a block twice */
    mapped = (size_t)(native[0] | native[1] << 8);
    if (!mapped)
        return ggi_host_api()->fail(GG_ERR_INVALID_ARGUMENT, NULL, "unknown handle");
    block = malloc(mapped);
    FUZZ_CHECK(block);
    *out = block;
    return GG_OK;
}

static gg_status ipc_close(struct gg_device_impl *device, void *pointer)
{
    (void)device;
    FUZZ_CHECK(pointer == block);
    free(block);
    block = NULL;
    return GG_OK;
}

static gg_status pointer_info(struct gg_device_impl *device, const void *pointer,
                              struct gg_pointer_info *info)
{
    (void)device;
    info->kind = pointer == block ? GG_MEMORY_DEVICE : GG_MEMORY_HOST;
    info->base = pointer == block ? block : NULL;
    info->size = pointer == block ? mapped : 0;
    return GG_OK;
}

const struct gg_backend_desc *__wrap_ggi_host_backend(const struct gg_host_api *host);
const struct gg_backend_desc *__wrap_ggi_host_backend(const struct gg_host_api *host)
{
    extern const struct gg_backend_desc *__real_ggi_host_backend(const struct gg_host_api *api);
    static struct gg_backend_desc desc;
    desc = *__real_ggi_host_backend(host);
    ops = *desc.ops;
    ops.device_info = device_info;
    ops.ipc_export = ipc_export;
    ops.ipc_open = ipc_open;
    ops.ipc_close = ipc_close;
    ops.pointer_info = pointer_info;
    desc.ops = &ops;
    return &desc;
}

/* The first byte: whether to leave the number of bytes, the magic and the UUID as they are, which the fuzzer would
 * rarely guess. */
static void correct(struct gg_ipc_handle *handle, uint8_t selector)
{
    if (selector & 1)
        return;
    handle->struct_size = sizeof *handle;
    handle->magic = GG_IPC_MAGIC;
    handle->version %= 2 * GG_IPC_VERSION;
    memcpy(handle->uuid, uuid, sizeof uuid);
    strcpy(handle->backend, "host");
}

static void use(gg_memory *memory, const struct gg_ipc_handle *handle)
{
    volatile char *first = gg_memory_pointer(memory);
    FUZZ_CHECK(gg_memory_size(memory) == handle->nbytes);
    first[0] = 1; /* the address sanitizer detects writes beyond the block */
    first[handle->nbytes - 1] = 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gg_ipc_handle handle = {0};
    gg_memory *memory = NULL, *again = NULL;
    if (!size)
        return 0;
    memcpy(&handle, data + 1, size - 1 < sizeof handle ? size - 1 : sizeof handle);
    correct(&handle, data[0]);
    if (memchr(handle.backend, 0, sizeof handle.backend) && strcmp(handle.backend, "host") != 0)
        return 0; /* the message about an unknown backend is kept */
    if (!gg_ipc_open(&handle, &memory))
        use(memory, &handle);
    if (memory && !gg_ipc_open(&handle, &again)) /* shares the block */
        use(again, &handle);
    gg_memory_release(memory);
    gg_memory_release(again);
    return 0;
}
