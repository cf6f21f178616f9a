/* current.c: this thread's record, its current device and stream, and the scopes that change them. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static _Thread_local struct ggi_thread *mine;
static struct ggi_thread orphan; /* shared by threads for which there was no memory */
static pthread_key_t at_exit_key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

/* Scopes may outlive their thread (a generator does): they then belong to nobody. */
static void thread_gone(void *pointer)
{
    struct ggi_thread *thread = pointer;
    struct gg_scope *scope = thread->scope, *outer;
    for (; scope; scope = outer) {
        outer = scope->outer; /* once it is nobody's, another thread may leave and free it */
        atomic_store(&scope->thread, NULL);
    }
    mine = NULL;
    free(thread);
}

static void make_key(void)
{
    pthread_key_create(&at_exit_key, thread_gone);
}

struct ggi_thread *ggi_thread(void)
{
    if (mine)
        return mine;
    pthread_once(&key_once, make_key);
    struct ggi_thread *thread = calloc(1, sizeof *thread);
    if (!thread)
        return &orphan;
    pthread_setspecific(at_exit_key, thread);
    mine = thread;
    return thread;
}

/* ---- the current device ---- */

/* "name:1" names a backend; "1", "pci:…" and "uuid:…" do not. */
static size_t backend_in(const char *text)
{
    size_t length = strcspn(text, ":");
    bool ordinal = text[0] >= '0' && text[0] <= '9';
    bool address = !strncasecmp(text, "pci:", 4) || !strncasecmp(text, "uuid:", 5);
    return ordinal || address ? 0 : length;
}

/* Whether a list such as "^host,other" has the first @p length characters of @p name in it. */
static bool lists(const char *list, const char *name, size_t length)
{
    while (*list) {
        list += strspn(list, "^, \t");
        size_t word = strcspn(list, ", \t");
        if (word == length && !strncasecmp(list, name, length))
            return true;
        list += word;
    }
    return false;
}

static gg_status contradiction(const char *device, const char *chosen)
{
    return ggi_fail(
        GG_ERR_INVALID_ARGUMENT,
        "GPUGLUE_DEVICE=%s names another backend than GPUGLUE_BACKEND=%s gives: change one "
        "of them, or write the ordinal alone",
        device, chosen);
}

/* A GPUGLUE_DEVICE with a backend's name that GPUGLUE_BACKEND rules out is a contradiction. */
static gg_status check_agreement(const char *text)
{
    const char *chosen = ggi_host_api()->get_env("GPUGLUE_BACKEND");
    size_t length = backend_in(text);
    struct gg_backend *backend;
    if (!length || !chosen || !chosen[0] || !strcasecmp(chosen, "auto"))
        return GG_OK;
    if (chosen[0] == '^')
        return lists(chosen, text, length) ? contradiction(text, chosen) : GG_OK;
    gg_status status = ggi_backend_default(&backend);
    if (status)
        return status;
    if (strlen(backend->name) == length && !strncasecmp(backend->name, text, length))
        return GG_OK;
    return contradiction(text, chosen);
}

/* The device that GPUGLUE_DEVICE names; NULL in *out where it is not set. */
static gg_status device_of_environment(gg_device **out)
{
    const char *text = ggi_host_api()->get_env("GPUGLUE_DEVICE");
    *out = NULL;
    if (!text || !text[0])
        return GG_OK;
    gg_status status = check_agreement(text);
    if (status)
        return status;
    status = gg_device_find(text, out);
    if (!status)
        return GG_OK;
    struct gg_error why = {.struct_size = sizeof why};
    gg_last_error(&why);
    return ggi_fail(status, "GPUGLUE_DEVICE=%s: %s", text, why.message);
}

/* What the environment says is read once for each default backend, since gg_use_backend may change
 * that; afterwards it costs two loads. */
static struct {
    pthread_mutex_t lock;
    _Atomic(struct gg_backend *) backend;
    _Atomic(gg_device *) device;
} environment = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t environment_once = PTHREAD_ONCE_INIT;

static void survive_forks(void)
{
    ggi_reset_in_child(&environment.lock);
}

static gg_status read_environment(struct gg_backend *backend)
{
    gg_device *device;
    gg_status status = device_of_environment(&device);
    if (status)
        return status;
    pthread_once(&environment_once, survive_forks);
    pthread_mutex_lock(&environment.lock);
    atomic_store(&environment.device, device);
    atomic_store(&environment.backend, backend);
    pthread_mutex_unlock(&environment.lock);
    return GG_OK;
}

/* An integrated GPU is nobody's first choice beside another one, wherever the vendor counts it. */
static int32_t first_choice(const struct gg_backend *backend)
{
    for (int32_t i = 0; i < backend->device_count; i++)
        if (!(backend->devices[i].flags & GG_DEVICE_INTEGRATED))
            return i;
    return 0;
}

static gg_status ask_vendor(struct gg_backend *backend, gg_device **out)
{
    int32_t ordinal = backend->ops.device_current ? backend->ops.device_current() : -1;
    if (ordinal < 0 || ordinal >= backend->device_count)
        ordinal = first_choice(backend);
    if (!backend->device_count)
        return ggi_fail(GG_ERR_NO_SUCH_DEVICE, "backend \"%s\" has no device", backend->name);
    *out = &backend->devices[ordinal];
    return GG_OK;
}

static gg_status default_device(gg_device **out)
{
    struct gg_backend *backend = ggi_backend_decided();
    gg_status status;
    if (!backend) {
        status = ggi_backend_default(&backend);
        if (status)
            return status;
    }
    if (atomic_load(&environment.backend) != backend) {
        status = read_environment(backend);
        if (status)
            return status;
    }
    gg_device *device = atomic_load(&environment.device);
    if (!device)
        return ask_vendor(backend, out);
    *out = device;
    return GG_OK;
}

gg_status gg_current_device(gg_device **out)
{
    struct ggi_thread *thread = mine;
    gg_status status;
    gg_device *device = NULL;
    if (thread && thread->scope)
        device = thread->scope->device;
    else if (thread && thread->used)
        device = thread->used;
    if (!device) {
        status = default_device(&device);
        if (status)
            return status;
    }
    status = ggi_check(device);
    if (status)
        return status;
    *out = device;
    return GG_OK;
}

gg_status gg_device_use(gg_device *device)
{
    void *saved;
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    ggi_begin(device, GG_OP_device_enter, NULL, 0);
    status = device->ops->device_enter(atomic_load(&device->impl), &saved);
    status = ggi_end(device, GG_OP_device_enter, NULL, 0, status);
    if (status)
        return status;
    ggi_thread()->used = device;
    return GG_OK;
}

/* ---- scopes ---- */

gg_status gg_enter(gg_device *device, gg_stream *stream, gg_scope **out)
{
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    if (stream && stream->device != device)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "the stream belongs to %s:%d, not to %s:%d",
                        stream->device->backend->name, (int)stream->device->ordinal,
                        device->backend->name, (int)device->ordinal);
    gg_scope *scope = calloc(1, sizeof *scope);
    if (!scope)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a scope");
    ggi_begin(device, GG_OP_device_enter, stream, 0);
    status = device->ops->device_enter(atomic_load(&device->impl), &scope->saved);
    status = ggi_end(device, GG_OP_device_enter, stream, 0, status);
    if (status) {
        free(scope);
        return status;
    }
    if (stream)
        gg_stream_retain(stream);
    scope->device = device;
    scope->stream = stream;
    struct ggi_thread *thread = ggi_thread();
    atomic_init(&scope->thread, thread);
    scope->outer = thread->scope;
    thread->scope = scope;
    *out = scope;
    return GG_OK;
}

/* Left out of order: the next scope inside it on the same backend will restore in its place. */
static struct gg_scope *heir_of(struct gg_scope *scope, struct ggi_thread *thread,
                                struct gg_scope ***link)
{
    struct gg_scope *heir = NULL, **at = &thread->scope;
    while (*at && *at != scope) {
        if ((*at)->device->backend == scope->device->backend)
            heir = *at;
        at = &(*at)->outer;
    }
    *link = at;
    return heir;
}

gg_status gg_leave(gg_scope *scope)
{
    struct gg_scope **link, *heir;
    gg_device *device = scope->device;
    struct ggi_thread *thread = atomic_load(&scope->thread);
    if (thread && thread != mine)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "a device or stream is left on another thread than it was entered on");
    if (thread) {
        heir = heir_of(scope, thread, &link);
        *link = scope->outer;
        if (heir)
            heir->saved = scope->saved;
        else if (ggi_usable(device))
            device->ops->device_leave(scope->saved);
    }
    gg_stream_release(scope->stream);
    free(scope);
    return GG_OK;
}

/* ---- the current stream ---- */

static gg_stream *entered_stream(const gg_device *device)
{
    struct gg_scope *scope = mine ? mine->scope : NULL;
    for (; scope; scope = scope->outer)
        if (scope->stream && scope->device == device)
            return scope->stream;
    return NULL;
}

void ggi_implicit_stream(gg_device *device, gg_stream **out, bool *complete)
{
    gg_stream *stream = entered_stream(device);
    *complete = !stream && !(device->flags & GG_DEVICE_SHARED_DEFAULT);
    *out = stream ? stream : device->default_stream;
}

gg_status ggi_choose_stream_slow(gg_device *device, gg_stream **stream, bool *complete)
{
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    if (!*stream) {
        ggi_implicit_stream(device, stream, complete);
        return GG_OK;
    }
    if ((*stream)->device == device)
        return ggi_stream_check(*stream);
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "the stream belongs to %s:%d, but the work is on %s:%d: give a stream of that "
                    "device, or none",
                    (*stream)->device->backend->name, (int)(*stream)->device->ordinal,
                    device->backend->name, (int)device->ordinal);
}

gg_status gg_current_stream(gg_device *device, gg_stream **out)
{
    bool complete;
    gg_status status = ggi_device_ready(device);
    if (!status)
        ggi_implicit_stream(device, out, &complete);
    return status;
}
