/* current_device.c: the current device, and the default one: GPUGLUE_DEVICE, the vendor's, or the first. */
#include "base/env.h"
#include "base/error.h"
#include "runtime/scope.h"
#include "loader/loader.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The length of the backend's name in "name:1"; 0 for "1", "pci:…" and "uuid:…", and for "-1", which names none. */
static size_t device_backend_length(const char *text)
{
    size_t length = strcspn(text, ":");
    bool ordinal = text[0] == '-' || (text[0] >= '0' && text[0] <= '9');
    bool address = !strncasecmp(text, "pci:", 4) || !strncasecmp(text, "uuid:", 5);
    return ordinal || address ? 0 : length;
}

static gg_status device_fail_contradiction(const char *device, const char *chosen)
{
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "GPUGLUE_DEVICE=%s names another backend than GPUGLUE_BACKEND=%s selects: "
                    "change one of them, or give only the ordinal",
                    device, chosen);
}

/* Whether GPUGLUE_BACKEND has the form "^name,…" and its list contains the name. */
static bool device_is_excluded(const char *chosen, const char *text, size_t length)
{
    struct ggi_selection selection;
    struct ggi_text unused = {0};
    char name[sizeof selection.text];
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    ggi_text_lower(name);
    return ggi_selection_parse(&selection, chosen, &unused) && selection.automatic &&
           ggi_selection_has(&selection, name);
}

/* GPUGLUE_DEVICE must not name a backend that GPUGLUE_BACKEND excludes. */
static gg_status device_check_agreement(const char *text)
{
    const char *chosen = ggi_env_get("GPUGLUE_BACKEND");
    size_t length = device_backend_length(text);
    struct gg_backend *backend;
    if (!length || !chosen || !chosen[0] || !strcasecmp(chosen, "auto"))
        return GG_OK;
    if (chosen[0] == '^')
        return device_is_excluded(chosen, text, length) ? device_fail_contradiction(text, chosen)
                                                        : GG_OK;
    gg_status status = ggi_backend_default(&backend);
    if (status)
        return status;
    if (strlen(backend->name) == length && !strncasecmp(backend->name, text, length))
        return GG_OK;
    return device_fail_contradiction(text, chosen);
}

/* The device that GPUGLUE_DEVICE names; NULL in *out if the variable is not set. */
static gg_status device_of_variable(gg_device **out)
{
    const char *text = ggi_env_get("GPUGLUE_DEVICE");
    *out = NULL;
    if (!text || !text[0])
        return GG_OK;
    gg_status status = device_check_agreement(text);
    if (status)
        return status;
    status = gg_device_find(text, out);
    if (!status)
        return GG_OK;
    struct gg_error why = {.struct_size = sizeof why};
    gg_last_error(&why);
    return ggi_fail(status, "GPUGLUE_DEVICE=%s: %s", text, why.message);
}

/* GPUGLUE_DEVICE is read once for each default backend, which gg_use_backend may change. Later reads are two
 * loads. */
static struct {
    _Atomic(struct gg_backend *) backend;
    _Atomic(gg_device *) device;
} default_cache;

static pthread_mutex_t default_lock = PTHREAD_MUTEX_INITIALIZER; /* to write both */
GGI_RESET_IN_CHILD(default_lock)

static gg_status default_device_read(struct gg_backend *backend)
{
    gg_device *device;
    gg_status status = device_of_variable(&device);
    if (status)
        return status;
    pthread_mutex_lock(&default_lock);
    atomic_store(&default_cache.device, device);
    atomic_store(&default_cache.backend, backend);
    pthread_mutex_unlock(&default_lock);
    return GG_OK;
}

/* The first discrete GPU; if all are integrated, the first. */
static int32_t default_ordinal(const struct gg_backend *backend)
{
    for (int32_t i = 0; i < backend->device_count; i++)
        if (!(backend->devices[i].flags & GG_DEVICE_INTEGRATED))
            return i;
    return 0;
}

static gg_status default_device_of(struct gg_backend *backend, gg_device **out)
{
    int32_t ordinal = backend->ops.device_current ? backend->ops.device_current() : -1;
    if (ordinal < 0 || ordinal >= backend->device_count)
        ordinal = default_ordinal(backend);
    if (!backend->device_count)
        return ggi_fail(GG_ERR_NO_SUCH_DEVICE, "backend \"%s\" has no device", backend->name);
    *out = &backend->devices[ordinal];
    return GG_OK;
}

static gg_status default_device(gg_device **out)
{
    struct gg_backend *backend = ggi_backend_decided();
    gg_status status = backend ? GG_OK : ggi_backend_default(&backend);
    if (!status && atomic_load(&default_cache.backend) != backend)
        status = default_device_read(backend);
    if (status)
        return status;
    gg_device *device = atomic_load(&default_cache.device);
    if (!device)
        return default_device_of(backend, out);
    *out = device;
    return GG_OK;
}

gg_status gg_current_device(gg_device **out)
{
    gg_device *device = ggi_scope_device();
    gg_status status = device ? GG_OK : default_device(&device);
    if (!status)
        status = ggi_device_check(device);
    if (!status)
        *out = device;
    return status;
}
