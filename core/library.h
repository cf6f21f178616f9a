/* library.h: the search for a vendor's library, the same for all vendors. See struct gg_host_api. */
#ifndef GPUGLUE_LIBRARY_H
#define GPUGLUE_LIBRARY_H

#include <gpuglue/backend.h>

gg_probe_status ggi_library_open(const struct gg_library_spec *spec, struct gg_probe_log *log,
                                 struct gg_library *out, char *reason, size_t reason_size);
gg_probe_status ggi_library_resolve(const struct gg_library *library,
                                    const struct gg_symbol *symbols, size_t count, void *target,
                                    char *reason, size_t reason_size);

#endif
