/* registry.c: finds the plugins: registered by path, on GPUGLUE_PLUGIN_PATH, beside libgpuglue. */
#include "backends.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define VARIABLE "GPUGLUE_PLUGIN_PATH"

/* Lists are added to under the lock, at the head or by an atomic link, and read without it. What they
 * hold lives as long as the process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic(struct gg_backend *) first_backend;
static _Atomic(struct ggi_refusal *) first_refusal;
static struct gg_probe_log places; /* directories and files that were looked at */
static bool scanned;               /* the places that never change */

struct registered {
    const char *path, *name, *reason; /* the path, else "" and the rest */
    struct registered *next;
    bool loaded;
};
static struct registered *first_registered;

static void prepare(void)
{
    ggi_reset_in_child(&lock);
    ggi_watch_forks();
}

static void enter(void)
{
    pthread_once(&once, prepare);
    pthread_mutex_lock(&lock);
}

/* ---- one file ---- */

static struct gg_backend *known(const char *name)
{
    for (struct gg_backend *b = atomic_load(&first_backend); b; b = b->next)
        if (!strcmp(b->name, name))
            return b;
    return NULL;
}

static struct gg_backend *new_backend(const char *name, const char *path)
{
    static char none[] = "";
    struct gg_backend *backend = calloc(1, sizeof *backend);
    if (!backend)
        return NULL;
    memcpy(backend->name, name, strlen(name));
    backend->plugin_path = path ? strdup(path) : NULL;
    backend->library_path = backend->library_version = none;
    backend->lock_generation = atomic_load(&ggi_generation);
    pthread_mutex_init(&backend->lock, NULL);
    return backend;
}

static void publish(struct gg_backend *backend)
{
    backend->next = atomic_load(&first_backend);
    atomic_store(&first_backend, backend);
}

/* First found wins, whatever becomes of it: a broken plugin is not replaced in silence. */
static bool is_duplicate(const char *name, const char *path)
{
    const struct gg_backend *other = known(name);
    if (!other)
        return false;
    if (!other->plugin_path || strcmp(other->plugin_path, path) != 0)
        ggi_log(GG_LOG_WARN, name, "%s is ignored: %s was found first", path,
                other->plugin_path ? other->plugin_path : "the one built into libgpuglue");
    return true;
}

/* With @p refusal there is no file but only the reason. */
static void load_file(const char *path, const char *name, const char *refusal)
{
    char reason[512];
    struct ggi_text why;
    if (is_duplicate(name, path))
        return;
    struct gg_backend *backend = new_backend(name, path);
    if (!backend)
        return;
    ggi_text_begin(&why, reason, sizeof reason);
    ggi_text_add(&why, refusal ? "%s" : "plugin %s cannot be used: ", refusal ? refusal : path);
    gg_probe_status status =
        refusal ? GG_PROBE_PLUGIN_LOAD_FAILED : ggi_plugin_load(backend, path, &why);
    if (status != GG_PROBE_AVAILABLE) {
        backend->record = ggi_record_why(name, status, reason);
        if (backend->record && !refusal)
            backend->record->report.plugin_path = ggi_keep(path);
        ggi_log(GG_LOG_WARN, name, "%s", reason);
    } else {
        ggi_log(GG_LOG_DEBUG, name, "plugin %s, version %s", path, backend->plugin_version);
    }
    publish(backend);
}

/* A place has no backend's name, so it is reported under @p name. */
static void refuse(const char *name, gg_probe_status status, const char *place, const char *reason)
{
    struct ggi_refusal *refusal = calloc(1, sizeof *refusal);
    ggi_log(GG_LOG_WARN, NULL, "%s", reason);
    ggi_tried(&places, place, reason);
    if (!refusal)
        return;
    refusal->record = ggi_record_why(name, status, reason);
    refusal->next = atomic_load(&first_refusal);
    atomic_store(&first_refusal, refusal);
}

static void load_built_in(void)
{
    char reason[512];
    struct ggi_text why;
    const struct gg_backend_desc *desc = ggi_host_backend(ggi_host_api());
    if (known(desc->name))
        return;
    struct gg_backend *backend = new_backend(desc->name, NULL);
    if (!backend)
        return;
    ggi_text_begin(&why, reason, sizeof reason);
    ggi_text_add(&why, "the one built into libgpuglue cannot be used: ");
    gg_probe_status status = ggi_plugin_accept(backend, desc, &why);
    if (status != GG_PROBE_AVAILABLE)
        backend->record = ggi_record_why(desc->name, status, reason);
    publish(backend);
}

/* ---- places ---- */

static int is_plugin(const struct dirent *entry)
{
    char name[GGI_NAME_SIZE];
    return ggi_plugin_name(entry->d_name, name);
}

static void load_directory(const char *directory)
{
    struct dirent **entries = NULL;
    int count = scandir(directory, &entries, is_plugin, alphasort);
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX], name[GGI_NAME_SIZE];
        struct ggi_text text;
        ggi_text_begin(&text, path, sizeof path);
        ggi_text_add(&text, "%s/%s", directory, entries[i]->d_name);
        if (ggi_plugin_name(path, name))
            load_file(path, name, NULL);
        free(entries[i]);
    }
    free(entries);
    ggi_tried(&places, directory, "searched");
}

static gg_probe_status check_entry(const char *entry, char name[GGI_NAME_SIZE], bool *directory,
                                   struct ggi_text *why)
{
    struct stat info;
    if (entry[0] != '/') {
        ggi_text_add(why, "it is %s; give absolute directories or files, separated by ':'",
                     entry[0] ? "relative" : "empty, which would mean the current directory");
        return GG_PROBE_PLUGIN_LOAD_FAILED;
    }
    bool too_long = strlen(entry) >= PATH_MAX - NAME_MAX;
    if (too_long || stat(entry, &info)) {
        ggi_text_add(why, "%s", strerror(too_long ? ENAMETOOLONG : errno));
        return GG_PROBE_PLUGIN_NOT_FOUND;
    }
    *directory = S_ISDIR(info.st_mode);
    if (*directory && ggi_writable_by_others(entry, why))
        return GG_PROBE_PLUGIN_LOAD_FAILED;
    if (!*directory && !ggi_plugin_name(entry, name)) {
        ggi_text_add(why, "it is neither a directory nor a file called gpuglue_<name>.so");
        return GG_PROBE_PLUGIN_LOAD_FAILED;
    }
    return GG_PROBE_AVAILABLE;
}

static void load_entry(const char *entry, int number)
{
    char name[GGI_NAME_SIZE], reason[512];
    bool directory = false;
    struct ggi_text why;
    ggi_text_begin(&why, reason, sizeof reason);
    ggi_text_add(&why, "entry %d of " VARIABLE ", \"%s\", was refused: ", number, entry);
    gg_probe_status status = check_entry(entry, name, &directory, &why);
    if (status != GG_PROBE_AVAILABLE) {
        refuse(VARIABLE, status, entry, reason);
    } else if (directory) {
        load_directory(entry);
    } else {
        load_file(entry, name, NULL);
        ggi_tried(&places, entry, "opened");
    }
}

static void load_variable(void)
{
    const char *value = ggi_host_api()->get_env(VARIABLE);
    char *copy = value && *value ? strdup(value) : NULL, *rest = copy, *entry;
    for (int number = 1; (entry = strsep(&rest, ":")); number++)
        load_entry(entry, number);
    free(copy);
}

/* Beside the file that we are in, wherever a link to it may be. */
static void load_own_directory(void)
{
    char path[PATH_MAX], reason[512];
    struct ggi_text why;
    const char *own = gg_library_path();
    if (!own || !realpath(own, path))
        return;
    *strrchr(path, '/') = 0;
    ggi_text_begin(&why, reason, sizeof reason);
    ggi_text_add(&why, "the directory of libgpuglue was not searched for plugins: ");
    if (ggi_writable_by_others(path, &why))
        refuse("libgpuglue", GG_PROBE_PLUGIN_LOAD_FAILED, path, reason);
    else
        load_directory(path);
}

/* A plugin that was announced and has no file; perhaps under what is no backend's name. */
static void load_nothing(const struct registered *announced)
{
    const char *name = announced->name, *source = "what was announced in its place";
    if (ggi_name_is_valid(name))
        load_file(source, name, announced->reason);
    else
        refuse(name, GG_PROBE_PLUGIN_LOAD_FAILED, source, announced->reason);
}

static void scan(void)
{
    load_built_in();
    for (struct registered *r = first_registered; r; r = r->next) {
        char name[GGI_NAME_SIZE];
        if (!r->loaded && !*r->path) {
            load_nothing(r);
        } else if (!r->loaded && ggi_plugin_name(r->path, name)) {
            load_file(r->path, name, NULL);
            ggi_tried(&places, r->path, "opened");
        }
        r->loaded = true;
    }
    if (scanned)
        return;
    load_variable();
    load_own_directory();
    scanned = true;
}

/* Found in the order of their registration. */
static gg_status add_registered(const char *path, const char *name, const char *reason)
{
    struct registered **at = &first_registered, *added = calloc(1, sizeof *added);
    if (!added)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory to note a plugin");
    *added = (struct registered){ggi_keep(path), ggi_keep(name), ggi_keep(reason), NULL, false};
    enter();
    while (*at)
        at = &(*at)->next;
    *at = added;
    pthread_mutex_unlock(&lock);
    return GG_OK;
}

gg_status gg_refuse_plugin(const char *name, const char *reason)
{
    return name && reason ? add_registered(NULL, name, reason)
                          : ggi_fail(GG_ERR_INVALID_ARGUMENT, "refuse_plugin: a NULL argument");
}

gg_status gg_register_plugin(const char *path)
{
    char name[GGI_NAME_SIZE];
    if (!path || path[0] != '/' || strlen(path) >= PATH_MAX)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "register_plugin: \"%.300s\" is not the absolute path of a plugin",
                        path ? path : "NULL");
    if (ggi_plugin_name(path, name))
        return add_registered(path, NULL, NULL);
    return ggi_fail(
        GG_ERR_INVALID_ARGUMENT,
        "register_plugin: the file of \"%.300s\" is not called gpuglue_<name>.so with a "
        "name of at most %d of a-z, 0-9 and _",
        path, GGI_NAME_SIZE - 1);
}

/* ---- all of them ---- */

static struct gg_backend *all_backends(void)
{
    enter();
    scan();
    pthread_mutex_unlock(&lock);
    return atomic_load(&first_backend);
}

static int by_priority(const void *left, const void *right)
{
    const struct gg_backend *a = *(struct gg_backend *const *)left;
    const struct gg_backend *b = *(struct gg_backend *const *)right;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return strcmp(a->name, b->name);
}

struct gg_backend **ggi_backends(size_t *count)
{
    struct gg_backend *first = all_backends();
    *count = 0;
    for (struct gg_backend *b = first; b; b = b->next)
        ++*count;
    struct gg_backend **all = calloc(*count + 1, sizeof(struct gg_backend *));
    if (!all)
        return NULL;
    for (size_t i = 0; first; first = first->next)
        all[i++] = first;
    qsort(all, *count, sizeof *all, by_priority);
    return all;
}

struct gg_backend *ggi_backend_named(const char *name)
{
    all_backends();
    return known(name);
}

struct gg_backend *ggi_backend_next_open(struct gg_backend *after)
{
    struct gg_backend *b = after ? after->next : atomic_load(&first_backend);
    while (b && !atomic_load(&b->opened))
        b = b->next;
    return b;
}

const struct ggi_refusal *ggi_refusals(void)
{
    return atomic_load(&first_refusal);
}

/* Names that could not be opened are there too: they are names that exist. */
static void say_names(struct ggi_text *text)
{
    size_t count;
    struct gg_backend **all = ggi_backends(&count);
    for (size_t i = 0; all && i < count; i++)
        ggi_text_add(text, "%s%s", i ? ", " : "", all[i]->name);
    free(all);
}

struct ggi_record *ggi_backend_missing(const char *name)
{
    struct gg_probe_result result = {.struct_size = sizeof result, .device_count = -1};
    struct gg_probe_log tried = {0};
    struct ggi_text why;
    result.status = GG_PROBE_PLUGIN_NOT_FOUND;
    ggi_text_begin(&why, result.reason, sizeof result.reason);
    ggi_text_add(&why, "there is no plugin gpuglue_%s.so; there are backends ", name);
    say_names(&why);
    ggi_text_add(&why, "; looked in");
    enter();
    for (size_t i = 0; i < places.tried_count; i++) {
        ggi_text_add(&why, "%s %s", i ? "," : "", places.tried[i].path);
        ggi_tried(&tried, places.tried[i].path, places.tried[i].outcome);
    }
    pthread_mutex_unlock(&lock);
    struct ggi_record *record = ggi_record_new(name, GG_ACTIVE, &result, &tried);
    ggi_probe_log_free(&tried);
    return record;
}

/* ---- the lock of one ---- */

void ggi_backend_hold(struct gg_backend *backend)
{
    uint32_t now = atomic_load(&ggi_generation);
    enter();
    if (backend->lock_generation != now) { /* nobody of this process has come here yet */
        pthread_mutex_init(&backend->lock, NULL);
        backend->lock_generation = now;
    }
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&backend->lock);
}

void ggi_backend_let_go(struct gg_backend *backend)
{
    pthread_mutex_unlock(&backend->lock);
}
