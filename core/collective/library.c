/* library.c: the library of a backend's collective operations. */
#include "collective/collective.h"
#include "base/log.h"
#include "loader/loader.h"

#include <stdlib.h>
#include <string.h>

#include "base/small.h"

/* Each copy has its own state. The path of the one that is used is resolved. */
static void library_warn_of_copies(const struct gg_library_spec *spec, const char *used)
{
    char *paths[8], real[PATH_MAX];
    const size_t count = ggi_dynlib_mapped(spec->stem, paths, 8);
    for (size_t i = 0; i < count; i++) {
        const char *name = strrchr(paths[i], '/');
        const char *path = realpath(paths[i], real) ? real : paths[i];
        if (strstr(name ? name : paths[i], ".so") && strcmp(path, used) != 0)
            ggi_log(GG_LOG_WARN, NULL,
                    "two copies of %s are loaded in this process: gpuglue uses %s, other code uses "
                    "%s; a communicator of one is invalid in the other",
                    spec->stem, used, path);
        free(paths[i]);
    }
}

gg_status ggi_collective_library(struct gg_device *device, const char **path, int32_t *version)
{
    const struct gg_comm_ops *ops = device->backend->comm_ops;
    struct gg_library library = {.struct_size = sizeof library};
    char reason[512] = "";
    if (!ops)
        return ggi_fail(GG_ERR_UNSUPPORTED, "the backend \"%s\" has no collective operations",
                        device->backend->name);
    if (ggi_library_open(ops->library, NULL, &library, reason, sizeof reason) != GG_PROBE_AVAILABLE)
        return ggi_fail(GG_ERR_UNSUPPORTED, "%s", reason);
    gg_status status = ops->open(&library, version);
    if (status)
        return status;
    *path = library.path;
    library_warn_of_copies(ops->library, library.path);
    return GG_OK;
}
