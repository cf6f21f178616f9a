/* env.c: the GPUGLUE_ variables of the environment: their names and their values. */
#include "base/env.h"
#include "base/log.h"
#include "base/text.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "GPUGLUE_"
#define LIBRARY "_LIBRARY" /* GPUGLUE_X_LIBRARY is a variable of backend or compiler x */
#define NAME_ROOM (GGI_DISTANCE_MAX + 1u)
#define UNREAD INT64_MIN
#define UNSET (INT64_MIN + 1)

/* The value is one of the words, or a number if there are no words. */
static const struct env_row {
    const char *name;
    const char *words[4];
    int64_t least, most;
    const char *expected;
} env_rows[GGI_ENV_VALUES] = {
    [GGI_ENV_ALLOCATOR] = {"GPUGLUE_ALLOCATOR", .words = {"pool", "async", "direct"},
                           .expected = "pool, async or direct"},
    [GGI_ENV_COPY_THREADS] = {"GPUGLUE_COPY_THREADS", .least = 1, .most = GGI_COPY_THREADS_MAX,
                              .expected = "a number of threads from 1 to 64"},
    [GGI_ENV_DEBUG] = {"GPUGLUE_DEBUG", .words = {"sync"}, .expected = "sync"},
    [GGI_ENV_RESULT_CACHE] = {"GPUGLUE_RESULT_CACHE", .most = INT64_MAX >> 20,
                              .expected = "a number of MiB"},
    [GGI_ENV_STAGING] = {"GPUGLUE_STAGING", .words = {"auto", "always", "never"},
                         .expected = "auto, always or never"},
};

/* Text values, which the code that reads them parses itself. */
static const char *const env_texts[] = {
    "GPUGLUE_BACKEND", "GPUGLUE_DEVICE", "GPUGLUE_LOG", "GPUGLUE_PLUGIN_PATH", "GPUGLUE_TRACE",
    /* Read by the host backend. */
    "GPUGLUE_HOST_DEVICES", "GPUGLUE_HOST_THREADS",
    /* Read by the Python package. */
    "GPUGLUE_CACHE", "GPUGLUE_CACHE_DIR", "GPUGLUE_CACHE_SIZE", "GPUGLUE_COMM_PORT", "GPUGLUE_CXX",
    "GPUGLUE_OCLOC",
    /* Read by tests. */
    "GPUGLUE_COMPILERS", "GPUGLUE_GFX", "GPUGLUE_INTEL", "GPUGLUE_MIRROR", "GPUGLUE_PYTHON",
    "GPUGLUE_REQUIRE", "GPUGLUE_ROOTS", "GPUGLUE_SWEEP_BESIDE", "GPUGLUE_SWEEP_CALLS",
    "GPUGLUE_SWEEP_VERBOSE", "GPUGLUE_TOGETHER", "GPUGLUE_WHEEL"};
#define ENV_NAMES (GGI_ENV_VALUES + sizeof env_texts / sizeof *env_texts)

static const char *env_name(size_t at)
{
    return at < GGI_ENV_VALUES ? env_rows[at].name : env_texts[at - GGI_ENV_VALUES];
}

/* ---- values ---- */

static bool env_parse_number(const struct env_row *row, const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return !*end && !errno && *out >= row->least && *out <= row->most;
}

static bool env_parse(const struct env_row *row, const char *text, int64_t *out)
{
    if (!row->words[0])
        return env_parse_number(row, text, out);
    for (*out = 0; row->words[*out]; ++*out)
        if (!strcmp(text, row->words[*out]))
            return true;
    return false;
}

static int64_t env_read(enum ggi_env_variable variable, _Atomic(int64_t) *cached)
{
    const struct env_row *row = &env_rows[variable];
    const char *text = ggi_env_get(row->name);
    int64_t unread = UNREAD, value = UNSET;
    bool good = !text || !*text || env_parse(row, text, &value);
    if (!good)
        value = UNSET;
    if (!atomic_compare_exchange_strong(cached, &unread, value))
        return unread; /* another thread was first, and has logged the warning */
    if (!good)
        ggi_log(GG_LOG_WARN, NULL, "%s=%.64s is not understood: expected %s; using the default",
                row->name, text, row->expected);
    return value;
}

int64_t ggi_env_value(enum ggi_env_variable variable, int64_t fallback)
{
    static _Atomic(int64_t) values[GGI_ENV_VALUES] = {UNREAD, UNREAD, UNREAD, UNREAD, UNREAD};
    _Static_assert(GGI_ENV_VALUES == 5, "each value starts as UNREAD");
    int64_t value = atomic_load_explicit(&values[variable], memory_order_relaxed);
    if (value == UNREAD)
        value = env_read(variable, &values[variable]);
    return value == UNSET ? fallback : value;
}

/* ---- names ---- */

static bool env_is_known(const char *name)
{
    size_t length = strlen(name), suffix = strlen(LIBRARY);
    for (size_t i = 0; i < ENV_NAMES; i++)
        if (!strcmp(name, env_name(i)))
            return true;
    if (length > suffix && !strcmp(name + length - suffix, LIBRARY))
        return true;
    return !strncmp(name, PREFIX "TEST_", 13) || !strncmp(name, PREFIX "SIM_", 12);
}

/* The known name most similar to @p name; NULL if more than 3, or a third, of its letters differ. @p library
 * is a buffer for a name. */
static const char *env_nearest(const char *name, char library[NAME_ROOM])
{
    struct ggi_text text = ggi_text_begin(library, NAME_ROOM);
    ggi_text_add(&text, PREFIX "%.*s" LIBRARY, (int)strcspn(name + strlen(PREFIX), "_"),
                 name + strlen(PREFIX));
    const char *best = library;
    size_t distance = text.used < NAME_ROOM ? ggi_text_distance(name, library) : SIZE_MAX;
    for (size_t i = 0; i < ENV_NAMES; i++) {
        size_t other = ggi_text_distance(name, env_name(i));
        if (other < distance) {
            distance = other;
            best = env_name(i);
        }
    }
    return distance <= ggi_text_tolerance(name + strlen(PREFIX)) ? best : NULL;
}

static void env_check_name(const char *name)
{
    char library[NAME_ROOM];
    if (env_is_known(name))
        return;
    const char *nearest = strlen(name) < NAME_ROOM ? env_nearest(name, library) : NULL;
    ggi_log(GG_LOG_WARN, NULL, "%.64s is not a variable of gpuglue%s%s%s", name,
            nearest ? ": did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

void ggi_env_check_names(void)
{
    static atomic_flag checked = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&checked))
        return;
    for (char **at = environ; at && *at; at++) {
        const size_t prefix = strlen(PREFIX), length = strcspn(*at, "=");
        if (length <= prefix || strncmp(*at, PREFIX, prefix) != 0)
            continue;
        char *name = strndup(*at, length);
        if (name && ggi_env_get(name)) /* NULL in a set-user-id process */
            env_check_name(name);
        free(name);
    }
}
