/* hip_ranges.c: ranges for AMD's profilers, by the library roctx. It is used if the process has it, which is when a profiler
 * has preloaded it or the program uses it, or if the user names it. */
#include "hip_driver.h"

/* The newer one first: rocprofv3 listens to it alone. */
static const char *const roctx_names[][2] = {{"librocprofiler-sdk-roctx.so.1", NULL},
                                             {"libroctx64.so.4", NULL}};
static const struct gg_library_spec roctx_libraries[] = {
    {.struct_size = sizeof(struct gg_library_spec),
     .flags = GG_LIBRARY_NO_SYSTEM,
     .names = roctx_names[0],
     .variable = "GPUGLUE_ROCTX_LIBRARY",
     .stem = "librocprofiler-sdk-roctx"},
    {.struct_size = sizeof(struct gg_library_spec),
     .flags = GG_LIBRARY_ONLY_MAPPED,
     .names = roctx_names[1],
     .stem = "libroctx64"},
};

static const struct gg_symbol roctx_symbols[] = {
    {"roctxRangePushA", offsetof(struct gg_range_tool, push), GG_REQUIRED},
    {"roctxRangePop", offsetof(struct gg_range_tool, pop), GG_REQUIRED},
};

gg_status hip_range_tool(struct gg_range_tool *out)
{
    const char *named = cuhip_api->get_env(roctx_libraries[0].variable);
    char reason[512];
    for (size_t i = 0; i < sizeof roctx_libraries / sizeof roctx_libraries[0]; i++) {
        struct gg_library library = {.struct_size = sizeof library};
        if (!cuhip_api->library_open(&roctx_libraries[i], NULL, &library, reason, sizeof reason) &&
            !cuhip_api->library_resolve(&library, roctx_symbols, 2, out, reason, sizeof reason))
            return GG_OK;
        if (named && *named)
            cuhip_api->log(GG_LOG_WARN, "hip", "no ranges for profilers: %s", reason);
        named = NULL; /* of the first only */
    }
    out->push = NULL; /* a library that lacks the other function */
    return GG_OK;
}
