/* launch_told.c: which launch failed, in words: the kernel, its shape and its arguments. With
 * GPUGLUE_DEBUG=sync that is the launch that did it; without, only the one that was told. */
#include "module.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Bytes as an integer, for what fits one. */
static uint64_t bits_of(const void *value, size_t size)
{
    uint64_t bits = 0;
    memcpy(&bits, value, size);
    return bits;
}

static int64_t signed_of(const void *value, size_t size)
{
    const unsigned unused = 64 - 8 * (unsigned)size;
    return (int64_t)(bits_of(value, size) << unused) >> unused;
}

static void tell_bytes(struct ggi_text *text, const unsigned char *bytes, size_t size)
{
    ggi_text_add(text, "0x");
    for (size_t i = 0; i < size && i < 16; i++)
        ggi_text_add(text, "%02x", bytes[i]);
    if (size > 16)
        ggi_text_add(text, "\xe2\x80\xa6 (%zu bytes)", size);
}

/* An address, and which memory of the launch it points into. PTX declares addresses as unsigned. */
static void tell_pointer(struct ggi_text *text, const struct gg_launch *launch, uint64_t address)
{
    ggi_text_add(text, "0x%" PRIx64, address);
    for (size_t i = 0; i < launch->memory_count; i++) {
        const gg_memory *memory = launch->memories[i];
        const uint64_t at = address - (uintptr_t)memory->pointer;
        if (at > memory->nbytes)
            continue;
        ggi_text_add(text, " (%zu bytes", memory->nbytes);
        if (at)
            ggi_text_add(text, ", at %" PRIu64, at);
        ggi_text_add(text, ")");
        return;
    }
}

static void tell_float(struct ggi_text *text, const void *value, size_t size)
{
    float narrow;
    double wide;
    memcpy(&wide, value, size == sizeof wide ? size : 0);
    memcpy(&narrow, value, size == sizeof narrow ? size : 0);
    if (size == sizeof wide)
        ggi_text_add(text, "%.17g", wide);
    else if (size == sizeof narrow)
        ggi_text_add(text, "%.9g", (double)narrow);
    else
        tell_bytes(text, value, size);
}

static void tell_argument(struct ggi_text *text, const struct gg_launch *launch, uint32_t index,
                          uint32_t kind)
{
    const void *value = launch->arguments[index];
    const size_t size = launch->sizes[index];
    const bool number = size == 1 || size == 2 || size == 4;
    if (!value)
        ggi_text_add(text, "%zu bytes of its own", size);
    else if (kind == GG_PARAMETER_FLOAT)
        tell_float(text, value, size);
    else if (kind == GG_PARAMETER_SIGNED ? number || size == 8
                                         : number && kind == GG_PARAMETER_INTEGER)
        ggi_text_add(text, "%" PRId64, signed_of(value, size));
    else if (number && kind == GG_PARAMETER_UNSIGNED)
        ggi_text_add(text, "%" PRIu64, bits_of(value, size));
    else if (size == sizeof(void *))
        tell_pointer(text, launch, bits_of(value, size));
    else
        tell_bytes(text, value, size);
}

static void tell_arguments(struct ggi_text *text, const gg_kernel *kernel,
                           const struct gg_launch *launch)
{
    ggi_text_add(text, "arguments (");
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const bool told = (int32_t)i < kernel->parameter_count;
        ggi_text_add(text, "%s", i ? ", " : "");
        tell_argument(text, launch, i, told ? kernel->parameters[i].kind : GG_PARAMETER_UNKNOWN);
    }
    ggi_text_add(text, ")");
}

/* What later errors say of how the device was lost. */
static void tell_loss(struct gg_device *device, const char *before, const char *after)
{
    pthread_mutex_lock(&device->spare_lock);
    if (device->lost.status && !strcmp(device->lost.message, before))
        snprintf(device->lost.message, sizeof device->lost.message, "%s", after);
    pthread_mutex_unlock(&device->spare_lock);
}

gg_status ggi_launch_failed(const gg_kernel *kernel, const struct gg_launch *launch,
                            gg_status status)
{
    const bool exact = atomic_load_explicit(&ggi_debug_sync, memory_order_relaxed);
    struct gg_error first = {.struct_size = sizeof first};
    char before[sizeof first.message], room[320];
    struct ggi_text arguments;
    gg_last_error(&first);
    memcpy(before, first.message, sizeof before);
    ggi_text_begin(&arguments, room, sizeof room);
    tell_arguments(&arguments, kernel, launch);
    struct ggi_text text;
    ggi_text_begin(&text, first.message, sizeof first.message);
    ggi_text_add(&text, "%skernel %.100s, grid %u x %u x %u, block %u x %u x %u, %u bytes shared, ",
                 exact ? "" : "at the launch of ", kernel->name, launch->grid[0], launch->grid[1],
                 launch->grid[2], launch->block[0], launch->block[1], launch->block[2],
                 launch->shared);
    ggi_text_add(&text, "%s: %.300s", room, before);
    ggi_thread()->error = first;
    if (status == GG_ERR_DEVICE_LOST)
        tell_loss(kernel->module->device, before, first.message);
    return status;
}
