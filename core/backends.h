/* backends.h: what the files that find backends share: registry.c, plugin.c, record.c, probe.c,
 * select.c and find.c. */
#ifndef GPUGLUE_BACKENDS_H
#define GPUGLUE_BACKENDS_H

#include "internal.h"
#include "text.h"

/* ---- record.c: what was found ---- */

/* What a probe tried and noticed on its way. Texts are kept (ggi_keep), arrays are its own. */
struct gg_probe_log {
    size_t tried_count, note_count;
    struct gg_tried *tried;
    const char **notes;
};
void ggi_tried(struct gg_probe_log *log, const char *path, const char *outcome);
void ggi_note(struct gg_probe_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void ggi_notev(struct gg_probe_log *log, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
void ggi_probe_log_free(struct gg_probe_log *log);

/* One report. Never changed once others can see it, and counted, so that gg_probe copies nothing. */
struct ggi_record {
    _Atomic(int) refs;
    enum gg_probe_level level; /* GG_ACTIVE: final */
    bool declined;             /* but not this one, once the backend is named */
    struct gg_report report;
    struct gg_probe_log log;
};
/* @p log is taken over, NULL where nothing was tried. NULL when memory ran out. */
struct ggi_record *ggi_record_new(const char *name, enum gg_probe_level level,
                                  const struct gg_probe_result *result, struct gg_probe_log *log);
/* A record that only says why. */
struct ggi_record *ggi_record_why(const char *name, gg_probe_status status, const char *reason);
void ggi_record_release(struct ggi_record *record);

/* ---- plugin.c: one plugin file ---- */

/* The backend's name in a path ".../gpuglue_<name>.so"; false where it is not so called. */
bool ggi_plugin_name(const char *path, char name[GGI_NAME_SIZE]);
/* Whether a name could be a backend's. */
bool ggi_name_is_valid(const char *name);
/* Whether others than the owner and the group can write the file or directory; says so in @p why. */
bool ggi_writable_by_others(const char *path, struct ggi_text *why);
/* Open and check the file and fill in the backend. GG_PROBE_AVAILABLE, or what is wrong. */
gg_probe_status ggi_plugin_load(struct gg_backend *backend, const char *path, struct ggi_text *why);
/* The same for a descriptor that the core was linked with. */
gg_probe_status ggi_plugin_accept(struct gg_backend *backend, const struct gg_backend_desc *desc,
                                  struct ggi_text *why);

/* ---- registry.c: all of them ---- */

/* Every backend, its plugin loaded or (ops.probe is NULL, the record says why) refused. By priority,
 * then name. An array of *count to be freed; NULL when memory ran out. */
struct gg_backend **ggi_backends(size_t *count);
/* NULL: there is no plugin of that name. */
struct gg_backend *ggi_backend_named(const char *name);
/* Why there is none: where it was looked for and which there are. */
struct ggi_record *ggi_backend_missing(const char *name);
/* An entry of GPUGLUE_PLUGIN_PATH that was refused has no backend to report it. The last one. */
struct ggi_refusal {
    struct ggi_record *record;
    struct ggi_refusal *next;
};
const struct ggi_refusal *ggi_refusals(void);
/* The backend's lock; also in a forked child, where a thread that is gone may have held it. */
void ggi_backend_hold(struct gg_backend *backend);
void ggi_backend_let_go(struct gg_backend *backend);

/* ---- probe.c ---- */

/* "name: status: reason" of what the last probe found. */
void ggi_backend_say(struct gg_backend *backend, struct ggi_text *text);

/* ---- select.c ---- */

/* Names in the order given, lower case. */
#define GGI_SELECTION_MAX 16
struct ggi_selection {
    bool automatic; /* all but the names; else the names alone */
    size_t count;
    char text[256];
    const char *names[GGI_SELECTION_MAX];
};
/* False with @p why for a text that is no selection. */
bool ggi_selection_parse(struct ggi_selection *selection, const char *text, struct ggi_text *why);
bool ggi_selection_has(const struct ggi_selection *selection, const char *name);
/* Whether it leaves the backend in. One that stands in it by name is named from then on. */
bool ggi_selection_admits(const struct ggi_selection *selection, struct gg_backend *backend);
/* What GPUGLUE_BACKEND says, as long as gg_use_backend has not overruled it: NULL when it is unset or
 * nonsense. *text is the variable's value. */
const struct ggi_selection *ggi_selection_of_variable(const char **text, struct ggi_text *why);

#endif
