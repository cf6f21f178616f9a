/* loader.h: types and functions of the loader, which finds backends and devices. */
#ifndef GPUGLUE_LOADER_H
#define GPUGLUE_LOADER_H

#include "base/text.h"
#include "runtime/device.h"

#include <limits.h>

/* ---- probe_report.c: the result of a probe ---- */

/* What a probe tried and noted. It owns the arrays; the texts are interned. */
struct gg_probe_log {
    size_t tried_count, note_count;
    struct gg_tried *tried;
    const char **notes;
};
void ggi_probe_log_tried(struct gg_probe_log *log, const char *path, const char *outcome);
void ggi_probe_log_note(struct gg_probe_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void ggi_probe_log_free(struct gg_probe_log *log);

/* One report. Reference counted and immutable once published, so that gg_probe copies nothing. */
struct ggi_probe_report {
    _Atomic(int) refs;
    enum gg_probe_level level; /* a GG_ACTIVE report is final, */
    bool declined;             /* unless this is set and the user names the backend later */
    struct gg_report report;
    struct gg_probe_log log;
};
/* Takes ownership of @p log, which may be NULL. Returns NULL if memory runs out. */
struct ggi_probe_report *ggi_probe_report_new(const char *name, enum gg_probe_level level,
                                              const struct gg_probe_result *result,
                                              struct gg_probe_log *log);
/* A report that holds only a status and a reason. */
struct ggi_probe_report *ggi_probe_report_failure(const char *name, gg_probe_status status,
                                                  const char *reason);
struct ggi_probe_report *ggi_probe_report_retain(struct ggi_probe_report *record); /* or NULL */
void ggi_probe_report_release(struct ggi_probe_report *record);

/* ---- dynlib.c: calls of the dynamic loader ---- */

enum ggi_dynlib_mode {
    GGI_DYNLIB_VENDOR, /* RTLD_LAZY */
    GGI_DYNLIB_PLUGIN, /* RTLD_NOW: a missing symbol is an error at once */
    GGI_DYNLIB_MAPPED  /* RTLD_NOLOAD: only if the process has loaded it */
};

/* A handle, which is never closed; or NULL, with dlerror's message in @p error. */
void *ggi_dynlib_open(const char *path, enum ggi_dynlib_mode mode, char *error, size_t size);

/* The path of an open library, with links resolved. */
void ggi_dynlib_path(void *handle, char path[PATH_MAX]);

/* Whether @p address is in the library itself, not in one of its dependencies. */
bool ggi_dynlib_holds(void *handle, const void *address);
/* The absolute path of the file that is mapped at @p address; false if there is none, or no /proc. */
bool ggi_dynlib_file_at(const void *address, char path[PATH_MAX]);

/* Paths of the mapped files named stem.* or stem-*.so* (a wheel may have renamed the file). Stores up to
 * @p room of them in @p paths, each to be freed, and returns how many. */
size_t ggi_dynlib_mapped(const char *stem, char **paths, size_t room);

/* Add to @p why, for the user, why opening @p path failed with @p error. True if the file exists and it, or
 * a dependency, is broken; false if there is no such file. */
bool ggi_dynlib_explain(const char *path, const char *error, struct ggi_text *why);

/* ---- library.c: the search for a vendor's library; see struct gg_host_api ---- */

gg_probe_status ggi_library_open(const struct gg_library_spec *spec, struct gg_probe_log *log,
                                 struct gg_library *out, char *reason, size_t reason_size);
gg_probe_status ggi_library_resolve(const struct gg_library *library,
                                    const struct gg_symbol *symbols, size_t count, void *target,
                                    char *reason, size_t reason_size);

/* ---- trust.c ---- */

/* Whether users other than the owner and the group can write the file or directory, or replace a directory or a symbolic
 * link on the way to it; adds that to @p why. @p path is absolute. */
bool ggi_writable_by_others(const char *path, struct ggi_text *why);

/* ---- plugin.c: one plugin file ---- */

/* A backend and the plugin that provides it. If the plugin was refused, ops.probe is NULL and the record has
 * the reason. */
struct ggi_plugin {
    struct gg_backend backend; /* first: see ggi_plugin_of */
    int32_t priority;
    char *path; /* NULL: built into libgpuglue */
    char *version;
    struct gg_comm_ops comm_ops; /* what backend.comm_ops points to, if the plugin has any */
    const char *aliases;         /* separated by ',' */
    pthread_mutex_t lock;        /* probing and opening */
    uint32_t lock_generation;    /* ggi_generation when the lock was initialised */
    _Atomic(bool) named;         /* the user requested it by name; see struct gg_probe_result */
    bool begun; /* an active probe has begun, perhaps in a thread that does not exist after a fork */
    struct ggi_probe_report *record; /* of the last probe */
    struct ggi_plugin *next;
};
static inline struct ggi_plugin *ggi_plugin_of(struct gg_backend *backend)
{
    return (struct ggi_plugin *)backend; /* the registry allocates no other backends */
}

/* The backend's name in a path ".../gpuglue_<name>.so"; false if the path has another form. */
bool ggi_plugin_name(const char *path, char name[GGI_NAME_SIZE]);
/* Whether a backend can have this name. */
bool ggi_backend_name_is_valid(const char *name);
/* Open and check the file and fill in @p plugin. Returns GG_PROBE_AVAILABLE or the error. */
gg_probe_status ggi_plugin_load(struct ggi_plugin *plugin, const char *path, struct ggi_text *why);
/* The same for a descriptor that is built into libgpuglue. */
gg_probe_status ggi_plugin_accept(struct ggi_plugin *plugin, const struct gg_backend_desc *desc,
                                  struct ggi_text *why);

/* ---- registry.c: all plugins ---- */

/* All plugins, by priority, then name: an array of *count to be freed; NULL if memory runs out. */
struct ggi_plugin **ggi_plugins(size_t *count);
/* The plugin of that name, else the one of highest priority that has it as an alias; NULL if there is none. */
struct ggi_plugin *ggi_plugin_named(const char *name);
/* A report for a name without a plugin: the places searched and the backends there are. */
struct ggi_probe_report *ggi_plugin_missing(const char *name);
/* Refused entries of GPUGLUE_PLUGIN_PATH, which belong to no backend; the newest first. */
struct ggi_plugin_error {
    struct ggi_probe_report *record;
    struct ggi_plugin_error *next;
};
const struct ggi_plugin_error *ggi_plugin_errors(void);
/* The plugin's lock. Works in a forked child too, where a thread of the parent may have held it. */
void ggi_plugin_lock(struct ggi_plugin *plugin);
void ggi_plugin_unlock(struct ggi_plugin *plugin);

/* ---- backend_open.c ---- */

/* Initialise it by an active probe, once, so that its devices can be read. GG_ERR_FORKED in a forked child. */
gg_status ggi_backend_open(struct gg_backend *backend);
/* Add "name: status: reason" of the last probe. */
void ggi_plugin_describe(struct ggi_plugin *plugin, struct ggi_text *text);
/* A reference to the report of a probe of that level, new or earlier; NULL if memory runs out. @p excluded_by:
 * the value of GPUGLUE_BACKEND that excludes the backend, or NULL. */
struct ggi_probe_report *ggi_plugin_report(struct ggi_plugin *plugin, enum gg_probe_level level,
                                           const char *excluded_by);

/* ---- select.c ---- */

/* A parsed GPUGLUE_BACKEND. The names are in the order given, in lower case. */
#define GGI_SELECTION_MAX 16
struct ggi_selection {
    bool automatic; /* all backends except the names; else the names only */
    size_t count;
    char text[256];
    const char *names[GGI_SELECTION_MAX];
};
/* False, with the reason added to @p why, if the text is not valid. */
bool ggi_selection_parse(struct ggi_selection *selection, const char *text, struct ggi_text *why);
bool ggi_selection_has(const struct ggi_selection *selection, const char *name);
/* Whether it admits the backend. If it lists it by name, plugin->named is set. */
bool ggi_selection_admits(const struct ggi_selection *selection, struct ggi_plugin *plugin);
/* The selection of GPUGLUE_BACKEND; NULL if it is unset, invalid or overridden by gg_use_backend. *text is the
 * variable's value. */
const struct ggi_selection *ggi_selection_of_variable(const char **text, struct ggi_text *why);
/* The default backend, opened. */
gg_status ggi_backend_default(struct gg_backend **out);
/* The default backend if one has been chosen, else NULL. */
struct gg_backend *ggi_backend_decided(void);

/* ---- find.c ---- */

/* The backend of that name, not opened. GG_ERR_UNAVAILABLE names the places searched. */
gg_status ggi_backend_find(const char *name, struct gg_backend **out);

/* ---- the table for plugins, and the backend that is built into libgpuglue ---- */

const struct gg_host_api *ggi_host_api(void);
const struct gg_backend_desc *ggi_host_backend(const struct gg_host_api *host); /* backends/host */

#endif
