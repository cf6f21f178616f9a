/* cuda_ranges.c: ranges for NVIDIA's profilers, by NVTX: no library, but a handshake with a tool that the profiler names.
 *
 * The tool exports InitializeInjectionNvtx2 and gets a function that returns tables of ours by
 * number. It requests the callbacks, through them the functions of a module, and stores its own
 * functions in the places that these have. */
#include "cuda_ranges.h"

#include "../cuda_hip/driver.h"

enum { NVTX_TABLE_CALLBACKS = 1, NVTX_TABLE_VERSION = 3 };
enum { NVTX_MODULE_CORE = 1, NVTX_VERSION = 3 };
enum { NVTX_RANGE_PUSH_A = 9, NVTX_RANGE_POP = 11, NVTX_CORE_SIZE = 16 };

typedef void (*nvtx_function)(void);

/* The functions of the module: what the tool stores, and for each the place to store it, ended by NULL. */
static nvtx_function nvtx_core[NVTX_CORE_SIZE];
static nvtx_function *nvtx_places[NVTX_CORE_SIZE + 1];

/* 1: the module is known. */
static int nvtx_module(int module, nvtx_function ***places, unsigned *size)
{
    if (module != NVTX_MODULE_CORE)
        return 0;
    if (places)
        *places = nvtx_places;
    if (size)
        *size = NVTX_CORE_SIZE;
    return 1;
}

static void nvtx_ignore_version(uint32_t version)
{
    (void)version; /* of the tool */
}

static const struct {
    size_t struct_size;
    int (*module)(int module, nvtx_function ***places, unsigned *size);
} nvtx_callbacks = {sizeof nvtx_callbacks, nvtx_module};

static const struct {
    size_t struct_size;
    uint32_t version, reserved;
    void (*set_tool_version)(uint32_t version);
} nvtx_version = {sizeof nvtx_version, NVTX_VERSION, 0, nvtx_ignore_version};

static const void *nvtx_table(uint32_t number)
{
    if (number == NVTX_TABLE_CALLBACKS)
        return &nvtx_callbacks;
    return number == NVTX_TABLE_VERSION ? &nvtx_version : NULL;
}

struct nvtx_tool {
    int (*start)(const void *(*table)(uint32_t number)); /* 0: it failed */
};

/* The file that the profiler names, else a tool that was preloaded. */
static struct nvtx_tool nvtx_find(void)
{
    static const char *const names[] = {NULL};
    static const struct gg_library_spec spec = {.struct_size = sizeof spec,
                                                .flags = GG_LIBRARY_NO_SYSTEM,
                                                .names = names,
                                                .variable = "NVTX_INJECTION64_PATH"};
    static const struct gg_symbol symbol = {"InitializeInjectionNvtx2",
                                            offsetof(struct nvtx_tool, start), GG_OPTIONAL};
    struct gg_library library = {.struct_size = sizeof library};
    struct nvtx_tool tool = {NULL};
    char reason[512];
    if (cuhip_api->library_open(&spec, NULL, &library, reason, sizeof reason))
        library = (struct gg_library){.struct_size = sizeof library, .path = "this process"};
    cuhip_api->library_resolve(&library, &symbol, 1, &tool, reason, sizeof reason);
    return tool;
}

gg_status cuda_range_tool(struct gg_range_tool *out)
{
    const struct nvtx_tool tool = nvtx_find();
    for (size_t i = 1; i < NVTX_CORE_SIZE; i++)
        nvtx_places[i] = &nvtx_core[i];
    if (!tool.start || !tool.start(nvtx_table))
        return GG_OK;
    out->push = (int (*)(const char *))nvtx_core[NVTX_RANGE_PUSH_A];
    out->pop = (int (*)(void))nvtx_core[NVTX_RANGE_POP];
    return GG_OK;
}
