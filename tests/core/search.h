/* search.h: a search for a small library, with everything that a plugin can request. */
#ifndef GPUGLUE_TESTS_SEARCH_H
#define GPUGLUE_TESTS_SEARCH_H

#include "inside.h"

#include "loader/loader.h"

#include <dlfcn.h>

#define VARIABLE "GPUGLUE_FIXTURE_LIBRARY"

static const char *const all_names[] = {"libfixture.so.3", "libfixture.so.2", "libfixture.so.1",
                                        NULL};

/* One search: its request and its result. */
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

/* The loader reads LD_LIBRARY_PATH when a process starts, so such a case continues in a new one. */
static inline void restart(const char *scenario)
{
    setenv("LD_LIBRARY_PATH", inside("path"), 1);
    setenv("FIXTURE_DIRECTORY", directory, 1);
    become_scenario(scenario);
}
static inline void use_directory_of_case(void)
{
    snprintf(directory, sizeof directory, "%s", getenv("FIXTURE_DIRECTORY"));
}

#endif
