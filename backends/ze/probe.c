/* probe.c: find the loader, initialise its drivers, count their GPUs, report why there are none. */
#include "ze.h"

#include <errno.h>
#include <glob.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define API_MIN ZE_API(1, 2) /* the first with a timestamp of known resolution */
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
                                            .flags = GG_LIBRARY_ADDED_DIRECTORIES,
                                            .names = names,
                                            .variable = "GPUGLUE_ZE_LIBRARY",
                                            .stem = "libze_loader",
                                            .directories = directories};

static gg_probe_status library_find(struct gg_probe_result *result)
{
    static bool resolved; /* once: other threads may use the table when the core probes again */
    struct gg_library library = {.struct_size = sizeof library};
    gg_probe_status status =
        ze_api->library_open(&spec, result->log, &library, result->reason, sizeof result->reason);
    if (status != GG_PROBE_AVAILABLE)
        return status;
    snprintf(result->library_path, sizeof result->library_path, "%s", library.path);
    snprintf(result->found_by, sizeof result->found_by, "%s", library.found_by);
    if (!resolved)
        status = ze_api->library_resolve(&library, symbols, sizeof symbols / sizeof symbols[0], &ze,
                                         result->reason, sizeof result->reason);
    resolved = status == GG_PROBE_AVAILABLE;
    return status;
}

/* Only after a successful init: before that the call may fail. */
static void loader_add_notes(struct gg_probe_result *result)
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
        ze_api->note(result->log, "%.63s %d.%d.%d, API %u.%u", parts[i].name, (int)parts[i].major,
                     (int)parts[i].minor, (int)parts[i].patch, (unsigned)(parts[i].api >> 16),
                     (unsigned)(parts[i].api & 0xffff));
}

/* ---- diagnosis ---- */

static void node_group(const char *path, char *out, size_t size)
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

/* 0: there is no node; 1: all are accessible; 2: one is not, with its path in @p refused. */
static int nodes_check(char *refused, size_t size)
{
    glob_t nodes;
    int diagnosis = 0;
    if (glob(NODES, 0, NULL, &nodes))
        return 0;
    for (size_t i = 0; i < nodes.gl_pathc && diagnosis < 2; i++) {
        diagnosis = 1;
        if (!access(nodes.gl_pathv[i], R_OK | W_OK) || (errno != EACCES && errno != EPERM))
            continue;
        diagnosis = 2;
        snprintf(refused, size, "%s", nodes.gl_pathv[i]);
    }
    globfree(&nodes);
    return diagnosis;
}

static void masks_append(char *reason, size_t size)
{
    static const char *const masks[] = {"ZE_AFFINITY_MASK", "ZE_FLAT_DEVICE_HIERARCHY",
                                        "ZE_ENABLE_ALT_DRIVERS"};
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        const char *value = ze_api->get_env(masks[i]);
        const size_t used = strlen(reason);
        if (value)
            snprintf(reason + used, size - used, "; %s is set to \"%s\"", masks[i], value);
    }
}

static const char *no_device_sentence(int nodes)
{
    return nodes ? "no Level Zero driver sees a GPU: install Intel's driver (libze-intel-gpu1 or "
                   "intel-level-zero-gpu), and check that it supports the GPU"
                 : "there is no " NODES ": the GPU's kernel driver (i915 or xe) is not loaded, or "
                   "this is a container that was started without the device";
}

/* No driver could be initialised, or they have no GPU (code 0). */
static void diagnose_no_device(int code, struct gg_probe_result *result)
{
    char node[64], group[96];
    const int nodes = nodes_check(node, sizeof node);
    result->status = nodes == 2 ? GG_PROBE_PERMISSION_DENIED : GG_PROBE_NO_DEVICE;
    if (nodes == 2) {
        node_group(node, group, sizeof group);
        snprintf(result->reason, sizeof result->reason,
                 "%s exists and may not be read and written by this user: ask for membership of %s "
                 "(`usermod -aG`), then log in again (the loader returned 0x%x)",
                 node, group, (unsigned)code);
        return;
    }
    if (code)
        snprintf(result->reason, sizeof result->reason, "%s (the loader returned 0x%x, %s)",
                 no_device_sentence(nodes), (unsigned)code, ze_error_name(code));
    else
        snprintf(result->reason, sizeof result->reason, "%s (the drivers reported 0 GPUs)",
                 no_device_sentence(nodes));
    masks_append(result->reason, sizeof result->reason);
}

static void diagnose(int code, struct gg_probe_result *result)
{
    const char *name = ze_error_name(code);
    result->vendor_code = code;
    if (code == ZE_RESULT_ERROR_UNINITIALIZED) {
        diagnose_no_device(code, result);
        return;
    }
    result->status = code == ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS ? GG_PROBE_PERMISSION_DENIED
                                                                      : GG_PROBE_INIT_FAILED;
    snprintf(result->reason, sizeof result->reason, "%s (the loader returned 0x%x, %s)%s",
             code == ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE
                 ? "a library that the driver needs is missing: reinstall the driver's packages"
                 : "the driver could not start: see `dmesg`, and check that loader and driver are "
                   "compatible",
             (unsigned)code, name ? name : "an unknown code",
             code == ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS
                 ? "; the user may not use the device: see `ls -l /dev/dri`"
                 : "");
}

static void add_notes(const struct gg_probe_result *result)
{
    static const char *const variables[] = {"ZE_AFFINITY_MASK", "ZE_FLAT_DEVICE_HIERARCHY",
                                            "ZE_ENABLE_PCI_ID_DEVICE_ORDER",
                                            "ZE_ENABLE_ALT_DRIVERS"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = ze_api->get_env(variables[i]);
        if (value)
            ze_api->note(result->log, "%s is set to \"%s\"", variables[i], value);
    }
    if (result->status == GG_PROBE_LIBRARY_NOT_FOUND && !access("/dev/dri", F_OK))
        ze_api->note(result->log, "/dev/dri exists: an Intel GPU needs the packages of the "
                                  "Level Zero loader (libze1 or level-zero) and of its driver");
}

/* ---- drivers and their GPUs ---- */

/* The length of a list is always queried first: not every driver corrects a count that is too large. */
static uint32_t *count_limit(uint32_t *count, uint32_t room)
{
    if (*count > room)
        *count = room;
    return count;
}

static int drivers_start(uint32_t *count, void **handles)
{
    struct ze_plain_desc desc = {.stype = ZE_STRUCTURE_TYPE_INIT_DRIVER_TYPE_DESC,
                                 .flags = ZE_INIT_DRIVER_TYPE_FLAG_GPU};
    int code = ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    *count = 0;
    if (ze.init_drivers)
        code = ze.init_drivers(count, NULL, &desc);
    if (!code && *count)
        return ze.init_drivers(count_limit(count, ZE_MAX_DRIVERS), handles, &desc);
    /* If the code "not initialised" is true, zeInit reports it again, and is the last call: loaders have crashed in
     * calls after a failed zeInit. */
    if (!ze_is_unsupported(code))
        return code;
    *count = 0;
    code = ze.init(ZE_INIT_FLAG_GPU_ONLY);
    if (!code)
        code = ze.driver_get(count, NULL);
    return code || !*count ? code : ze.driver_get(count_limit(count, ZE_MAX_DRIVERS), handles);
}

static bool driver_has_extension(void *driver, const char *name)
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

static void gpu_add(struct ze_driver *driver, void *handle)
{
    struct ze_gpu gpu = {.driver = driver, .handle = handle};
    gpu.properties.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2;
    if (ze_gpu_count == ZE_MAX_GPUS || ze.device_properties(handle, &gpu.properties) ||
        gpu.properties.type != ZE_DEVICE_TYPE_GPU)
        return;
    if (ze_gpu_find_shared(&gpu, &gpu.has_shared))
        gpu.has_shared = false;
    gpu.has_graphs = driver->records_graphs && ze_gpu_has_graphs(&gpu);
    gpu.properties.name[sizeof gpu.properties.name - 1] = '\0';
    ze_gpus[ze_gpu_count++] = gpu;
}

static bool driver_shares_memory(void *driver)
{
    struct ze_ipc_properties properties = {.stype = ZE_STRUCTURE_TYPE_DRIVER_IPC_PROPERTIES};
    return ze.driver_ipc && !ze.driver_ipc(driver, &properties) &&
           properties.flags & ZE_IPC_PROPERTY_FLAG_MEMORY;
}

static void driver_init(struct ze_driver *driver)
{
    pthread_mutex_init(&driver->lock, NULL);
    pthread_mutex_init(&driver->pool.lock, NULL);
    driver->pool.last = &driver->pool.parked;
    driver->reports_free_memory =
        driver_has_extension(driver->handle, "ZE_extension_device_usablemem_size_properties");
    driver->shares_memory = driver_shares_memory(driver->handle);
    driver->links = driver_has_extension(driver->handle, "ZE_experimental_module_program");
    driver->extends_kernels =
        driver_has_extension(driver->handle, "ZE_extension_kernel_max_group_size_properties");
    driver->records_graphs =
        driver_has_extension(driver->handle, "ZE_extension_record_replay_graph");
    ze_import_init(driver);
}

/* The code of the call that failed, or 0; a driver without devices is not a failure. */
static int driver_add(struct ze_driver *driver, struct gg_probe_result *result)
{
    void *devices[ZE_MAX_GPUS];
    uint32_t count = 0;
    struct ze_driver_properties properties = {.stype = ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES};
    int code = ze.driver_api(driver->handle, &driver->api);
    if (code || driver->api < API_MIN)
        return code;
    driver_init(driver);
    code = ze.device_get(driver->handle, &count, NULL);
    if (!code && count)
        code = ze.device_get(driver->handle, count_limit(&count, ZE_MAX_GPUS), devices);
    for (uint32_t i = 0; !code && i < count; i++)
        gpu_add(driver, devices[i]);
    if (!code)
        code = ze.driver_properties(driver->handle, &properties);
    ze_api->note(result->log, "driver of API %u.%u, version 0x%08x", (unsigned)(driver->api >> 16),
                 (unsigned)(driver->api & 0xffff), (unsigned)properties.version);
    return code;
}

static void probe_refuse_version(uint32_t newest, struct gg_probe_result *result)
{
    result->status = GG_PROBE_VERSION_UNSUPPORTED;
    snprintf(result->reason, sizeof result->reason,
             "the driver's API is %u.%u, expected %u.%u or newer: update the driver",
             (unsigned)(newest >> 16), (unsigned)(newest & 0xffff), (unsigned)(API_MIN >> 16),
             (unsigned)(API_MIN & 0xffff));
}

static void gpus_count(void **handles, uint32_t count, struct gg_probe_result *result)
{
    uint32_t newest = 0;
    int failure = 0;
    for (uint32_t i = 0; i < count && i < ZE_MAX_DRIVERS; i++) {
        drivers[i].handle = handles[i];
        const int code = driver_add(&drivers[i], result);
        failure = failure ? failure : code;
        newest = drivers[i].api > newest ? drivers[i].api : newest;
    }
    snprintf(result->library_version, sizeof result->library_version, "%u.%u",
             (unsigned)(newest >> 16), (unsigned)(newest & 0xffff));
    if (ze_gpu_count)
        result->device_count = ze_gpu_count;
    else if (failure)
        diagnose(failure, result);
    else if (count && newest < API_MIN)
        probe_refuse_version(newest, result);
    else
        diagnose_no_device(0, result);
}

/* Once: the result is in use from then on. The status is available unless this finds a reason why not. */
static void drivers_initialise(struct gg_probe_result *result)
{
    void *handles[ZE_MAX_DRIVERS];
    uint32_t count = 0;
    if (ze_gpu_count) {
        result->device_count = ze_gpu_count;
        return;
    }
    const int code = drivers_start(&count, handles);
    if (code) {
        diagnose(code, result);
        return;
    }
    loader_add_notes(result);
    gpus_count(handles, count, result);
}

void ze_probe(enum gg_probe_level level, struct gg_probe_result *result)
{
    result->device_count = -1;
    result->status = library_find(result);
    if (result->status == GG_PROBE_AVAILABLE && level == GG_ACTIVE) {
        drivers_initialise(result);
    } else if (result->status == GG_PROBE_AVAILABLE) {
        result->status = GG_PROBE_NOT_PROBED;
        snprintf(result->reason, sizeof result->reason,
                 "the library was found and has not been initialised");
    }
    add_notes(result);
}
