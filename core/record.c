/* record.c: what a probe found, tried and noticed. */
#include "backends.h"

#include <stdlib.h>
#include <string.h>

/* Room for one more in an array whose room is the next power of two. */
static void *grow(void *array, size_t count, size_t size)
{
    if (count & (count - 1)) /* between two powers: there is room */
        return array;
    return realloc(array, (count ? count * 2 : 1) * size);
}

void ggi_tried(struct gg_probe_log *log, const char *path, const char *outcome)
{
    if (!log)
        return;
    struct gg_tried *larger = grow(log->tried, log->tried_count, sizeof *larger);
    if (!larger)
        return;
    log->tried = larger;
    log->tried[log->tried_count++] = (struct gg_tried){ggi_keep(path), ggi_keep(outcome)};
}

void ggi_notev(struct gg_probe_log *log, const char *format, va_list arguments)
{
    char line[1024];
    struct ggi_text text;
    if (!log)
        return;
    ggi_text_begin(&text, line, sizeof line);
    ggi_text_addv(&text, format, arguments);
    const char **larger = grow(log->notes, log->note_count, sizeof *larger);
    if (!larger)
        return;
    log->notes = larger;
    log->notes[log->note_count++] = ggi_keep(line);
}

void ggi_note(struct gg_probe_log *log, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    ggi_notev(log, format, arguments);
    va_end(arguments);
}

void ggi_probe_log_free(struct gg_probe_log *log)
{
    free(log->tried);
    free(log->notes);
    *log = (struct gg_probe_log){0};
}

static void fill(struct gg_report *report, const struct gg_probe_result *result)
{
    report->status = result->status;
    report->device_count = result->device_count;
    report->reason = ggi_keep(result->reason);
    report->library_path = ggi_keep(result->library_path);
    report->library_version = ggi_keep(result->library_version);
    report->found_by = ggi_keep(result->found_by);
    report->plugin_path = report->plugin_version = "";
}

struct ggi_record *ggi_record_new(const char *name, enum gg_probe_level level,
                                  const struct gg_probe_result *result, struct gg_probe_log *log)
{
    struct ggi_record *record = calloc(1, sizeof *record);
    if (!record)
        return NULL;
    atomic_init(&record->refs, 1);
    record->level = level;
    record->report.name = ggi_keep(name);
    fill(&record->report, result);
    if (log) {
        record->log = *log;
        *log = (struct gg_probe_log){0};
    }
    record->report.tried_count = record->log.tried_count;
    record->report.tried = record->log.tried;
    record->report.note_count = record->log.note_count;
    record->report.notes = record->log.notes;
    return record;
}

struct ggi_record *ggi_record_why(const char *name, gg_probe_status status, const char *reason)
{
    struct gg_probe_result result = {.struct_size = sizeof result, .status = status};
    struct ggi_text text;
    result.device_count = -1;
    ggi_text_begin(&text, result.reason, sizeof result.reason);
    ggi_text_add(&text, "%s", reason);
    return ggi_record_new(name, GG_ACTIVE, &result, NULL);
}

void ggi_record_release(struct ggi_record *record)
{
    if (!record || atomic_fetch_sub(&record->refs, 1) > 1)
        return;
    ggi_probe_log_free(&record->log);
    free(record);
}
