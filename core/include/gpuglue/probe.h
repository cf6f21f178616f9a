/** @file
 *  The backends of this machine: which are available, why others are not, and which is the default.
 *
 *  @par Ordering
 *  Nothing here orders work.
 *  @par Threads
 *  Any thread. Only one probe runs at a time; others wait for it. */
#ifndef GG_PROBE_H
#define GG_PROBE_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** How thoroughly to probe. */
enum gg_probe_level {
    GG_PASSIVE, /**< find and open libraries; initialise no driver, so that forking stays safe */
    GG_ACTIVE,  /**< initialise the drivers and count devices */
    GG_LISTED   /**< open the plugins only: list the backends and those excluded; probe nothing */
};

/** A path that a probe tried. */
struct gg_tried {
    const char *path;    /**< as it was tried */
    const char *outcome; /**< "opened", or the loader's error */
};

/** The state of one backend. */
struct gg_report {
    const char *name;         /**< "cuda" */
    gg_probe_status status;   /**< whether it can be used */
    int32_t device_count;     /**< -1: unknown at this level */
    int32_t priority;         /**< "auto" prefers the highest */
    const char *reason;       /**< what is wrong and what to do; "" if available */
    const char *plugin_path,  /**< file of the backend's plugin */
        *plugin_version;      /**< of the plugin */
    const char *library_path, /**< file of the vendor's library; "" if none is needed or found */
        *library_version;     /**< of that library; "" if it is unknown */
    const char *found_by;     /**< "environment", "already loaded", "soname", … */
    size_t tried_count;       /**< number of paths tried */
    const struct gg_tried *tried; /**< in the order of the search */
    size_t tried_size;            /**< bytes from one to the next: use gg_tried_at */
    size_t note_count;            /**< number of notes */
    const char *const *notes; /**< further facts: other runtimes, visibility variables, duplicates */
};

/** The result of gg_probe. */
struct gg_reports {
    size_t count;                   /**< number of backends */
    const struct gg_report *report; /**< sorted by priority, then name */
    size_t report_size;             /**< bytes from one to the next: use gg_report_at */
};

/** The report of one backend. The library's structs may be larger than those of this header.
 *
 *  @param reports  from gg_probe
 *  @param index    below count
 *  @return valid until gg_reports_free */
static inline const struct gg_report *gg_report_at(const struct gg_reports *reports, size_t index)
{
    return (const struct gg_report *)(const void *)((const char *)reports->report +
                                                    index * reports->report_size);
}

/** A file or library that was tried.
 *
 *  @param report  of one backend
 *  @param index   below tried_count
 *  @return valid until gg_reports_free */
static inline const struct gg_tried *gg_tried_at(const struct gg_report *report, size_t index)
{
    return (const struct gg_tried *)(const void *)((const char *)report->tried +
                                                   index * report->tried_size);
}

/** Probe every backend. Results of an active probe are cached and also used for later passive ones. A backend that
 *  GPUGLUE_BACKEND excludes is reported as disabled and is not probed.
 *
 *  @param level     how thoroughly
 *  @param[out] out  free it with gg_reports_free
 *  @return GG_OK, also if no backend is available
 *  @retval GG_ERR_OUT_OF_MEMORY  of the host */
GG_API gg_status gg_probe(enum gg_probe_level level, struct gg_reports **out);

/** Free the result of gg_probe with all its texts.
 *
 *  @param reports  may be NULL */
GG_API void gg_reports_free(struct gg_reports *reports);

/** The default backend: selected by gg_use_backend or GPUGLUE_BACKEND, decided once.
 *
 *  @param[out] name  such as "cuda"
 *  @param[out] note  NULL, or a sentence for the user: "auto" found no GPU and selected host
 *  @return GG_OK
 *  @retval GG_ERR_UNAVAILABLE  no backend; the message lists every reason */
GG_API gg_status gg_default_backend(const char **name, const char **note);

/** Select the default backend. Takes precedence over GPUGLUE_BACKEND.
 *
 *  @param selection  `auto`, `name[,name…]` (tried in order, no others) or `^name[,name…]` (auto without those)
 *  @return GG_OK
 *  @retval GG_ERR_INVALID_ARGUMENT  not a text of this form
 *  @retval GG_ERR_UNAVAILABLE       none of the backends can be used; the message lists every reason */
GG_API gg_status gg_use_backend(const char *selection);

/** Add a plugin. It is opened at the next probe.
 *
 *  @param path  absolute path of its file
 *  @return GG_OK
 *  @retval GG_ERR_INVALID_ARGUMENT  NULL, not an absolute path, or a file that is not called gpuglue_<name>.so */
GG_API gg_status gg_register_plugin(const char *path);

/** Report a plugin that cannot be loaded, such as one of a broken package, as a backend with status plugin-load-failed.
 *  Takes effect as gg_register_plugin.
 *
 *  @param name    of the backend; is copied
 *  @param reason  what is wrong and what to do; is copied
 *  @return GG_OK
 *  @retval GG_ERR_INVALID_ARGUMENT  NULL */
GG_API gg_status gg_report_plugin_error(const char *name, const char *reason);

/** Add a directory in which vendor libraries are searched before the default locations.
 *
 *  @param directory  an absolute path
 *  @return GG_OK
 *  @retval GG_ERR_INVALID_ARGUMENT  NULL, or not an absolute path */
GG_API gg_status gg_add_library_directory(const char *directory);

GG_END_DECLS
#endif
