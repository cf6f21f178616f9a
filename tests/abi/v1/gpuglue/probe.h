/* probe.h: the backends of this machine: which are available, why others are not, and which is the
 * default. */
#ifndef GG_PROBE_H
#define GG_PROBE_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

enum gg_probe_level {
    GG_PASSIVE, /* find and open libraries; initialise no driver, so that forking stays safe */
    GG_ACTIVE,  /* initialise the drivers and count devices */
    GG_LISTED   /* open the plugins only: list the backends and those excluded; probe nothing */
};

struct gg_tried {
    const char *path;    /* as it was tried */
    const char *outcome; /* "opened", or the loader's error */
};

struct gg_report {
    const char *name;
    gg_probe_status status;
    int32_t device_count; /* -1: unknown at this level */
    int32_t priority;     /* "auto" prefers the highest */
    const char *reason;   /* what is wrong and what to do; "" if available */
    const char *plugin_path, *plugin_version;
    const char *library_path, *library_version; /* of the vendor; "" if none is needed or found */
    const char *found_by;                       /* "environment", "already loaded", "soname", … */
    size_t tried_count;
    const struct gg_tried *tried;
    size_t tried_size; /* bytes from one to the next: use gg_tried_at */
    size_t note_count;
    const char *const *notes; /* further facts: other runtimes, visibility variables, duplicates */
};

struct gg_reports {
    size_t count;
    const struct gg_report *report; /* sorted by priority, then name */
    size_t report_size;             /* bytes from one to the next: use gg_report_at */
};

/** Report @p index, below count. The library's structs may be larger than those of this header. */
static inline const struct gg_report *gg_report_at(const struct gg_reports *reports, size_t index)
{
    return (const struct gg_report *)(const void *)((const char *)reports->report +
                                                    index * reports->report_size);
}
/** File or library @p index that was tried, below tried_count. */
static inline const struct gg_tried *gg_tried_at(const struct gg_report *report, size_t index)
{
    return (const struct gg_tried *)(const void *)((const char *)report->tried +
                                                   index * report->tried_size);
}

/** Probe every backend.
 *  Ownership  free the result with gg_reports_free.
 *  Notes      results of an active probe are cached and also used for later passive ones. A backend that
 *             GPUGLUE_BACKEND excludes is reported as disabled and is not probed. */
GG_API gg_status gg_probe(enum gg_probe_level level, struct gg_reports **out);

/** Free the result of gg_probe with all its texts. NULL is allowed. */
GG_API void gg_reports_free(struct gg_reports *reports);

/** The default backend: selected by gg_use_backend or GPUGLUE_BACKEND, decided once. @p note is set to
 *  NULL, or to a sentence for the user: "auto" found no GPU and selected host.
 *  Errors  GG_ERR_UNAVAILABLE: no backend; the message lists every reason. */
GG_API gg_status gg_default_backend(const char **name, const char **note);

/** Select the default backend; takes precedence over GPUGLUE_BACKEND. @p selection is `auto`,
 *  `name[,name…]` (tried in order, no others) or `^name[,name…]` (auto without those). */
GG_API gg_status gg_use_backend(const char *selection);

/** Add a plugin by the absolute path of its file. It is opened at the next probe. */
GG_API gg_status gg_register_plugin(const char *path);

/** Report a plugin that cannot be loaded, such as one of a broken package, as a backend @p name with
 *  status plugin-load-failed and @p reason. Both are copied. Takes effect as gg_register_plugin.
 *  Errors  GG_ERR_INVALID_ARGUMENT: NULL. */
GG_API gg_status gg_report_plugin_error(const char *name, const char *reason);

/** Add an absolute directory in which vendor libraries are searched before the default locations. */
GG_API gg_status gg_add_library_directory(const char *directory);

GG_END_DECLS
#endif
