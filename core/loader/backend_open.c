/* backend_open.c: probes backends, opens them once, and keeps their reports. */
#include "base/error.h"
#include "base/log.h"
#include "loader/loader.h"
#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>

/* ---- one plugin: called with its lock held ---- */

/* A backend may decline a probe until the user requests it by name; then it is probed again. */
static bool probe_is_final(const struct ggi_plugin *plugin)
{
    const struct ggi_probe_report *record = plugin->record;
    return record && record->level == GG_ACTIVE &&
           !(record->declined && atomic_load(&plugin->named));
}

/* Whether the parent process initialised it, or had begun to. A failed probe keeps its report, and devices
 * that the parent only counted can be used in the child. */
static bool probe_is_forked(struct ggi_plugin *plugin)
{
    if (!plugin->begun || atomic_load(&plugin->backend.generation) == atomic_load(&ggi_generation))
        return false;
    if (!probe_is_final(plugin))
        return true;
    return plugin->record->report.status == GG_PROBE_AVAILABLE &&
           !ggi_backend_adopt_in_child(&plugin->backend);
}

/* Correct a result that contradicts itself. */
static void probe_check_result(struct gg_probe_result *result, enum gg_probe_level level)
{
    bool known = result->status >= GG_PROBE_AVAILABLE && result->status <= GG_PROBE_NOT_PROBED;
    bool counted = result->status == GG_PROBE_AVAILABLE && level == GG_ACTIVE;
    result->reason[sizeof result->reason - 1] = 0;
    result->library_path[sizeof result->library_path - 1] = 0;
    result->library_version[sizeof result->library_version - 1] = 0;
    result->found_by[sizeof result->found_by - 1] = 0;
    struct ggi_text why =
        ggi_text_begin(result->reason, known && !counted ? 0 : sizeof result->reason);
    if (!known) {
        ggi_text_add(&why, "the plugin returned the unknown status %d", (int)result->status);
        result->status = GG_PROBE_INIT_FAILED;
    } else if (counted && result->device_count < 1) {
        ggi_text_add(&why, "the plugin reported that it is available, but with %d devices",
                     (int)result->device_count);
        result->status = GG_PROBE_NO_DEVICE;
    } else if (result->status != GG_PROBE_AVAILABLE && !result->reason[0]) {
        why = ggi_text_begin(result->reason, sizeof result->reason);
        ggi_text_add(&why, "the plugin gave no reason");
    }
}

static gg_status probe_make_devices(struct gg_backend *backend, int32_t count)
{
    gg_status status = GG_OK;
    struct gg_device *devices = calloc((size_t)count, sizeof *devices);
    if (!devices)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for %d devices", (int)count);
    ggi_trace_init();
    for (int32_t i = 0; i < count && !status; i++)
        status = ggi_device_setup(&devices[i], backend, i);
    if (status) {
        free(devices);
        return status;
    }
    backend->devices = devices;
    backend->device_count = count;
    return GG_OK;
}

static void probe_take_devices(struct gg_backend *backend, struct gg_probe_result *result)
{
    gg_status status = result->status == GG_PROBE_AVAILABLE
                           ? probe_make_devices(backend, result->device_count)
                           : GG_OK;
    if (!status)
        return;
    result->status = GG_PROBE_INIT_FAILED;
    struct ggi_text why = ggi_text_begin(result->reason, sizeof result->reason);
    ggi_text_add(&why, "its devices cannot be used: %s", gg_status_message(status));
}

/* Failures go to the report, not to this thread's error. */
static void probe_call(struct ggi_plugin *plugin, enum gg_probe_level level,
                       struct gg_probe_result *result)
{
    result->named = atomic_load(&plugin->named);
    ggi_suppress_errors(1);
    plugin->backend.ops.probe(level, result);
    ggi_suppress_errors(-1);
    probe_check_result(result, level);
}

static struct ggi_probe_report *probe_complete_report(const struct ggi_plugin *plugin,
                                                      struct ggi_probe_report *record)
{
    if (!record)
        return NULL;
    record->report.priority = plugin->priority;
    record->report.plugin_path = ggi_intern(plugin->path);
    record->report.plugin_version = ggi_intern(plugin->version);
    return record;
}

/* A report that holds only a status and a reason. */
static struct ggi_probe_report *probe_short_report(const struct ggi_plugin *plugin,
                                                   gg_probe_status status, const char *reason)
{
    return probe_complete_report(plugin,
                                 ggi_probe_report_failure(plugin->backend.name, status, reason));
}

static void probe_actively(struct ggi_plugin *plugin, struct gg_probe_result *result)
{
    ggi_watch_forks();
    atomic_store(&plugin->backend.generation, atomic_load(&ggi_generation));
    plugin->begun = true;
    probe_call(plugin, GG_ACTIVE, result);
    plugin->begun = !result->declined;
    plugin->backend.library_path = ggi_intern(result->library_path);
    plugin->backend.library_version = ggi_intern(result->library_version);
    probe_take_devices(&plugin->backend, result);
}

/* Sets the record; keeps the old one if memory runs out. */
static void probe_run(struct ggi_plugin *plugin, enum gg_probe_level level)
{
    struct gg_probe_log log = {0};
    struct gg_probe_result result = {
        .struct_size = sizeof result, .device_count = -1, .status = GG_PROBE_NOT_PROBED, .log = &log};
    if (!plugin->backend.ops.probe) /* refused, and there was no memory for its report */
        return;
    if (level == GG_ACTIVE)
        probe_actively(plugin, &result);
    else
        probe_call(plugin, level, &result);
    struct ggi_probe_report *record = probe_complete_report(
        plugin, ggi_probe_report_new(plugin->backend.name, level, &result, &log));
    ggi_probe_log_free(&log);
    if (!record)
        return;
    record->declined = result.declined != 0;
    ggi_probe_report_release(plugin->record);
    plugin->record = record;
    ggi_log(GG_LOG_INFO, plugin->backend.name, "%s%s%s", gg_probe_status_name(result.status),
            record->report.reason[0] ? ": " : "", record->report.reason);
    if (level == GG_ACTIVE && result.status == GG_PROBE_AVAILABLE)
        ggi_backend_publish(&plugin->backend);
}

/* ---- opening ---- */

static void probe_describe(const struct ggi_plugin *plugin, struct ggi_text *text)
{
    const struct gg_report *report = plugin->record ? &plugin->record->report : NULL;
    if (!report)
        ggi_text_add(text, "%s: no host memory to probe it", plugin->backend.name);
    else
        ggi_text_add(text, "%s: %s: %s", plugin->backend.name, gg_probe_status_name(report->status),
                     report->reason);
}

void ggi_plugin_describe(struct ggi_plugin *plugin, struct ggi_text *text)
{
    ggi_plugin_lock(plugin);
    probe_describe(plugin, text);
    ggi_plugin_unlock(plugin);
}

static gg_status probe_fail_unavailable(const struct ggi_plugin *plugin)
{
    struct ggi_text text = GGI_TEXT(sizeof ggi_error_record()->error.message);
    ggi_text_add(&text, "backend not available: ");
    probe_describe(plugin, &text);
    ggi_fail(GG_ERR_UNAVAILABLE, "%s", text.data);
    ggi_fail_names(plugin->backend.name);
    return GG_ERR_UNAVAILABLE;
}

static gg_status probe_open(struct ggi_plugin *plugin)
{
    if (probe_is_forked(plugin))
        return ggi_backend_fail_forked(&plugin->backend);
    if (!probe_is_final(plugin))
        probe_run(plugin, GG_ACTIVE);
    return atomic_load(&plugin->backend.opened) ? GG_OK : probe_fail_unavailable(plugin);
}

gg_status ggi_backend_open(struct gg_backend *backend)
{
    if (atomic_load(&ggi_shutting_down))
        return ggi_fail(GG_ERR_SHUT_DOWN, "gpuglue was shut down and accepts no new work");
    if (atomic_load_explicit(&backend->opened, memory_order_acquire) &&
        atomic_load(&backend->generation) == atomic_load(&ggi_generation))
        return GG_OK;
    struct ggi_plugin *plugin = ggi_plugin_of(backend);
    ggi_plugin_lock(plugin);
    gg_status status = probe_open(plugin);
    ggi_plugin_unlock(plugin);
    return status;
}

/* ---- reports ---- */

static struct ggi_probe_report *probe_report(struct ggi_plugin *plugin, enum gg_probe_level level)
{
    if (probe_is_forked(plugin))
        return probe_short_report(plugin, GG_PROBE_FORKED,
                                  "it was initialised before this process was forked: start "
                                  "child processes with \"spawn\", or fork before the first use");
    if (!probe_is_final(plugin) && atomic_load(&ggi_shutting_down))
        return probe_short_report(plugin, GG_PROBE_NOT_PROBED, "gpuglue was shut down");
    if (!probe_is_final(plugin))
        probe_run(plugin, level);
    return ggi_probe_report_retain(plugin->record);
}

struct ggi_probe_report *ggi_plugin_report(struct ggi_plugin *plugin, enum gg_probe_level level,
                                           const char *excluded_by)
{
    struct ggi_text why = GGI_TEXT(512);
    if (excluded_by && plugin->backend.ops.probe && !atomic_load(&plugin->backend.opened)) {
        ggi_text_add(&why, "excluded by GPUGLUE_BACKEND=%s", excluded_by);
        return probe_short_report(plugin, GG_PROBE_DISABLED, why.data);
    }
    if (level == GG_LISTED && plugin->backend.ops.probe)
        return probe_short_report(plugin, GG_PROBE_NOT_PROBED, "listed only");
    ggi_plugin_lock(plugin);
    struct ggi_probe_report *record = probe_report(plugin, level);
    ggi_plugin_unlock(plugin);
    return record;
}
