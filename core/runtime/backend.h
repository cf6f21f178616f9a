/* backend.h: what devices and streams need of a backend. The loader has the rest. */
#ifndef GPUGLUE_RUNTIME_BACKEND_H
#define GPUGLUE_RUNTIME_BACKEND_H

#include <gpuglue/backend.h>

#include <stdatomic.h>
#include <stdbool.h>

#define GGI_NAME_SIZE 16 /* of a backend, with its NUL */

struct gg_backend {
    char name[GGI_NAME_SIZE];
    struct gg_backend_ops ops;                  /* zero-extended copy of the plugin's table */
    const struct gg_comm_ops *comm_ops;         /* or NULL */
    const char *library_path, *library_version; /* once probed; never NULL */
    _Atomic(uint32_t) generation;               /* ggi_generation when it was initialised */
    _Atomic(bool) opened;                       /* devices and device_count may be read */
    int32_t device_count;
    struct gg_device *devices; /* device_count of them, immortal */
    _Atomic(bool) range_tool_sought;
    struct gg_backend *next; /* in the list of opened backends */
};

/* Add a backend whose devices are set to the list of opened backends. */
void ggi_backend_publish(struct gg_backend *backend);
/* The next opened backend: the first after NULL, NULL after the last. */
struct gg_backend *ggi_backend_next_opened(struct gg_backend *after);
/* The error of a backend that a forked child cannot use. */
gg_status ggi_backend_fail_forked(const struct gg_backend *backend);
/* In a forked child, reuse devices that the parent counted but did not open; true if that is possible. See
 * GG_DEVICE_FORK_SAFE_UNTIL_OPEN. */
bool ggi_backend_adopt_in_child(struct gg_backend *backend);

#endif
