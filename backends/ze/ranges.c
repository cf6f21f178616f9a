/* ranges.c: ranges for Intel's profilers, by ITT: a collector that the profiler names fills in a table of functions.
 *
 * The program passes the collector a list of names, each with the place of a pointer. The collector stores its own
 * functions in these places. Layouts: ittnotify_config.h of Intel's ittapi, version 3. */
#include "ze.h"

#include <pthread.h>

enum { ITT_MAJOR = 3, ITT_GROUPS_ALL = -1, ITT_GROUP_STRUCTURE = 1 << 12 };

struct itt_id {
    uint64_t d1, d2, d3;
};
struct itt_domain {
    volatile int flags; /* 0: the collector ignores the domain now */
    const char *name;   /* other members follow */
};

typedef void (*itt_function)(void);
struct itt_row {
    const char *name;
    itt_function *place;
    itt_function before,
        none; /* what the place had; what it has if the collector has no such function */
    int group;
};

/* What the collector sees of the program. */
struct itt_global {
    unsigned char magic[8];
    unsigned long major, minor, build;
    volatile long initialized, mutex_initialized, atomic_counter;
    pthread_mutex_t mutex;
    void *library, *error_handler;
    const char **library_path;
    struct itt_row *rows;
    struct itt_global *next;
    void *threads, *domains, *strings;
    int state;
    void *counters;
    unsigned events;
    void *histograms, *counter_metadata;
};

static itt_function itt_domain_create, itt_string_create, itt_task_begin, itt_task_end;

static void itt_nothing(void) {}

static struct itt_row itt_rows[] = {
    {"__itt_domain_create", &itt_domain_create, NULL, NULL, ITT_GROUP_STRUCTURE},
    {"__itt_string_handle_create", &itt_string_create, NULL, NULL, ITT_GROUP_STRUCTURE},
    {"__itt_task_begin", &itt_task_begin, itt_nothing, NULL, ITT_GROUP_STRUCTURE},
    {"__itt_task_end", &itt_task_end, itt_nothing, NULL, ITT_GROUP_STRUCTURE},
    {NULL, NULL, NULL, NULL, 0},
};

static struct itt_global itt_global = {
    .magic = {0xED, 0xAB, 0xAB, 0xEC, 0x0D, 0xEE, 0xDA, 0x30},
    .major = ITT_MAJOR,
    .mutex_initialized = 1,
    .mutex = PTHREAD_MUTEX_INITIALIZER,
    .rows = itt_rows,
};

static const struct itt_domain *itt_domain;

/* The collector keeps one handle for equal texts. */
static int itt_push(const char *name)
{
    void *(*const string)(const char *) = (void *(*)(const char *))itt_string_create;
    void (*const begin)(const struct itt_domain *, struct itt_id, struct itt_id, void *) =
        (void (*)(const struct itt_domain *, struct itt_id, struct itt_id, void *))itt_task_begin;
    const struct itt_id none = {0, 0, 0};
    if (itt_domain->flags)
        begin(itt_domain, none, none, string(name));
    return 0;
}

static int itt_pop(void)
{
    void (*const end)(const struct itt_domain *) = (void (*)(const struct itt_domain *))itt_task_end;
    if (itt_domain->flags)
        end(itt_domain);
    return 0;
}

struct itt_collector {
    void (*start)(struct itt_global *global, int groups);
};

static bool itt_start(const struct gg_library *library, const struct itt_collector *collector)
{
    itt_global.library = library->handle;
    collector->start(&itt_global, ITT_GROUPS_ALL);
    itt_global.initialized = 1;
    if (!itt_domain_create || !itt_string_create || !itt_task_begin || !itt_task_end)
        return false;
    itt_domain = ((const struct itt_domain *(*)(const char *))itt_domain_create)("gpuglue");
    return itt_domain != NULL;
}

gg_status ze_range_tool(struct gg_range_tool *out)
{
    static const char *const names[] = {NULL};
    static const struct gg_library_spec spec = {.struct_size = sizeof spec,
                                                .flags = GG_LIBRARY_NO_SYSTEM,
                                                .names = names,
                                                .variable = "INTEL_LIBITTNOTIFY64"};
    static const struct gg_symbol symbol = {"__itt_api_init", offsetof(struct itt_collector, start),
                                            GG_REQUIRED};
    const char *named = ze_api->get_env(spec.variable);
    struct gg_library library = {.struct_size = sizeof library};
    struct itt_collector collector = {NULL};
    char reason[512] = "it has no functions for tasks";
    if (!named || !*named)
        return GG_OK;
    if (ze_api->library_open(&spec, NULL, &library, reason, sizeof reason) ||
        ze_api->library_resolve(&library, &symbol, 1, &collector, reason, sizeof reason) ||
        !itt_start(&library, &collector)) {
        ze_api->log(GG_LOG_WARN, "ze", "no ranges for profilers: INTEL_LIBITTNOTIFY64=%s: %s",
                    named, reason);
        return GG_OK;
    }
    out->push = itt_push;
    out->pop = itt_pop;
    return GG_OK;
}
