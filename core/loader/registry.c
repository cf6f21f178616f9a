/* registry.c: finds the plugins: registered by path, on GPUGLUE_PLUGIN_PATH, beside libgpuglue. */
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "loader/loader.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/small.h"

#define VARIABLE "GPUGLUE_PLUGIN_PATH"

/* The lists change under the lock and are read without it. Their items are never freed. */
static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t registry_once = PTHREAD_ONCE_INIT;
static _Atomic(struct ggi_plugin *) registry_plugins;
static _Atomic(struct ggi_plugin_error *) registry_errors;
static struct gg_probe_log registry_searched; /* directories and files */
static bool registry_scanned; /* the variable and the directory of libgpuglue, which are searched once */

struct registered {
    const char *path, *name, *reason; /* a path; or a name and the reason why there is no path */
    struct registered *next;
    bool loaded;
};
static struct registered *registry_registered;

static void registry_prepare(void)
{
    ggi_reset_in_child(&registry_mutex);
    ggi_watch_forks();
    ggi_env_check_names();
}

static void registry_lock(void)
{
    pthread_once(&registry_once, registry_prepare);
    pthread_mutex_lock(&registry_mutex);
}

/* ---- one file ---- */

static struct ggi_plugin *registry_find(const char *name)
{
    for (struct ggi_plugin *b = atomic_load(&registry_plugins); b; b = b->next)
        if (!strcmp(b->backend.name, name))
            return b;
    return NULL;
}

/* Whether @p aliases, which are separated by ',', include the name. */
static bool registry_is_alias(const char *aliases, const char *name)
{
    const size_t length = strlen(name);
    for (; *aliases; aliases += strcspn(aliases, ","), aliases += *aliases == ',')
        if (strcspn(aliases, ",") == length && !strncmp(aliases, name, length))
            return true;
    return false;
}

static struct ggi_plugin *registry_find_alias(const char *name)
{
    struct ggi_plugin *best = NULL;
    for (struct ggi_plugin *b = atomic_load(&registry_plugins); b; b = b->next)
        if (registry_is_alias(b->aliases, name) && (!best || b->priority > best->priority))
            best = b;
    return best;
}

static struct ggi_plugin *registry_new_plugin(const char *name, const char *path)
{
    struct ggi_plugin *plugin = calloc(1, sizeof *plugin);
    if (!plugin)
        return NULL;
    memcpy(plugin->backend.name, name, strlen(name));
    plugin->path = path ? strdup(path) : NULL;
    plugin->backend.library_path = plugin->backend.library_version = plugin->aliases = "";
    plugin->lock_generation = atomic_load(&ggi_generation);
    pthread_mutex_init(&plugin->lock, NULL);
    return plugin;
}

static void registry_add(struct ggi_plugin *plugin)
{
    plugin->next = atomic_load(&registry_plugins);
    atomic_store(&registry_plugins, plugin);
}

/* The first plugin of a name is used, even a broken one, so that no other replaces it silently. */
static bool registry_has(const char *name, const char *path)
{
    const struct ggi_plugin *other = registry_find(name);
    if (!other)
        return false;
    if (!other->path || strcmp(other->path, path) != 0)
        ggi_log(GG_LOG_WARN, name, "%s is ignored: %s was found first", path,
                other->path ? other->path : "the one built into libgpuglue");
    return true;
}

/* @p refusal: the reason why there is no file, or NULL. */
static void registry_load_file(const char *path, const char *name, const char *refusal)
{
    struct ggi_text why = GGI_TEXT(512);
    struct ggi_plugin *plugin = registry_has(name, path) ? NULL : registry_new_plugin(name, path);
    if (!plugin)
        return;
    ggi_text_add(&why, refusal ? "%s" : "plugin %s cannot be used: ", refusal ? refusal : path);
    gg_probe_status status =
        refusal ? GG_PROBE_PLUGIN_LOAD_FAILED : ggi_plugin_load(plugin, path, &why);
    if (status != GG_PROBE_AVAILABLE) {
        plugin->record = ggi_probe_report_failure(name, status, why.data);
        if (plugin->record && !refusal)
            plugin->record->report.plugin_path = ggi_intern(path);
        ggi_log(GG_LOG_WARN, name, "%s", why.data);
    } else {
        ggi_log(GG_LOG_DEBUG, name, "plugin %s, version %s", path, plugin->version);
    }
    registry_add(plugin);
}

/* Report a directory or file that belongs to no backend, under @p name. */
static void registry_add_error(const char *name, gg_probe_status status, const char *place,
                               const char *reason)
{
    struct ggi_plugin_error *refusal = calloc(1, sizeof *refusal);
    ggi_log(GG_LOG_WARN, NULL, "%s", reason);
    ggi_probe_log_tried(&registry_searched, place, reason);
    if (!refusal)
        return;
    refusal->record = ggi_probe_report_failure(name, status, reason);
    refusal->next = atomic_load(&registry_errors);
    atomic_store(&registry_errors, refusal);
}

static void registry_load_built_in(void)
{
    static const struct gg_backend_desc *desc;
    struct ggi_text why = GGI_TEXT(512);
    if (!desc) /* once: other threads read what the entry point stores */
        desc = ggi_host_backend(ggi_host_api());
    struct ggi_plugin *plugin =
        registry_find(desc->name) ? NULL : registry_new_plugin(desc->name, NULL);
    if (!plugin)
        return;
    ggi_text_add(&why, "the one built into libgpuglue cannot be used: ");
    gg_probe_status status = ggi_plugin_accept(plugin, desc, &why);
    if (status != GG_PROBE_AVAILABLE)
        plugin->record = ggi_probe_report_failure(desc->name, status, why.data);
    registry_add(plugin);
}

/* ---- places ---- */

static int registry_is_plugin(const struct dirent *entry)
{
    char name[GGI_NAME_SIZE];
    return ggi_plugin_name(entry->d_name, name);
}

static void registry_load_directory(const char *directory)
{
    struct dirent **entries = NULL;
    int count = scandir(directory, &entries, registry_is_plugin, alphasort);
    for (int i = 0; i < count; i++) {
        char name[GGI_NAME_SIZE];
        struct ggi_text path = GGI_TEXT(PATH_MAX);
        ggi_text_add(&path, "%s/%s", directory, entries[i]->d_name);
        if (ggi_plugin_name(path.data, name))
            registry_load_file(path.data, name, NULL);
        free(entries[i]);
    }
    free(entries);
    ggi_probe_log_tried(&registry_searched, directory, "searched");
}

static gg_probe_status registry_check_entry(const char *entry, char name[GGI_NAME_SIZE],
                                            bool *directory, struct ggi_text *why)
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

static void registry_load_entry(const char *entry, int number)
{
    char name[GGI_NAME_SIZE];
    bool directory = false;
    struct ggi_text why = GGI_TEXT(512);
    ggi_text_add(&why, "entry %d of " VARIABLE ", \"%s\", was refused: ", number, entry);
    gg_probe_status status = registry_check_entry(entry, name, &directory, &why);
    if (status != GG_PROBE_AVAILABLE) {
        registry_add_error(VARIABLE, status, entry, why.data);
    } else if (directory) {
        registry_load_directory(entry);
    } else {
        registry_load_file(entry, name, NULL);
        ggi_probe_log_tried(&registry_searched, entry, "opened");
    }
}

static void registry_load_variable(void)
{
    const char *value = ggi_env_get(VARIABLE);
    char *copy = value && *value ? strdup(value) : NULL, *rest = copy, *entry;
    for (int number = 1; (entry = strsep(&rest, ":")); number++)
        registry_load_entry(entry, number);
    free(copy);
}

/* The directory of libgpuglue itself, with links resolved. */
static void registry_load_own_directory(void)
{
    char path[PATH_MAX];
    struct ggi_text why = GGI_TEXT(512);
    static const char inside[] = "a constant, which is mapped from the file";
    const char *own = gg_library_path();
    char mapped[PATH_MAX];
    if (own && own[0] != '/') /* relative to a directory that may no longer be the current one */
        own = ggi_dynlib_file_at(inside, mapped) ? mapped : NULL;
    if (!own || !realpath(own, path))
        return;
    *strrchr(path, '/') = 0;
    ggi_text_add(&why, "the directory of libgpuglue was not searched for plugins: ");
    if (ggi_writable_by_others(path, &why))
        registry_add_error("libgpuglue", GG_PROBE_PLUGIN_LOAD_FAILED, path, why.data);
    else
        registry_load_directory(path);
}

/* An error of gg_report_plugin_error. Its name may be one that no backend can have. */
static void registry_load_error(const struct registered *failed)
{
    const char *name = failed->name, *source = "an entry point that failed";
    if (ggi_backend_name_is_valid(name))
        registry_load_file(source, name, failed->reason);
    else
        registry_add_error(name, GG_PROBE_PLUGIN_LOAD_FAILED, source, failed->reason);
}

static void registry_scan(void)
{
    registry_load_built_in();
    for (struct registered *r = registry_registered; r; r = r->next) {
        char name[GGI_NAME_SIZE];
        if (!r->loaded && !*r->path) {
            registry_load_error(r);
        } else if (!r->loaded && ggi_plugin_name(r->path, name)) {
            registry_load_file(r->path, name, NULL);
            ggi_probe_log_tried(&registry_searched, r->path, "opened");
        }
        r->loaded = true;
    }
    if (registry_scanned)
        return;
    registry_load_variable();
    registry_load_own_directory();
    registry_scanned = true;
}

/* Append, so that plugins are found in the order of registration. */
static gg_status registry_add_registered(const char *path, const char *name, const char *reason)
{
    struct registered **at = &registry_registered, *added = calloc(1, sizeof *added);
    if (!added)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory to register a plugin");
    *added =
        (struct registered){ggi_intern(path), ggi_intern(name), ggi_intern(reason), NULL, false};
    registry_lock();
    while (*at)
        at = &(*at)->next;
    *at = added;
    pthread_mutex_unlock(&registry_mutex);
    return GG_OK;
}

gg_status gg_report_plugin_error(const char *name, const char *reason)
{
    return name && reason ? registry_add_registered(NULL, name, reason)
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
        return registry_add_registered(path, NULL, NULL);
    return ggi_fail(
        GG_ERR_INVALID_ARGUMENT,
        "register_plugin: the file of \"%.300s\" is not called gpuglue_<name>.so with a "
        "name of at most %d of a-z, 0-9 and _",
        path, GGI_NAME_SIZE - 1);
}

/* ---- all plugins ---- */

static struct ggi_plugin *registry_all(void)
{
    registry_lock();
    registry_scan();
    pthread_mutex_unlock(&registry_mutex);
    return atomic_load(&registry_plugins);
}

static int registry_by_priority(const void *left, const void *right)
{
    const struct ggi_plugin *a = *(struct ggi_plugin *const *)left;
    const struct ggi_plugin *b = *(struct ggi_plugin *const *)right;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return strcmp(a->backend.name, b->backend.name);
}

struct ggi_plugin **ggi_plugins(size_t *count)
{
    struct ggi_plugin *first = registry_all();
    *count = 0;
    for (struct ggi_plugin *b = first; b; b = b->next)
        ++*count;
    struct ggi_plugin **all = calloc(*count + 1, sizeof(struct ggi_plugin *));
    if (!all)
        return NULL;
    for (size_t i = 0; first; first = first->next)
        all[i++] = first;
    qsort(all, *count, sizeof *all, registry_by_priority);
    return all;
}

struct ggi_plugin *ggi_plugin_named(const char *name)
{
    registry_all();
    struct ggi_plugin *plugin = registry_find(name);
    return plugin ? plugin : registry_find_alias(name);
}

const struct ggi_plugin_error *ggi_plugin_errors(void)
{
    return atomic_load(&registry_errors);
}

/* Backends that could not be opened are included. */
static void registry_describe_names(struct ggi_text *text)
{
    size_t count;
    struct ggi_plugin **all = ggi_plugins(&count);
    for (size_t i = 0; all && i < count; i++)
        ggi_text_add(text, "%s%s", i ? ", " : "", all[i]->backend.name);
    free(all);
}

struct registry_nearest {
    size_t distance;
    char name[64];
};

/* @p words are names, separated by ','. */
static void registry_consider(const char *name, const char *words, struct registry_nearest *best)
{
    char word[sizeof best->name];
    for (size_t length; *words; words += length + (words[length] == ',')) {
        length = strcspn(words, ",");
        if (length >= sizeof word)
            continue;
        memcpy(word, words, length);
        word[length] = 0;
        const bool begun = strlen(name) > 1 && !strncmp(word, name, strlen(name));
        const size_t distance = begun ? 0 : ggi_text_distance(name, word);
        if (distance >= best->distance)
            continue;
        best->distance = distance;
        memcpy(best->name, word, length + 1);
    }
}

/* Add ": did you mean x?" if a backend has a similar name or alias. "gpu" is similar to "cpu" and "xpu", and means neither. */
static void registry_suggest(const char *name, struct ggi_text *text)
{
    if (!strcmp(name, "gpu"))
        return;
    struct registry_nearest best = {.distance = ggi_text_tolerance(name) + 1};
    for (const struct ggi_plugin *b = registry_all(); b; b = b->next) {
        registry_consider(name, b->backend.name, &best);
        registry_consider(name, b->aliases, &best);
    }
    if (best.name[0])
        ggi_text_add(text, ": did you mean %s?", best.name);
}

struct ggi_probe_report *ggi_plugin_missing(const char *name)
{
    struct gg_probe_result result = {
        .struct_size = sizeof result, .device_count = -1, .status = GG_PROBE_PLUGIN_NOT_FOUND};
    struct gg_probe_log tried = {0};
    struct ggi_text why = ggi_text_begin(result.reason, sizeof result.reason);
    ggi_text_add(&why, "there is no backend \"%s\"", name);
    registry_suggest(name, &why);
    ggi_text_add(&why, " (no plugin gpuglue_%s.so); the backends are ", name);
    registry_describe_names(&why);
    ggi_text_add(&why, "; searched:");
    registry_lock();
    for (size_t i = 0; i < registry_searched.tried_count; i++) {
        ggi_text_add(&why, "%s %s", i ? "," : "", registry_searched.tried[i].path);
        ggi_probe_log_tried(&tried, registry_searched.tried[i].path,
                            registry_searched.tried[i].outcome);
    }
    pthread_mutex_unlock(&registry_mutex);
    struct ggi_probe_report *record = ggi_probe_report_new(name, GG_ACTIVE, &result, &tried);
    ggi_probe_log_free(&tried);
    return record;
}

/* ---- the lock of one plugin ---- */

void ggi_plugin_lock(struct ggi_plugin *plugin)
{
    uint32_t now = atomic_load(&ggi_generation);
    registry_lock();
    if (plugin->lock_generation != now) { /* the first call after a fork */
        pthread_mutex_init(&plugin->lock, NULL);
        plugin->lock_generation = now;
    }
    pthread_mutex_unlock(&registry_mutex);
    pthread_mutex_lock(&plugin->lock);
}

void ggi_plugin_unlock(struct ggi_plugin *plugin)
{
    pthread_mutex_unlock(&plugin->lock);
}
