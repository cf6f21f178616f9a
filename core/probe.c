/* probe.c: asks backends what they find, once when it initialises something, and keeps the answers. */
#include "backends.h"

#include <stdlib.h>
#include <string.h>

/* ---- one backend; its lock is held in all of these ---- */

/* What declined to look because nobody had named it looks when somebody has. */
static bool is_final(const struct gg_backend *backend)
{
    const struct ggi_record *record = backend->record;
    return record && record->level == GG_ACTIVE &&
           !(record->declined && atomic_load(&backend->named));
}

/* Whether a parent initialised it, or was about to. What failed there is told as it is, and what was
 * only counted may be used here. */
static bool is_forked(struct gg_backend *backend)
{
    if (!backend->begun || atomic_load(&backend->generation) == atomic_load(&ggi_generation))
        return false;
    if (!is_final(backend))
        return true;
    return backend->record->report.status == GG_PROBE_AVAILABLE && !ggi_backend_adopt(backend);
}

/* An answer that contradicts itself would be believed by every caller. */
static void tidy(struct gg_probe_result *result, enum gg_probe_level level)
{
    struct ggi_text why;
    bool known = result->status >= GG_PROBE_AVAILABLE && result->status <= GG_PROBE_NOT_PROBED;
    bool counted = result->status == GG_PROBE_AVAILABLE && level == GG_ACTIVE;
    result->reason[sizeof result->reason - 1] = 0;
    result->library_path[sizeof result->library_path - 1] = 0;
    result->library_version[sizeof result->library_version - 1] = 0;
    result->found_by[sizeof result->found_by - 1] = 0;
    ggi_text_begin(&why, result->reason, known && !counted ? 0 : sizeof result->reason);
    if (!known) {
        ggi_text_add(&why, "the plugin gave the unknown status %d", (int)result->status);
        result->status = GG_PROBE_INIT_FAILED;
    } else if (counted && result->device_count < 1) {
        ggi_text_add(&why, "the plugin is available with %d devices", (int)result->device_count);
        result->status = GG_PROBE_NO_DEVICE;
    } else if (result->status != GG_PROBE_AVAILABLE && !result->reason[0]) {
        ggi_text_begin(&why, result->reason, sizeof result->reason);
        ggi_text_add(&why, "the plugin gave no reason");
    }
}

static gg_status make_devices(struct gg_backend *backend, int32_t count)
{
    gg_status status = GG_OK;
    struct gg_device *devices = calloc((size_t)count, sizeof *devices);
    if (!devices)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no memory for %d devices", (int)count);
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

static void take_devices(struct gg_backend *backend, struct gg_probe_result *result)
{
    struct ggi_text why;
    if (result->status != GG_PROBE_AVAILABLE)
        return;
    gg_status status = make_devices(backend, result->device_count);
    if (!status)
        return;
    result->status = GG_PROBE_INIT_FAILED;
    ggi_text_begin(&why, result->reason, sizeof result->reason);
    ggi_text_add(&why, "its devices cannot be used: %s", gg_status_message(status));
}

static char *keep_text(const char *text)
{
    return (char *)ggi_keep(text);
}

/* Its failures are told by the record, not by this thread's error. */
static void ask(struct gg_backend *backend, enum gg_probe_level level,
                struct gg_probe_result *result)
{
    result->named = atomic_load(&backend->named);
    ggi_quiet(1);
    backend->ops.probe(level, result);
    ggi_quiet(-1);
    tidy(result, level);
}

static struct ggi_record *complete(const struct gg_backend *backend, struct ggi_record *record)
{
    if (!record)
        return NULL;
    record->report.priority = backend->priority;
    record->report.plugin_path = ggi_keep(backend->plugin_path);
    record->report.plugin_version = ggi_keep(backend->plugin_version);
    return record;
}

static void replace_record(struct gg_backend *backend, struct ggi_record *record)
{
    ggi_record_release(backend->record);
    backend->record = record;
    ggi_log(GG_LOG_INFO, backend->name, "%s%s%s", gg_probe_status_name(record->report.status),
            record->report.reason[0] ? ": " : "", record->report.reason);
}

static void initialise(struct gg_backend *backend, struct gg_probe_result *result)
{
    ggi_watch_forks();
    atomic_store(&backend->generation, atomic_load(&ggi_generation));
    backend->begun = true;
    ask(backend, GG_ACTIVE, result);
    backend->begun = !result->declined;
    backend->library_path = keep_text(result->library_path);
    backend->library_version = keep_text(result->library_version);
    take_devices(backend, result);
}

/* Leaves the record; the old one where memory ran out. */
static void probe(struct gg_backend *backend, enum gg_probe_level level)
{
    struct gg_probe_log log = {0};
    struct gg_probe_result result = {.struct_size = sizeof result, .device_count = -1};
    result.status = GG_PROBE_NOT_PROBED;
    result.log = &log;
    if (!backend->ops.probe) /* a plugin that was refused, and no memory to say why */
        return;
    if (level == GG_ACTIVE)
        initialise(backend, &result);
    else
        ask(backend, level, &result);
    struct ggi_record *record =
        complete(backend, ggi_record_new(backend->name, level, &result, &log));
    ggi_probe_log_free(&log);
    if (!record)
        return;
    record->declined = result.declined != 0;
    replace_record(backend, record);
    if (level == GG_ACTIVE && result.status == GG_PROBE_AVAILABLE)
        atomic_store_explicit(&backend->opened, 1, memory_order_release);
}

/* ---- opening ---- */

static gg_status fail_forked(const struct gg_backend *backend)
{
    return ggi_fail(
        GG_ERR_FORKED,
        "this process was forked after backend \"%s\" was initialised in its parent, and "
        "a driver does not survive that: start child processes with \"spawn\" "
        "(multiprocessing.set_start_method(\"spawn\")), or fork before the first use",
        backend->name);
}

static void say(const struct gg_backend *backend, struct ggi_text *text)
{
    const struct gg_report *report = backend->record ? &backend->record->report : NULL;
    if (!report)
        ggi_text_add(text, "%s: no memory to probe it", backend->name);
    else
        ggi_text_add(text, "%s: %s: %s", backend->name, gg_probe_status_name(report->status),
                     report->reason);
}

void ggi_backend_say(struct gg_backend *backend, struct ggi_text *text)
{
    ggi_backend_hold(backend);
    say(backend, text);
    ggi_backend_let_go(backend);
}

static gg_status fail_unavailable(const struct gg_backend *backend)
{
    char message[sizeof ggi_thread()->error.message];
    struct ggi_text text;
    ggi_text_begin(&text, message, sizeof message);
    ggi_text_add(&text, "backend not available: ");
    say(backend, &text);
    ggi_fail(GG_ERR_UNAVAILABLE, "%s", message);
    ggi_fail_names(backend->name);
    return GG_ERR_UNAVAILABLE;
}

static gg_status open_held(struct gg_backend *backend)
{
    if (is_forked(backend))
        return fail_forked(backend);
    if (!is_final(backend))
        probe(backend, GG_ACTIVE);
    return atomic_load(&backend->opened) ? GG_OK : fail_unavailable(backend);
}

gg_status ggi_backend_open(struct gg_backend *backend)
{
    if (atomic_load(&ggi_down))
        return ggi_fail(GG_ERR_SHUT_DOWN, "gpuglue was shut down; no new work is taken");
    if (atomic_load_explicit(&backend->opened, memory_order_acquire) &&
        atomic_load(&backend->generation) == atomic_load(&ggi_generation))
        return GG_OK;
    ggi_backend_hold(backend);
    gg_status status = open_held(backend);
    ggi_backend_let_go(backend);
    return status;
}

/* ---- reports ---- */

/* What gg_probe gives out: the reports, and the records that hold their texts. */
struct report_set {
    struct gg_reports head;
    size_t room;
    struct gg_report *reports;
    struct ggi_record **records;
};

static struct report_set *new_set(size_t room)
{
    struct report_set *set = calloc(1, sizeof *set);
    if (!set)
        return NULL;
    set->room = room;
    set->reports = calloc(room, sizeof *set->reports);
    set->records = calloc(room, sizeof(struct ggi_record *));
    set->head.report = set->reports;
    if (set->reports && set->records)
        return set;
    gg_reports_free(&set->head);
    return NULL;
}

/* Takes the reference; false for NULL. */
static bool add(struct report_set *set, struct ggi_record *record)
{
    size_t at = set->head.count;
    if (!record || at == set->room) {
        ggi_record_release(record);
        return false;
    }
    set->records[at] = record;
    set->reports[at] = record->report;
    set->head.count++;
    return true;
}

static struct ggi_record *retained(struct ggi_record *record)
{
    if (record)
        atomic_fetch_add(&record->refs, 1);
    return record;
}

static struct ggi_record *record_held(struct gg_backend *backend, enum gg_probe_level level)
{
    if (is_forked(backend))
        return complete(
            backend,
            ggi_record_why(backend->name, GG_PROBE_FORKED,
                           "it was initialised before this process was forked: start "
                           "child processes with \"spawn\", or fork before the first use"));
    if (!is_final(backend) && atomic_load(&ggi_down))
        return complete(
            backend, ggi_record_why(backend->name, GG_PROBE_NOT_PROBED, "gpuglue was shut down"));
    if (!is_final(backend))
        probe(backend, level);
    return retained(backend->record);
}

static struct ggi_record *record_of(struct gg_backend *backend, enum gg_probe_level level,
                                    const char *excluded_by)
{
    struct ggi_record *record;
    char reason[512];
    struct ggi_text why;
    if (excluded_by && backend->ops.probe && !atomic_load(&backend->opened)) {
        ggi_text_begin(&why, reason, sizeof reason);
        ggi_text_add(&why, "excluded by GPUGLUE_BACKEND=%s", excluded_by);
        return complete(backend, ggi_record_why(backend->name, GG_PROBE_DISABLED, reason));
    }
    if (level == GG_LISTED && backend->ops.probe)
        return complete(backend, ggi_record_why(backend->name, GG_PROBE_NOT_PROBED, "listed only"));
    ggi_backend_hold(backend);
    record = record_held(backend, level);
    ggi_backend_let_go(backend);
    return record;
}

/* What is in the environment and no backend: names that nobody has, entries that were refused. */
static bool add_others(struct report_set *set, const struct ggi_selection *selection,
                       const char *nonsense)
{
    bool good = true;
    for (size_t i = 0; selection && i < selection->count; i++)
        if (!selection->automatic && !ggi_backend_named(selection->names[i]))
            good = add(set, ggi_backend_missing(selection->names[i])) && good;
    if (nonsense[0])
        good = add(set, ggi_record_why("GPUGLUE_BACKEND", GG_PROBE_PLUGIN_NOT_FOUND, nonsense)) &&
               good;
    for (const struct ggi_refusal *r = ggi_refusals(); r; r = r->next)
        good = add(set, retained(r->record)) && good;
    return good;
}

static size_t count_others(void)
{
    size_t count = GGI_SELECTION_MAX + 1;
    for (const struct ggi_refusal *r = ggi_refusals(); r; r = r->next)
        count++;
    return count;
}

static struct report_set *probe_all(struct gg_backend **all, size_t count, enum gg_probe_level level)
{
    char nonsense[512];
    const char *variable;
    struct ggi_text why;
    bool good = true;
    struct report_set *set = new_set(count + count_others());
    if (!set)
        return NULL;
    ggi_text_begin(&why, nonsense, sizeof nonsense);
    const struct ggi_selection *selection = ggi_selection_of_variable(&variable, &why);
    for (size_t i = 0; i < count && good; i++) {
        bool out = selection && !ggi_selection_admits(selection, all[i]);
        good = add(set, record_of(all[i], level, out ? variable : NULL));
    }
    if (good && add_others(set, selection, nonsense))
        return set;
    gg_reports_free(&set->head);
    return NULL;
}

gg_status gg_probe(enum gg_probe_level level, struct gg_reports **out)
{
    size_t count;
    if (!out || (level != GG_PASSIVE && level != GG_ACTIVE && level != GG_LISTED))
        return ggi_fail(
            GG_ERR_INVALID_ARGUMENT,
            "probe: level %d with result %p: expected GG_PASSIVE, GG_ACTIVE or GG_LISTED, and "
            "where to put the reports",
            (int)level, (void *)out);
    struct gg_backend **all = ggi_backends(&count);
    struct report_set *set = all ? probe_all(all, count, level) : NULL;
    free(all);
    if (!set)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "probe: no memory for the reports");
    *out = &set->head;
    return GG_OK;
}

void gg_reports_free(struct gg_reports *reports)
{
    struct report_set *set = (struct report_set *)reports;
    if (!set)
        return;
    for (size_t i = 0; i < set->head.count; i++)
        ggi_record_release(set->records[i]);
    free(set->reports);
    free(set->records);
    free(set);
}
