/* log.c: log lines: GPUGLUE_LOG=level[:absolute path], stderr by default, or the program's sink. */
#include "internal.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define UNREAD (-1)
#define NOWHERE (-1)

static const char *const words[] = {"error", "warn", "info", "debug", "trace"};

static _Atomic(int) threshold = UNREAD;
static _Atomic(int) target = STDERR_FILENO;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the pair; never held in a call to it */
static void (*sink)(int32_t level, const char *line, void *user);
static void *sink_user;

/* One call, so that lines of several threads and processes stay whole. */
static void write_line(const char *line)
{
    char whole[1100];
    struct ggi_text text;
    ggi_text_begin(&text, whole, sizeof whole - 1);
    ggi_text_add(&text, "gpuglue: %s", line);
    size_t length = strlen(whole);
    whole[length++] = '\n';
    ssize_t written = write(atomic_load(&target), whole, length);
    (void)written; /* there is nobody to tell */
}

static int level_of(const char *word, size_t length)
{
    for (int i = 0; i <= GG_LOG_TRACE; i++)
        if (strlen(words[i]) == length && !strncasecmp(word, words[i], length))
            return i;
    return NOWHERE;
}

static void open_file(const char *path, const char *value)
{
    char line[512];
    struct ggi_text text;
    int file = NOWHERE;
    if (path[0] == '/')
        file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
    if (file >= 0) {
        atomic_store(&target, file);
        return;
    }
    ggi_text_begin(&text, line, sizeof line);
    if (path[0] == '/')
        ggi_text_add(&text, "warn: GPUGLUE_LOG=%s: the file cannot be opened: %s", value,
                     strerror(errno));
    else
        ggi_text_add(&text, "warn: GPUGLUE_LOG=%s: the path is not absolute", value);
    ggi_text_add(&text, "; logging to stderr");
    write_line(line);
}

static void read_variable(void)
{
    char line[512];
    struct ggi_text text;
    const char *value = secure_getenv("GPUGLUE_LOG");
    const char *colon = value ? strchr(value, ':') : NULL;
    int level = GG_LOG_WARN;
    ggi_reset_in_child(&lock);
    if (value && *value)
        level = level_of(value, colon ? (size_t)(colon - value) : strlen(value));
    if (level == NOWHERE) {
        ggi_text_begin(&text, line, sizeof line);
        ggi_text_add(&text,
                     "warn: GPUGLUE_LOG=%s is not understood: expected error, warn, info, debug or "
                     "trace, and perhaps ':' and an absolute path",
                     value);
        write_line(line);
        level = GG_LOG_WARN;
    }
    if (colon)
        open_file(colon + 1, value);
    atomic_store(&threshold, level);
}

bool ggi_log_on(int32_t level)
{
    int limit = atomic_load_explicit(&threshold, memory_order_relaxed);
    if (limit == UNREAD) {
        pthread_once(&once, read_variable);
        limit = atomic_load(&threshold);
    }
    return level <= limit;
}

void gg_set_log_sink(void (*function)(int32_t level, const char *line, void *user), void *user)
{
    ggi_log_on(GG_LOG_ERROR); /* the lock is to be known to life.c */
    pthread_mutex_lock(&lock);
    sink = function;
    sink_user = user;
    pthread_mutex_unlock(&lock);
}

void ggi_log(int32_t level, const char *backend, const char *format, ...)
{
    char line[1024];
    struct ggi_text text;
    va_list arguments;
    if (level < GG_LOG_ERROR || level > GG_LOG_TRACE || !ggi_log_on(level))
        return;
    ggi_text_begin(&text, line, sizeof line);
    ggi_text_add(&text, "%s: %s%s", words[level], backend ? backend : "", backend ? ": " : "");
    va_start(arguments, format);
    ggi_text_addv(&text, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&lock);
    void (*function)(int32_t, const char *, void *) = sink;
    void *user = sink_user;
    pthread_mutex_unlock(&lock);
    if (function)
        function(level, line, user);
    else
        write_line(line);
}
