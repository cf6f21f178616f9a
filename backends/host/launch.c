/* launch.c: launches: commands of a stream, with a copy of the arguments; and queries about kernels. */
#include "host.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGUMENT_ALIGNMENT 16u
#define USUAL_THREADS 256u

struct launch {
    struct gg_stream_impl *stream;
    struct host_grid grid;
    const void *arguments[]; /* followed by their values */
};

static void run_launch(const struct host_command *command)
{
    struct launch *launch = command->argument;
    struct gg_stream_impl *stream = launch->stream;
    char failure[HOST_FAILURE_SIZE];
    host_run_grid(&stream->device->team, &launch->grid, failure);
    if (failure[0]) {
        pthread_mutex_lock(&stream->lock);
        memcpy(stream->failure, failure, sizeof failure);
        pthread_mutex_unlock(&stream->lock);
    }
    free(launch);
}

static size_t padded_size(size_t size)
{
    return (size + ARGUMENT_ALIGNMENT - 1) / ARGUMENT_ALIGNMENT * ARGUMENT_ALIGNMENT;
}

/* The pointers first, then the values. */
static struct launch *launch_copy(const struct gg_launch *given)
{
    size_t head = padded_size(sizeof(struct launch) + given->argument_count * sizeof(void *));
    size_t total = head;
    for (uint32_t i = 0; i < given->argument_count; i++)
        total += padded_size(given->sizes[i]);
    struct launch *launch = malloc(total);
    char *at = (char *)launch + head;
    for (uint32_t i = 0; launch && i < given->argument_count; i++) {
        memcpy(at, given->arguments[i], given->sizes[i]);
        launch->arguments[i] = at;
        at += padded_size(given->sizes[i]);
    }
    return launch;
}

static struct gg_host_dim host_dim(const uint32_t size[3])
{
    return (struct gg_host_dim){size[0], size[1], size[2]};
}

gg_status host_kernel_launch(struct gg_stream_impl *stream, struct gg_kernel_impl *kernel,
                             const struct gg_launch *given)
{
    if (given->flags & GG_LAUNCH_COOPERATIVE)
        return host_api->fail(
            GG_ERR_UNSUPPORTED,
            NULL, "cooperative launch: on this backend a grid may have more blocks than threads to run them");
    struct launch *launch = launch_copy(given);
    if (!launch)
        return host_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no memory for a launch");
    launch->stream = stream;
    launch->grid = (struct host_grid){kernel->entry, launch->arguments, host_dim(given->grid),
                                      host_dim(given->block), given->shared};
    const struct host_command work = {.run = run_launch, .argument = launch};
    gg_status status = host_submit(stream, &work);
    if (status)
        free(launch);
    return status;
}

/* ---- queries ---- */

static uint32_t kernel_max_threads(const struct gg_kernel_impl *kernel)
{
    int64_t limit = 0;
    host_device_attribute(0, GG_ATTR_MAX_THREADS_PER_BLOCK, &limit);
    const uint32_t own = kernel->entry->max_threads;
    return own && own < (uint32_t)limit ? own : (uint32_t)limit;
}

gg_status host_kernel_attribute(struct gg_kernel_impl *kernel, gg_kernel_attribute attribute,
                                int64_t *value)
{
    if (attribute == GG_KERNEL_MAX_THREADS_PER_BLOCK)
        *value = kernel_max_threads(kernel);
    else if (attribute == GG_KERNEL_SHARED_SIZE)
        *value = kernel->entry->shared_size;
    else if (attribute == GG_KERNEL_WARP_SIZE)
        *value = GG_HOST_WARP;
    else if (attribute == GG_KERNEL_MAX_DYNAMIC_SHARED_SIZE)
        return host_device_attribute(0, GG_ATTR_SHARED_MEMORY_PER_BLOCK, value);
    else
        return host_api->fail(GG_ERR_UNSUPPORTED, NULL,
                              "a kernel of this backend has no attribute %d", (int)attribute);
    return GG_OK;
}

/* A thread runs one block at a time. */
gg_status host_kernel_occupancy(struct gg_kernel_impl *kernel, uint32_t threads, size_t shared,
                                int32_t *blocks)
{
    (void)kernel;
    (void)threads;
    (void)shared;
    *blocks = 1;
    return GG_OK;
}

gg_status host_kernel_suggest_block_size(struct gg_kernel_impl *kernel, size_t shared,
                                         uint32_t limit, uint32_t *threads, uint32_t *blocks)
{
    const uint32_t most = kernel_max_threads(kernel);
    (void)shared;
    *threads = most < USUAL_THREADS ? most : USUAL_THREADS;
    if (limit && limit < *threads)
        *threads = limit;
    *blocks = (uint32_t)host_thread_count(host_module_ordinal(kernel->module));
    return GG_OK;
}
