/* probe.c: gg_probe: the reports of all backends. */
#include "base/error.h"
#include "loader/loader.h"

#include <stdlib.h>

#include "base/small.h"

/* What gg_probe returns: the reports, and the records that own their texts. */
struct report_set {
    struct gg_reports head;
    size_t room;
    struct gg_report *reports;
    struct ggi_probe_report **records;
};

static struct report_set *report_set_new(size_t room)
{
    struct report_set *set = calloc(1, sizeof *set);
    if (!set)
        return NULL;
    set->room = room;
    set->reports = calloc(room, sizeof *set->reports);
    set->records = calloc(room, sizeof(struct ggi_probe_report *));
    set->head.report = set->reports;
    set->head.report_size = sizeof *set->reports;
    if (set->reports && set->records)
        return set;
    gg_reports_free(&set->head);
    return NULL;
}

/* Takes the reference; false for NULL. */
static bool report_set_add(struct report_set *set, struct ggi_probe_report *record)
{
    size_t at = set->head.count;
    if (!record || at == set->room) {
        ggi_probe_report_release(record);
        return false;
    }
    set->records[at] = record;
    set->reports[at] = record->report;
    set->head.count++;
    return true;
}

/* Errors of the environment: names without a backend, an invalid GPUGLUE_BACKEND, refused plugin paths. */
static bool report_set_add_others(struct report_set *set, const struct ggi_selection *selection,
                                  const char *invalid)
{
    bool good = true;
    for (size_t i = 0; selection && i < selection->count; i++)
        if (!selection->automatic && !ggi_plugin_named(selection->names[i]))
            good = report_set_add(set, ggi_plugin_missing(selection->names[i])) && good;
    if (invalid[0])
        good = report_set_add(set, ggi_probe_report_failure("GPUGLUE_BACKEND",
                                                            GG_PROBE_PLUGIN_NOT_FOUND, invalid)) &&
               good;
    for (const struct ggi_plugin_error *r = ggi_plugin_errors(); r; r = r->next)
        good = report_set_add(set, ggi_probe_report_retain(r->record)) && good;
    return good;
}

static size_t report_set_count_others(void)
{
    size_t count = GGI_SELECTION_MAX + 1;
    for (const struct ggi_plugin_error *r = ggi_plugin_errors(); r; r = r->next)
        count++;
    return count;
}

static struct report_set *report_set_of(struct ggi_plugin **all, size_t count,
                                        enum gg_probe_level level)
{
    const char *variable;
    struct ggi_text invalid = GGI_TEXT(512);
    bool good = true;
    struct report_set *set = report_set_new(count + report_set_count_others());
    if (!set)
        return NULL;
    const struct ggi_selection *selection = ggi_selection_of_variable(&variable, &invalid);
    for (size_t i = 0; i < count && good; i++) {
        bool out = selection && !ggi_selection_admits(selection, all[i]);
        good = report_set_add(set, ggi_plugin_report(all[i], level, out ? variable : NULL));
    }
    if (good && report_set_add_others(set, selection, invalid.data))
        return set;
    gg_reports_free(&set->head);
    return NULL;
}

gg_status gg_probe(enum gg_probe_level level, struct gg_reports **out)
{
    size_t count;
    if (!out || (level != GG_PASSIVE && level != GG_ACTIVE && level != GG_LISTED))
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "probe: level %d with result %p: expected GG_PASSIVE, GG_ACTIVE or "
                        "GG_LISTED, and a pointer for the result",
                        (int)level, (void *)out);
    struct ggi_plugin **all = ggi_plugins(&count);
    struct report_set *set = all ? report_set_of(all, count, level) : NULL;
    free(all);
    if (!set)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "probe: no host memory for the reports");
    *out = &set->head;
    return GG_OK;
}

void gg_reports_free(struct gg_reports *reports)
{
    struct report_set *set = (struct report_set *)reports;
    if (!set)
        return;
    for (size_t i = 0; i < set->head.count; i++)
        ggi_probe_report_release(set->records[i]);
    free(set->reports);
    free(set->records);
    free(set);
}
