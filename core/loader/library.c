/* library.c: the search for a vendor's library. Its order: the variable, mapped libraries, added directories,
 * sonames, the vendor's directories. Every attempt is logged in the report. */
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "loader/loader.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/small.h"

#define COPIES 8

struct search {
    const struct gg_library_spec *spec;
    struct gg_probe_log *log;
    struct gg_library found, stub; /* the stub is used if nothing else is found */
    char why[512];                 /* of the first file that exists but cannot be opened */
};

/* ---- directories of gg_add_library_directory: a lock-free list that only grows ---- */

struct directory {
    const char *path;
    _Atomic(struct directory *) next;
};
static _Atomic(struct directory *) added_directories;

gg_status gg_add_library_directory(const char *path)
{
    _Atomic(struct directory *) *at = &added_directories;
    struct directory *none = NULL;
    if (!path || path[0] != '/' || strlen(path) >= PATH_MAX)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "add_library_directory: \"%.300s\" is not an absolute path",
                        path ? path : "NULL");
    struct directory *added = calloc(1, sizeof *added);
    if (!added)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "add_library_directory: no memory for a path");
    added->path = ggi_intern(path);
    while (!atomic_compare_exchange_strong(at, &none, added)) {
        if (none->path == added->path) { /* interned: equal texts have equal addresses */
            free(added);
            return GG_OK;
        }
        at = &none->next;
        none = NULL;
    }
    return GG_OK;
}

/* ---- one attempt ---- */

static bool library_is_stub(const char *path)
{
    return strstr(path, "/stubs/") ||
           (strlen(path) >= 6 && !strcmp(path + strlen(path) - 6, "/stubs"));
}

/* True if the search ends with this library. */
static bool search_take(struct search *search, void *handle, const char *found_by, bool mapped)
{
    char path[PATH_MAX];
    struct gg_library library = {.struct_size = sizeof library, .already_loaded = mapped};
    ggi_dynlib_path(handle, path);
    library.handle = handle;
    library.path = ggi_intern(path);
    library.found_by = found_by;
    if (!library_is_stub(path) || search->spec->flags & GG_LIBRARY_ONLY_MAPPED) {
        search->found = library;
        return true;
    }
    if (!search->stub.handle) {
        search->stub = library;
        ggi_probe_log_note(search->log, "%s is a stub for linking, not a driver: it was skipped",
                           path);
    }
    return false;
}

static bool search_try(struct search *search, const char *path, enum ggi_dynlib_mode mode,
                       const char *found_by)
{
    char error[1024];
    struct ggi_text why = GGI_TEXT(sizeof search->why);
    void *handle = ggi_dynlib_open(path, mode, error, sizeof error);
    if (handle) {
        ggi_probe_log_tried(search->log, path, "opened");
        ggi_log(GG_LOG_DEBUG, NULL, "%s: opened (%s)", path, found_by);
        return search_take(search, handle, found_by, mode == GGI_DYNLIB_MAPPED);
    }
    ggi_probe_log_tried(search->log, path, error);
    ggi_log(GG_LOG_DEBUG, NULL, "%s: %s", path, error);
    if (ggi_dynlib_explain(path, error, &why) && !search->why[0])
        memcpy(search->why, why.data, sizeof search->why);
    return false;
}

/* ---- the steps ---- */

static bool search_mapped_name(struct search *search, const char *name)
{
    char error[1024];
    void *handle = ggi_dynlib_open(name, GGI_DYNLIB_MAPPED, error, sizeof error);
    if (!handle)
        return false;
    ggi_probe_log_tried(search->log, name, "already loaded");
    return search_take(search, handle, "already loaded", true);
}

/* A library that the process has loaded comes first, since other code uses it. The soname also finds a renamed
 * file; the file name also finds a changed soname. */
static bool search_mapped(struct search *search)
{
    char *paths[COPIES];
    bool found = false;
    for (const char *const *name = search->spec->names; *name; name++)
        if (search_mapped_name(search, *name))
            return true;
    size_t count = search->spec->stem ? ggi_dynlib_mapped(search->spec->stem, paths, COPIES) : 0;
    for (size_t i = 0; i < count; i++) {
        found = found || search_mapped_name(search, paths[i]);
        free(paths[i]);
    }
    return found;
}

static bool search_directory(struct search *search, const char *directory, const char *found_by)
{
    if (library_is_stub(directory)) {
        ggi_probe_log_tried(search->log, directory, "skipped: stubs are for linking");
        return false;
    }
    for (const char *const *name = search->spec->names; *name; name++) {
        struct ggi_text path = GGI_TEXT(PATH_MAX);
        ggi_text_add(&path, "%s/%s", directory, *name);
        if (search_try(search, path.data, GGI_DYNLIB_VENDOR, found_by))
            return true;
    }
    return false;
}

static bool search_added_directories(struct search *search)
{
    if (!(search->spec->flags & GG_LIBRARY_ADDED_DIRECTORIES))
        return false;
    for (struct directory *d = atomic_load(&added_directories); d; d = atomic_load(&d->next))
        if (search_directory(search, d->path, "search directory"))
            return true;
    return false;
}

static bool search_names(struct search *search)
{
    for (const char *const *name = search->spec->names; *name; name++)
        if (search_try(search, *name, GGI_DYNLIB_VENDOR, "soname"))
            return true;
    return false;
}

/* Expand the variable in "$VAR/lib"; false if it is unset or not absolute. In a glob pattern the special
 * characters of the value are escaped. */
static bool search_expand(const char *text, bool pattern, char path[PATH_MAX])
{
    char variable[64];
    struct ggi_text out = ggi_text_begin(path, PATH_MAX);
    const char *value = "";
    if (*text == '$') {
        size_t length = strcspn(++text, "/");
        if (length >= sizeof variable)
            return false;
        memcpy(variable, text, length);
        variable[length] = 0;
        text += length;
        value = ggi_env_get(variable);
        if (!value || *value != '/')
            return false;
    }
    for (; *value; value++)
        ggi_text_add(&out, "%s%c", pattern && strchr("*?[\\", *value) ? "\\" : "", *value);
    ggi_text_add(&out, "%s", text);
    return path[0] == '/' && out.used < PATH_MAX;
}

static int search_newest_first(const void *left, const void *right)
{
    return strverscmp(*(char *const *)right, *(char *const *)left);
}

static bool search_pattern(struct search *search, const char *pattern)
{
    glob_t matches = {0};
    bool found = false;
    if (!glob(pattern, GLOB_NOSORT, NULL, &matches)) {
        qsort(matches.gl_pathv, matches.gl_pathc, sizeof *matches.gl_pathv, search_newest_first);
        for (size_t i = 0; i < matches.gl_pathc && !found; i++)
            found = search_directory(search, matches.gl_pathv[i], "directory");
    } else {
        ggi_probe_log_tried(search->log, pattern, "no such directory");
    }
    globfree(&matches);
    return found;
}

static bool search_directories(struct search *search)
{
    const char *const *at = search->spec->directories;
    for (; at && *at; at++) {
        char path[PATH_MAX];
        bool pattern = strchr(*at, '*') != NULL;
        if (!search_expand(*at, pattern, path))
            continue;
        if (pattern ? search_pattern(search, path) : search_directory(search, path, "directory"))
            return true;
    }
    return false;
}

static bool search_run(struct search *search)
{
    if (search_mapped(search))
        return true;
    if (search->spec->flags & GG_LIBRARY_ONLY_MAPPED)
        return false;
    if (search_added_directories(search))
        return true;
    if (!(search->spec->flags & GG_LIBRARY_NO_SYSTEM) &&
        (search_names(search) || search_directories(search)))
        return true;
    search->found = search->stub;
    return search->found.handle != NULL;
}

/* ---- the result ---- */

/* Each copy has its own state: handles of one are invalid in the other. */
static void search_note_copies(struct search *search)
{
    char *paths[COPIES], real[PATH_MAX];
    const char *stem = search->spec->stem;
    size_t count = stem ? ggi_dynlib_mapped(stem, paths, COPIES) : 0;
    for (size_t i = 0; i < count; i++) {
        const char *path = realpath(paths[i], real) ? real : paths[i];
        if (strcmp(path, search->found.path) != 0)
            ggi_probe_log_note(search->log,
                               "two copies of %s are loaded in this process: gpuglue uses %s, "
                               "other code uses %s; a handle of one may be invalid in the other",
                               stem, search->found.path, path);
        free(paths[i]);
    }
}

static gg_probe_status search_describe_absence(const struct search *search, struct ggi_text *reason)
{
    const struct gg_library_spec *spec = search->spec;
    if (search->why[0]) {
        ggi_text_add(reason, "%s", search->why);
        return GG_PROBE_LIBRARY_LOAD_FAILED;
    }
    const bool one = !spec->names[0] || !spec->names[1];
    for (const char *const *name = spec->names; *name; name++)
        ggi_text_add(reason, "%s%s", name > spec->names ? ", " : one ? "" : "none of ", *name);
    if (spec->flags & GG_LIBRARY_ONLY_MAPPED) {
        ggi_text_add(reason, " is %sloaded in this process", one ? "not " : "");
        return GG_PROBE_LIBRARY_NOT_FOUND;
    }
    if (spec->flags & GG_LIBRARY_NO_SYSTEM) {
        ggi_text_add(reason, " is %s in an added library directory",
                     one ? "neither loaded nor" : "loaded or");
        return GG_PROBE_LIBRARY_NOT_FOUND;
    }
    ggi_text_add(reason, " was %sfound: install the vendor's driver", one ? "not " : "");
    if (spec->variable)
        ggi_text_add(reason, ", or set %s to the library's absolute path", spec->variable);
    return GG_PROBE_LIBRARY_NOT_FOUND;
}

/* If the user names a library, no other is tried, even if it cannot be loaded. */
static gg_probe_status search_named(struct search *search, const char *value,
                                    struct ggi_text *reason)
{
    const char *variable = search->spec->variable;
    bool mapped_only = search->spec->flags & GG_LIBRARY_ONLY_MAPPED;
    char error[1024];
    ggi_text_add(reason, "%s=%s: ", variable, value);
    if (value[0] != '/') {
        ggi_probe_log_tried(search->log, value, "not an absolute path");
        ggi_text_add(reason, "expected the absolute path of a library");
        return GG_PROBE_LIBRARY_NOT_FOUND;
    }
    void *handle = ggi_dynlib_open(value, GGI_DYNLIB_MAPPED, error, sizeof error);
    bool mapped = handle != NULL;
    if (!handle && !mapped_only)
        handle = ggi_dynlib_open(value, GGI_DYNLIB_VENDOR, error, sizeof error);
    ggi_probe_log_tried(search->log, value, handle ? "opened" : error);
    if (handle) {
        if (!search_take(search, handle, "environment", mapped))
            search->found = search->stub;
        return GG_PROBE_AVAILABLE;
    }
    bool broken = ggi_dynlib_explain(value, error, reason);
    ggi_text_add(reason, "; no other location was searched: correct or unset %s", variable);
    return broken && !mapped_only ? GG_PROBE_LIBRARY_LOAD_FAILED : GG_PROBE_LIBRARY_NOT_FOUND;
}

/* The plugin's struct may be that of an older header. */
static void library_copy_out(struct gg_library *found, struct gg_library *out)
{
    size_t size = sizeof *found;
    if (out->struct_size && out->struct_size < size)
        size = out->struct_size;
    memcpy(out, found, size);
    out->struct_size = (uint32_t)size;
}

gg_probe_status ggi_library_open(const struct gg_library_spec *spec, struct gg_probe_log *log,
                                 struct gg_library *out, char *reason, size_t reason_size)
{
    struct search search = {.spec = spec, .log = log};
    struct ggi_text text = ggi_text_begin(reason, reason_size);
    gg_probe_status status = GG_PROBE_AVAILABLE;
    const char *value = spec->variable ? ggi_env_get(spec->variable) : NULL;
    if (value && *value)
        status = search_named(&search, value, &text);
    else if (!search_run(&search))
        status = search_describe_absence(&search, &text);
    if (status != GG_PROBE_AVAILABLE)
        return status;
    ggi_text_begin(reason, reason_size); /* what was tried does not matter any more */
    search_note_copies(&search);
    library_copy_out(&search.found, out);
    return GG_PROBE_AVAILABLE;
}

gg_probe_status ggi_library_resolve(const struct gg_library *library,
                                    const struct gg_symbol *symbols, size_t count, void *target,
                                    char *reason, size_t reason_size)
{
    const char *missing = NULL;
    size_t more = 0;
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(library->handle, symbols[i].name);
        memcpy((char *)target + symbols[i].offset, &symbol, sizeof symbol);
        if (symbol || symbols[i].need == GG_OPTIONAL)
            continue;
        more += missing != NULL;
        missing = missing ? missing : symbols[i].name;
    }
    if (!missing)
        return GG_PROBE_AVAILABLE;
    struct ggi_text text = ggi_text_begin(reason, reason_size);
    ggi_text_add(&text, "%s lacks the function %s", library->path, missing);
    if (more)
        ggi_text_add(&text, " and %zu more", more);
    ggi_text_add(&text, ", which gpuglue needs: the driver is too old, or this is another library");
    return GG_PROBE_SYMBOL_MISSING;
}
