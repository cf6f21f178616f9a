/* session.c: gg_trace_start, gg_trace_stop and GPUGLUE_TRACE. */
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define PATH_ROOM 4096
#define NAME_ROOM 64
#define DEVICE "device:" /* GPUGLUE_TRACE=device:PATH measures on the device */

static pthread_mutex_t session_lock = PTHREAD_MUTEX_INITIALIZER;
GGI_RESET_IN_CHILD(session_lock)
static FILE *session_file;
static char session_path[PATH_ROOM];
static pthread_once_t session_once = PTHREAD_ONCE_INIT;

/* ---- the path ---- */

static gg_status session_add_variable(struct ggi_text *out, const char *name, size_t length)
{
    char copy[NAME_ROOM] = "";
    memcpy(copy, name, length < sizeof copy ? length : sizeof copy - 1);
    const char *value = ggi_env_get(copy);
    if (!value)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "gg_trace_start: the path names the variable %s, which is not set", copy);
    ggi_text_add(out, "%s", value);
    return GG_OK;
}

static void session_add_host(struct ggi_text *out)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    ggi_text_add(out, "%s", host);
}

/* *at points to a percent sign, and is moved past the sequence that begins there. */
static gg_status session_add_special(struct ggi_text *out, const char **at)
{
    const char *special = *at,
               *end = special[1] == 'q' && special[2] == '{' ? strchr(special, '}') : NULL;
    *at = end ? end + 1 : special + 2;
    if (end)
        return session_add_variable(out, special + 3, (size_t)(end - special - 3));
    if (special[1] == 'p')
        ggi_text_add(out, "%ld", (long)getpid());
    else if (special[1] == 'h')
        session_add_host(out);
    else if (special[1] == '%')
        ggi_text_add(out, "%%");
    else
        return ggi_fail(
            GG_ERR_INVALID_ARGUMENT,
            "gg_trace_start: the path contains \"%.2s\": expected %%p (process id), %%h (host), "
            "%%q{VARIABLE} or %%%%",
            special);
    return GG_OK;
}

static gg_status session_expand(const char *pattern, struct ggi_text *out)
{
    gg_status status = GG_OK;
    for (const char *at = pattern; *at && !status;) {
        if (*at == '%')
            status = session_add_special(out, &at);
        else
            ggi_text_add(out, "%c", *at++);
    }
    if (!status && out->used >= out->size)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "gg_trace_start: the path has more than %d bytes",
                        PATH_ROOM - 1);
    return status;
}

/* ---- start and stop: with the lock held ---- */

static gg_status session_open(const char *path)
{
    struct ggi_text text = ggi_text_begin(session_path, sizeof session_path);
    gg_status status = session_expand(path, &text);
    if (status)
        return status;
    int file = open(session_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0644);
    session_file = file < 0 ? NULL : fdopen(file, "w");
    if (session_file)
        return GG_OK;
    status = ggi_fail(GG_ERR_INVALID_ARGUMENT, "gg_trace_start: %s cannot be created: %s",
                      session_path, strerror(errno));
    if (file >= 0)
        close(file);
    return status;
}

static gg_status session_start(const char *path, uint32_t flags)
{
    if (flags & ~(uint32_t)GG_TRACE_DEVICE_TIMES)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "gg_trace_start: flags 0x%x contain an unknown bit", (unsigned)flags);
    if (ggi_trace_session_is_open())
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "gg_trace_start: a recording to %s is in progress: stop it first",
                        session_path);
    if (session_file) /* the parent's, before a fork: its buffer is empty until the stop */
        fclose(session_file);
    session_file = NULL;
    ggi_watch_forks();
    gg_status status = session_open(path);
    if (!status)
        ggi_trace_session_begin(flags & GG_TRACE_DEVICE_TIMES);
    return status;
}

static gg_status session_stop(void)
{
    uint64_t dropped;
    if (!ggi_trace_session_is_open())
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "gg_trace_stop: this process is not recording");
    const struct ggi_trace_thread *threads = ggi_trace_session_end(&dropped);
    ggi_trace_write(session_file, threads, dropped);
    ggi_trace_session_free();
    bool good = !ferror(session_file);
    good = !fclose(session_file) && good;
    session_file = NULL;
    if (dropped)
        ggi_log(GG_LOG_WARN, NULL, "%s lacks %llu operations: the recording was full", session_path,
                (unsigned long long)dropped);
    return good ? GG_OK
                : ggi_fail(GG_ERR_INVALID_ARGUMENT, "gg_trace_stop: %s cannot be written: %s",
                           session_path, strerror(errno));
}

gg_status gg_trace_start(const char *path, uint32_t flags)
{
    pthread_mutex_lock(&session_lock);
    gg_status status = session_start(path, flags);
    pthread_mutex_unlock(&session_lock);
    return status;
}

gg_status gg_trace_stop(void)
{
    pthread_mutex_lock(&session_lock);
    gg_status status = session_stop();
    pthread_mutex_unlock(&session_lock);
    return status;
}

/* ---- GPUGLUE_TRACE ---- */

static void session_read_variable(void)
{
    const char *value = ggi_env_get("GPUGLUE_TRACE");
    if (!value || !*value)
        return;
    bool device = !strncmp(value, DEVICE, strlen(DEVICE));
    if (gg_trace_start(device ? value + strlen(DEVICE) : value, device ? GG_TRACE_DEVICE_TIMES : 0))
        ggi_log(GG_LOG_WARN, NULL, "GPUGLUE_TRACE=%s: nothing is recorded: %s", value,
                ggi_error_record()->error.message);
}

void ggi_trace_init(void)
{
    pthread_once(&session_once, session_read_variable);
}

void ggi_trace_exit(void)
{
    if (ggi_trace_session_is_open() && gg_trace_stop())
        ggi_log(GG_LOG_ERROR, NULL, "%s", ggi_error_record()->error.message);
}
