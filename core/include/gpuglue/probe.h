/* probe.h: which backends there are and why not, which is the default, where plugins and libraries are
 * looked for. Included by gpuglue.h; its conventions are described there. */
#ifndef GPUGLUE_PROBE_H
#define GPUGLUE_PROBE_H

#include <gpuglue/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum gg_probe_level {
    GG_PASSIVE, /* finds files and opens libraries; initialises no driver, so a fork stays safe */
    GG_ACTIVE,  /* initialises the driver and counts devices */
    GG_LISTED   /* opens the plugins only: who there is and who is excluded, the rest not-probed */
};

struct gg_tried {
    const char *path;    /* as it was tried */
    const char *outcome; /* "opened", or why not, in the loader's words */
};

struct gg_report {
    const char *name;
    gg_probe_status status;
    int32_t device_count; /* -1: not known at this level */
    int32_t priority;     /* higher first in "auto" */
    const char *reason;   /* a sentence that a user can act on; "" when available */
    const char *plugin_path, *plugin_version;
    const char *library_path, *library_version; /* the vendor's; "" where none is needed or found */
    const char *found_by;                       /* "environment", "already loaded", "soname", … */
    size_t tried_count;
    const struct gg_tried *tried;
    size_t note_count;
    const char *const *notes; /* further facts: other runtimes, masks that are set, two copies */
};

struct gg_reports {
    size_t count;
    const struct gg_report *report; /* sorted by priority, then name */
};

/** Look for every backend and say what was found.
 *  Ownership  free the result with gg_reports_free.
 *  Notes      results of an active probe are kept and also answer later passive ones. Backends that
 *             GPUGLUE_BACKEND excludes are reported as disabled and are not probed. */
GG_API gg_status gg_probe(enum gg_probe_level level, struct gg_reports **out);

/** Free what gg_probe gave, with all its texts. NULL is allowed. */
GG_API void gg_reports_free(struct gg_reports *reports);

/** The default backend: GPUGLUE_BACKEND or the choice of gg_use_backend, decided once.
 *  @p note is NULL, or a sentence to pass on to the user: "auto" found no GPU and fell to host.
 *  Errors  GG_ERR_UNAVAILABLE, with every reason in the message. */
GG_API gg_status gg_default_backend(const char **name, const char **note);

/** Choose the default backend; beats GPUGLUE_BACKEND. @p selection is `auto`, `name[,name…]`
 *  (tried in order, nothing else is) or `^name[,name…]` (auto without those). */
GG_API gg_status gg_use_backend(const char *selection);

/** Add a plugin file by absolute path. It is opened when backends are next looked for. */
GG_API gg_status gg_register_plugin(const char *path);

/** Have a plugin that was announced and cannot be had (its package is broken) reported as a backend
 *  called @p name that is plugin-load-failed with @p reason. Both are copied. From any thread. Takes
 *  effect as for gg_register_plugin.
 *  Errors  GG_ERR_INVALID_ARGUMENT: NULL. */
GG_API gg_status gg_refuse_plugin(const char *name, const char *reason);

/** Add an absolute directory in which vendor libraries are looked for before the bare names. */
GG_API gg_status gg_add_library_directory(const char *directory);

#ifdef __cplusplus
}
#endif
#endif
