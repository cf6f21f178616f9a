/* probe_report.c: the report of a probe: its result, the paths tried and its notes. */
#include "base/list.h"
#include "loader/loader.h"

#include <stdlib.h>
#include <string.h>

#include "base/small.h"

void ggi_probe_log_tried(struct gg_probe_log *log, const char *path, const char *outcome)
{
    const size_t length = strlen(path);
    if (!log)
        return;
    if (!strncmp(outcome, path, length) && !strncmp(outcome + length, ": ", 2))
        outcome += length + 2; /* dlerror begins with the path, which the report has already */
    struct gg_tried *larger = ggi_array_grow(log->tried, log->tried_count, sizeof *larger);
    if (!larger)
        return;
    log->tried = larger;
    log->tried[log->tried_count++] = (struct gg_tried){ggi_intern(path), ggi_intern(outcome)};
}

void ggi_probe_log_note(struct gg_probe_log *log, const char *format, ...)
{
    struct ggi_text line = GGI_TEXT(1024);
    va_list arguments;
    if (!log)
        return;
    va_start(arguments, format);
    ggi_text_addv(&line, format, arguments);
    va_end(arguments);
    const char **larger = ggi_array_grow(log->notes, log->note_count, sizeof *larger);
    if (!larger)
        return;
    log->notes = larger;
    log->notes[log->note_count++] = ggi_intern(line.data);
}

void ggi_probe_log_free(struct gg_probe_log *log)
{
    free(log->tried);
    free(log->notes);
    *log = (struct gg_probe_log){0};
}

static void report_fill(struct gg_report *report, const struct gg_probe_result *result)
{
    report->status = result->status;
    report->device_count = result->device_count;
    report->reason = ggi_intern(result->reason);
    report->library_path = ggi_intern(result->library_path);
    report->library_version = ggi_intern(result->library_version);
    report->found_by = ggi_intern(result->found_by);
    report->plugin_path = report->plugin_version = "";
}

struct ggi_probe_report *ggi_probe_report_new(const char *name, enum gg_probe_level level,
                                              const struct gg_probe_result *result,
                                              struct gg_probe_log *log)
{
    struct ggi_probe_report *record = calloc(1, sizeof *record);
    if (!record)
        return NULL;
    atomic_init(&record->refs, 1);
    record->level = level;
    record->report.name = ggi_intern(name);
    report_fill(&record->report, result);
    if (log) {
        record->log = *log;
        *log = (struct gg_probe_log){0};
    }
    record->report.tried_count = record->log.tried_count;
    record->report.tried = record->log.tried;
    record->report.tried_size = sizeof *record->log.tried;
    record->report.note_count = record->log.note_count;
    record->report.notes = record->log.notes;
    return record;
}

struct ggi_probe_report *ggi_probe_report_failure(const char *name, gg_probe_status status,
                                                  const char *reason)
{
    struct gg_probe_result result = {
        .struct_size = sizeof result, .status = status, .device_count = -1};
    struct ggi_text text = ggi_text_begin(result.reason, sizeof result.reason);
    ggi_text_add(&text, "%s", reason);
    return ggi_probe_report_new(name, GG_ACTIVE, &result, NULL);
}

struct ggi_probe_report *ggi_probe_report_retain(struct ggi_probe_report *record)
{
    if (record)
        atomic_fetch_add(&record->refs, 1);
    return record;
}

void ggi_probe_report_release(struct ggi_probe_report *record)
{
    if (!record || atomic_fetch_sub(&record->refs, 1) > 1)
        return;
    ggi_probe_log_free(&record->log);
    free(record);
}
