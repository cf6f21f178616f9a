/* log.c: log lines: to stderr, to the file of GPUGLUE_LOG=level[:absolute path], or to the program's sink. */
#include "base/env.h"
#include "base/log.h"
#include "base/process_state.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define UNREAD (-1)
#define NOWHERE (-1)

static const char *const log_level_names[] = {"error", "warn", "info", "debug", "trace"};

static _Atomic(int) log_threshold = UNREAD;
static _Atomic(int) log_target = STDERR_FILENO;
static pthread_once_t log_once = PTHREAD_ONCE_INIT;

/* Guards the sink; not held while the sink is called. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
GGI_RESET_IN_CHILD(log_lock)
static void (*log_sink)(int32_t level, const char *line, void *user);
static void *log_sink_user;

static const char *log_rank(void)
{
    static const char *const variables[] = {"PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                            "SLURM_PROCID"};
    const char *rank = NULL;
    for (size_t i = 0; !rank && i < sizeof variables / sizeof variables[0]; i++)
        rank = ggi_env_get(variables[i]);
    return rank;
}

/* UTC: local time would take a lock, which a forked child may never get. */
static void log_add_origin(struct ggi_text *line)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_REALTIME, &now);
    const int second = (int)(now.tv_sec % 86400);
    const char *rank = log_rank();
    ggi_text_add(line, "%02d:%02d:%02d.%06ldZ %ld.%ld %s%.20s%s", second / 3600, second / 60 % 60,
                 second % 60, now.tv_nsec / 1000, (long)getpid(), syscall(SYS_gettid),
                 rank ? "rank " : "", rank ? rank : "", rank ? " " : "");
}

/* One write call for each line, so that lines of several threads and processes do not mix. */
static void log_write(const char *line)
{
    struct ggi_text whole = GGI_TEXT(1200);
    if (atomic_load(&log_threshold) >= GG_LOG_INFO) /* warnings alone are for people */
        log_add_origin(&whole);
    ggi_text_add(&whole, "gpuglue: %s\n", line);
    ssize_t written = write(atomic_load(&log_target), whole.data, whole.used);
    (void)written; /* there is nowhere to report a failure */
}

static int log_level_of(const char *word, size_t length)
{
    for (int i = 0; i <= GG_LOG_TRACE; i++)
        if (strlen(log_level_names[i]) == length && !strncasecmp(word, log_level_names[i], length))
            return i;
    return NOWHERE;
}

static void log_open_file(const char *path, const char *value)
{
    struct ggi_text text = GGI_TEXT(512);
    int file = NOWHERE;
    if (path[0] == '/')
        file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
    if (file >= 0) {
        atomic_store(&log_target, file);
        return;
    }
    if (path[0] == '/')
        ggi_text_add(&text, "warn: GPUGLUE_LOG=%s: the file cannot be opened: %s", value,
                     strerror(errno));
    else
        ggi_text_add(&text, "warn: GPUGLUE_LOG=%s: the path is not absolute", value);
    ggi_text_add(&text, "; logging to stderr");
    log_write(text.data);
}

static void log_read_variable(void)
{
    struct ggi_text text = GGI_TEXT(512);
    const char *value = ggi_env_get("GPUGLUE_LOG");
    const char *colon = value ? strchr(value, ':') : NULL;
    int level = GG_LOG_WARN;
    if (value && *value)
        level = log_level_of(value, colon ? (size_t)(colon - value) : strlen(value));
    if (level == NOWHERE) {
        ggi_text_add(&text,
                     "warn: GPUGLUE_LOG=%s is not understood: expected error, warn, info, debug or "
                     "trace, optionally followed by ':' and an absolute path",
                     value);
        log_write(text.data);
        level = GG_LOG_WARN;
    }
    if (colon)
        log_open_file(colon + 1, value);
    atomic_store(&log_threshold, level);
}

bool ggi_log_on(int32_t level)
{
    int limit = atomic_load_explicit(&log_threshold, memory_order_relaxed);
    if (limit == UNREAD) {
        pthread_once(&log_once, log_read_variable);
        limit = atomic_load(&log_threshold);
    }
    return level <= limit;
}

void gg_set_log_sink(void (*function)(int32_t level, const char *line, void *user), void *user)
{
    pthread_mutex_lock(&log_lock);
    log_sink = function;
    log_sink_user = user;
    pthread_mutex_unlock(&log_lock);
}

void ggi_log(int32_t level, const char *backend, const char *format, ...)
{
    struct ggi_text line = GGI_TEXT(1024);
    va_list arguments;
    if (level < GG_LOG_ERROR || level > GG_LOG_TRACE || !ggi_log_on(level))
        return;
    ggi_text_add(&line, "%s: %s%s", log_level_names[level], backend ? backend : "",
                 backend ? ": " : "");
    va_start(arguments, format);
    ggi_text_addv(&line, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&log_lock);
    void (*function)(int32_t, const char *, void *) = log_sink;
    void *user = log_sink_user;
    pthread_mutex_unlock(&log_lock);
    if (function)
        function(level, line.data, user);
    else
        log_write(line.data);
}
