/* search.h: a search for a small library under all that a plugin can ask for. */
#ifndef GPUGLUE_TESTS_SEARCH_H
#define GPUGLUE_TESTS_SEARCH_H

#include "inside.h"

#include "backends.h"

#include <dlfcn.h>

#define VARIABLE "GPUGLUE_FIXTURE_LIBRARY"

static const char *const all_names[] = {"libfixture.so.3", "libfixture.so.2", "libfixture.so.1",
                                        NULL};

/* One search: what it was asked, what it answered. */
static struct gg_library_spec spec = {
    .struct_size = sizeof spec,
    .names = all_names,
    .variable = VARIABLE,
    .stem = "libfixture",
};
static struct gg_probe_log tried;
static struct gg_library found = {.struct_size = sizeof found};
static char reason[512];

static inline gg_probe_status search(void)
{
    return ggi_host_api()->library_open(&spec, &tried, &found, reason, sizeof reason);
}

static inline void search_in(const char *first, const char *second)
{
    static const char *list[3];
    list[0] = first;
    list[1] = second;
    spec.directories = list;
}

static inline int identity(void)
{
    int (*function)(void) = NULL;
    void *symbol = dlsym(found.handle, "fixture_identity");
    memcpy(&function, &symbol, sizeof function);
    return function ? function() : -1;
}

static inline const char *outcome(const char *path)
{
    for (size_t i = 0; i < tried.tried_count; i++)
        if (!strcmp(tried.tried[i].path, path))
            return tried.tried[i].outcome;
    return "not tried";
}

/* Version @p version of the library as @p name in @p directory. */
static inline const char *vendor(int version, const char *directory, const char *name)
{
    char from[32];
    snprintf(from, sizeof from, "libfixture_vendor%d.so", version);
    return copy_fixture(from, joined(directory, name));
}

static inline void *map(const char *path)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    CHECK(handle != NULL);
    return handle;
}

/* The loader reads LD_LIBRARY_PATH when a process starts, so such a case goes on in a new one. */
static inline void restart(const char *name)
{
    setenv("LD_LIBRARY_PATH", inside("path"), 1);
    setenv("FIXTURE_CASE", name, 1);
    setenv("FIXTURE_FOLDER", folder, 1);
    execl("/proc/self/exe", "restarted", fixtures, (char *)NULL);
    _exit(127);
}
static inline bool restarted(const char *name)
{
    const char *given = getenv("FIXTURE_CASE");
    if (!given || strcmp(given, name) != 0)
        return false;
    snprintf(folder, sizeof folder, "%s", getenv("FIXTURE_FOLDER"));
    return true;
}

#endif
