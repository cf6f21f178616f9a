/* host_api.c: what a plugin may use of the core, so that it needs no symbol of ours. */
#include "backends.h"
#include "library.h"

#include <stdlib.h>

static const char *get_env(const char *name)
{
    return secure_getenv(name);
}

const struct gg_host_api *ggi_host_api(void)
{
    static const struct gg_host_api api = {
        .struct_size = sizeof api,
        .core_abi = (uint32_t)GG_ABI_MAJOR << 16 | GG_ABI_MINOR,
        .log = ggi_log,
        .fail = ggi_host_fail,
        .get_env = get_env,
        .library_open = ggi_library_open,
        .library_resolve = ggi_library_resolve,
        .note = ggi_note,
    };
    return &api;
}
