/* probe.c: find the loader, start the drivers behind it, count their GPUs, and say why not. */
#include "ze.h"

#include <errno.h>
#include <glob.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define API_MIN ZE_API(1, 2) /* the first with a clock that can be understood */
#define NODES "/dev/dri/renderD*"

static struct ze_driver drivers[ZE_MAX_DRIVERS];

/* ---- the loader ---- */

static const struct gg_symbol symbols[] = {
#define FN(slot, parameters, symbol, need) {#symbol, offsetof(struct ze_functions, slot), need},
#define GIVES(slot, parameters, symbol, need) FN(slot, parameters, symbol, need)
#include "ze.def"
#undef GIVES
#undef FN
};

static const char *const names[] = {"libze_loader.so.1", NULL};
static const char *const directories[] = {"$CONDA_PREFIX/lib", NULL};
static const struct gg_library_spec spec = {.struct_size = sizeof spec,
                                            .flags = GG_LIBRARY_HANDED_IN,
                                            .names = names,
                                            .variable = "GPUGLUE_ZE_LIBRARY",
                                            .stem = "libze_loader",
                                            .directories = directories};

static gg_probe_status find_library(struct gg_probe_result *result)
{
    static bool resolved; /* once: other threads may be using the table when the core asks again */
    struct gg_library library = {.struct_size = sizeof library};
    gg_probe_status status =
        ze_host->library_open(&spec, result->log, &library, result->reason, sizeof result->reason);
    if (status != GG_PROBE_AVAILABLE)
        return status;
    snprintf(result->library_path, sizeof result->library_path, "%s", library.path);
    snprintf(result->found_by, sizeof result->found_by, "%s", library.found_by);
    if (!resolved)
        status = ze_host->library_resolve(&library, symbols, sizeof symbols / sizeof symbols[0],
                                          &ze, result->reason, sizeof result->reason);
    resolved = status == GG_PROBE_AVAILABLE;
    return status;
}

/* Only after a successful init: before it the loader may not answer. */
static void note_loader(struct gg_probe_result *result)
{
    struct ze_component_version parts[8];
    size_t count = 0;
    memset(parts, 0, sizeof parts);
    if (!ze.loader_versions || ze.loader_versions(&count, NULL) || !count)
        return;
    count = count < 8 ? count : 8;
    if (ze.loader_versions(&count, parts))
        return;
    for (size_t i = 0; i < count; i++)
        ze_host->note(result->log, "%.63s %d.%d.%d, API %u.%u", parts[i].name, (int)parts[i].major,
                      (int)parts[i].minor, (int)parts[i].patch, (unsigned)(parts[i].api >> 16),
                      (unsigned)(parts[i].api & 0xffff));
}

/* ---- why not ---- */

static void group_of(const char *path, char *out, size_t size)
{
    struct stat facts;
    struct group entry, *found = NULL;
    char buffer[1024];
    snprintf(out, size, "the group that `ls -l %s` shows", path);
    if (stat(path, &facts))
        return;
    if (!getgrgid_r(facts.st_gid, &entry, buffer, sizeof buffer, &found) && found)
        snprintf(out, size, "group %s", found->gr_name);
    else
        snprintf(out, size, "group %u", (unsigned)facts.st_gid);
}

/* 0: there is no node; 1: all may be used; 2: one is there and may not, its path in @p refused. */
static int look_at_nodes(char *refused, size_t size)
{
    glob_t nodes;
    int verdict = 0;
    if (glob(NODES, 0, NULL, &nodes))
        return 0;
    for (size_t i = 0; i < nodes.gl_pathc && verdict < 2; i++) {
        verdict = 1;
        if (!access(nodes.gl_pathv[i], R_OK | W_OK) || (errno != EACCES && errno != EPERM))
            continue;
        verdict = 2;
        snprintf(refused, size, "%s", nodes.gl_pathv[i]);
    }
    globfree(&nodes);
    return verdict;
}

static void append_masks(char *reason, size_t size)
{
    static const char *const masks[] = {"ZE_AFFINITY_MASK", "ZE_FLAT_DEVICE_HIERARCHY",
                                        "ZE_ENABLE_ALT_DRIVERS"};
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        const char *value = ze_host->get_env(masks[i]);
        const size_t used = strlen(reason);
        if (value)
            snprintf(reason + used, size - used, "; %s is set to \"%s\"", masks[i], value);
    }
}

static const char *sentence_for(int nodes)
{
    return nodes ? "no Level Zero driver sees a GPU: install Intel's (libze-intel-gpu1 or "
                   "intel-level-zero-gpu), and see that the GPU is one that it serves"
                 : "there is no " NODES ": the GPU's kernel driver (i915 or xe) is not loaded, or "
                   "this is a container that was started without the device";
}

/* No driver came up, or those that did have no GPU (code 0). */
static void explain_no_device(int code, struct gg_probe_result *result)
{
    char node[64], group[96];
    const int nodes = look_at_nodes(node, sizeof node);
    result->status = nodes == 2 ? GG_PROBE_PERMISSION_DENIED : GG_PROBE_NO_DEVICE;
    if (nodes == 2) {
        group_of(node, group, sizeof group);
        snprintf(result->reason, sizeof result->reason,
                 "%s exists and may not be read and written by this user: ask for membership of %s "
                 "(`usermod -aG`), then log in again (the loader answered 0x%x)",
                 node, group, (unsigned)code);
        return;
    }
    if (code)
        snprintf(result->reason, sizeof result->reason, "%s (the loader answered 0x%x, %s)",
                 sentence_for(nodes), (unsigned)code, ze_code_name(code));
    else
        snprintf(result->reason, sizeof result->reason, "%s (its drivers counted 0)",
                 sentence_for(nodes));
    append_masks(result->reason, sizeof result->reason);
}

static void explain(int code, struct gg_probe_result *result)
{
    const char *name = ze_code_name(code);
    result->vendor_code = code;
    if (code == ZE_RESULT_ERROR_UNINITIALIZED) {
        explain_no_device(code, result);
        return;
    }
    result->status = code == ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS ? GG_PROBE_PERMISSION_DENIED
                                                                      : GG_PROBE_INIT_FAILED;
    snprintf(
        result->reason, sizeof result->reason, "%s (the loader answered 0x%x, %s)%s",
        code == ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE
            ? "a library that the driver needs is missing: reinstall the driver's packages"
            : "the driver could not start: see `dmesg`, and that loader and driver fit together",
        (unsigned)code, name ? name : "a code that is not known here",
        code == ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS
            ? "; the user may not use the device: see `ls -l /dev/dri`"
            : "");
}

static void note_surroundings(const struct gg_probe_result *result)
{
    static const char *const variables[] = {"ZE_AFFINITY_MASK", "ZE_FLAT_DEVICE_HIERARCHY",
                                            "ZE_ENABLE_PCI_ID_DEVICE_ORDER",
                                            "ZE_ENABLE_ALT_DRIVERS"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = ze_host->get_env(variables[i]);
        if (value)
            ze_host->note(result->log, "%s is set to \"%s\"", variables[i], value);
    }
    if (result->status == GG_PROBE_LIBRARY_NOT_FOUND && !access("/dev/dri", F_OK))
        ze_host->note(result->log, "there is a /dev/dri: a GPU of Intel needs the packages of the "
                                   "Level Zero loader (libze1 or level-zero) and of its driver");
}

/* ---- drivers and their GPUs ---- */

/* Lists are always asked for their length first: not every driver corrects one that is too great. */
static uint32_t *at_most(uint32_t *count, uint32_t room)
{
    if (*count > room)
        *count = room;
    return count;
}

static int start(uint32_t *count, void **handles)
{
    struct ze_init_driver_type_desc desc = {.stype = ZE_STRUCTURE_TYPE_INIT_DRIVER_TYPE_DESC,
                                            .flags = ZE_INIT_DRIVER_TYPE_FLAG_GPU};
    int code = ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    *count = 0;
    if (ze.init_drivers)
        code = ze.init_drivers(count, NULL, &desc);
    if (!code && *count)
        return ze.init_drivers(at_most(count, ZE_MAX_DRIVERS), handles, &desc);
    /* If it is the truth that nothing is initialised, the old way says so again, and is the last call.
     * Loaders have crashed in what came after a failed zeInit. */
    if (!ze_is_lacking(code))
        return code;
    *count = 0;
    code = ze.init(ZE_INIT_FLAG_GPU_ONLY);
    if (!code)
        code = ze.driver_get(count, NULL);
    return code || !*count ? code : ze.driver_get(at_most(count, ZE_MAX_DRIVERS), handles);
}

static bool has_extension(void *driver, const char *name)
{
    uint32_t count = 0;
    bool found = false;
    if (!ze.driver_extensions || ze.driver_extensions(driver, &count, NULL) || !count)
        return false;
    struct ze_extension *extensions = calloc(count, sizeof *extensions);
    if (!extensions)
        return false;
    if (!ze.driver_extensions(driver, &count, extensions))
        for (uint32_t i = 0; i < count; i++)
            found = found || !strcmp(extensions[i].name, name);
    free(extensions);
    return found;
}

static void add_gpu(struct ze_driver *driver, void *handle)
{
    struct ze_gpu gpu = {.driver = driver, .handle = handle};
    gpu.properties.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2;
    if (ze_gpu_count == ZE_MAX_GPUS || ze.device_properties(handle, &gpu.properties) ||
        gpu.properties.type != ZE_DEVICE_TYPE_GPU)
        return;
    gpu.properties.name[sizeof gpu.properties.name - 1] = '\0';
    ze_gpus[ze_gpu_count++] = gpu;
}

static void prepare(struct ze_driver *driver)
{
    pthread_mutex_init(&driver->lock, NULL);
    pthread_mutex_init(&driver->pool.lock, NULL);
    driver->pool.last = &driver->pool.flying;
    driver->tells_free_memory =
        has_extension(driver->handle, "ZE_extension_device_usablemem_size_properties");
}

/* The code of the call that failed, or 0; a driver without devices is no failure. */
static int add_driver(struct ze_driver *driver, struct gg_probe_result *result)
{
    void *devices[ZE_MAX_GPUS];
    uint32_t count = 0;
    struct ze_driver_properties properties = {.stype = ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES};
    int code = ze.driver_api(driver->handle, &driver->api);
    if (code || driver->api < API_MIN)
        return code;
    prepare(driver);
    code = ze.device_get(driver->handle, &count, NULL);
    if (!code && count)
        code = ze.device_get(driver->handle, at_most(&count, ZE_MAX_GPUS), devices);
    for (uint32_t i = 0; !code && i < count; i++)
        add_gpu(driver, devices[i]);
    if (!code)
        code = ze.driver_properties(driver->handle, &properties);
    ze_host->note(result->log, "driver of API %u.%u, version 0x%08x", (unsigned)(driver->api >> 16),
                  (unsigned)(driver->api & 0xffff), (unsigned)properties.version);
    return code;
}

static void refuse_versions(uint32_t newest, struct gg_probe_result *result)
{
    result->status = GG_PROBE_VERSION_UNSUPPORTED;
    snprintf(result->reason, sizeof result->reason,
             "the driver's API is %u.%u and %u.%u is the oldest that works: update the driver",
             (unsigned)(newest >> 16), (unsigned)(newest & 0xffff), (unsigned)(API_MIN >> 16),
             (unsigned)(API_MIN & 0xffff));
}

static void count_gpus(void **handles, uint32_t count, struct gg_probe_result *result)
{
    uint32_t newest = 0;
    int failure = 0;
    for (uint32_t i = 0; i < count && i < ZE_MAX_DRIVERS; i++) {
        drivers[i].handle = handles[i];
        const int code = add_driver(&drivers[i], result);
        failure = failure ? failure : code;
        newest = drivers[i].api > newest ? drivers[i].api : newest;
    }
    snprintf(result->library_version, sizeof result->library_version, "%u.%u",
             (unsigned)(newest >> 16), (unsigned)(newest & 0xffff));
    if (ze_gpu_count) {
        result->status = GG_PROBE_AVAILABLE;
        result->device_count = ze_gpu_count;
    } else if (failure) {
        explain(failure, result);
    } else if (count && newest < API_MIN) {
        refuse_versions(newest, result);
    } else {
        explain_no_device(0, result);
    }
}

/* Once: what was found is in use from then on. */
static void initialise(struct gg_probe_result *result)
{
    void *handles[ZE_MAX_DRIVERS];
    uint32_t count = 0;
    if (ze_gpu_count) {
        result->status = GG_PROBE_AVAILABLE;
        result->device_count = ze_gpu_count;
        return;
    }
    const int code = start(&count, handles);
    if (code) {
        explain(code, result);
        return;
    }
    note_loader(result);
    count_gpus(handles, count, result);
}

void ze_probe(enum gg_probe_level level, struct gg_probe_result *result)
{
    result->device_count = -1;
    result->status = find_library(result);
    if (result->status == GG_PROBE_AVAILABLE && level == GG_ACTIVE) {
        initialise(result);
    } else if (result->status == GG_PROBE_AVAILABLE) {
        result->status = GG_PROBE_NOT_PROBED;
        snprintf(result->reason, sizeof result->reason,
                 "the library was found and has not been initialised");
    }
    note_surroundings(result);
}
