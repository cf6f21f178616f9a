/* find.c: backends by name, devices by ordinal, name, PCI address or UUID. */
#include "backends.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

gg_status ggi_backend_find(const char *name, struct gg_backend **out)
{
    struct gg_backend *backend = ggi_backend_named(name);
    if (backend) {
        atomic_store(&backend->named, true);
        *out = backend;
        return GG_OK;
    }
    struct ggi_record *record = ggi_backend_missing(name);
    if (!record)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no memory to look for backend \"%.100s\"", name);
    ggi_fail(GG_ERR_UNAVAILABLE, "backend not available: %.100s: %s: %s", name,
             gg_probe_status_name(record->report.status), record->report.reason);
    ggi_fail_names(name);
    ggi_record_release(record);
    return GG_ERR_UNAVAILABLE;
}

/* Found and opened; NULL is the default one. */
static gg_status open_named(const char *name, struct gg_backend **out)
{
    struct gg_backend *backend = NULL;
    if (!name)
        return ggi_backend_default(out);
    gg_status status = ggi_backend_find(name, &backend);
    if (!status)
        status = ggi_backend_open(backend);
    if (!status)
        *out = backend;
    return status;
}

gg_status gg_device_count(const char *backend, int32_t *count)
{
    struct gg_backend *found;
    if (!count)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "device_count: no place for the count");
    gg_status status = open_named(backend, &found);
    if (!status)
        *count = found->device_count;
    return status;
}

/* @p digits: the ordinal as it was given, which no integer may hold. */
static gg_status take_ordinal(struct gg_backend *backend, int64_t ordinal, const char *digits,
                              gg_device **out)
{
    int32_t count = backend->device_count;
    if (ordinal >= 0 && ordinal < count) {
        *out = &backend->devices[ordinal];
        return GG_OK;
    }
    if (count == 1)
        return ggi_fail(GG_ERR_NO_SUCH_DEVICE, "no device %.40s: backend \"%s\" has one, number 0",
                        digits, backend->name);
    return ggi_fail(GG_ERR_NO_SUCH_DEVICE, "no device %.40s: backend \"%s\" has %d devices, 0 to %d",
                    digits, backend->name, (int)count, (int)count - 1);
}

gg_status gg_device_get(const char *backend, int32_t ordinal, gg_device **out)
{
    struct gg_backend *found;
    char digits[16];
    if (!out)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "device_get: no place for the device");
    snprintf(digits, sizeof digits, "%" PRId32, ordinal);
    gg_status status = open_named(backend, &found);
    return status ? status : take_ordinal(found, ordinal, digits, out);
}

/* ---- addresses that a device has whoever drives it ---- */

struct address {
    const char *kind;     /* "PCI address" or "UUID" */
    unsigned long pci[4]; /* domain, bus, device, function */
    uint8_t uuid[16];
    bool is_uuid;
};

/* "0000:65:00.0", a domain of any width, or none: "65:00.0". */
static bool parse_pci(const char *text, unsigned long pci[4])
{
    char rest;
    if (strspn(text, "0123456789abcdefABCDEF:.") != strlen(text))
        return false;
    if (sscanf(text, "%lx:%lx:%lx.%lx%c", &pci[0], &pci[1], &pci[2], &pci[3], &rest) == 4)
        return true;
    pci[0] = 0;
    return sscanf(text, "%lx:%lx.%lx%c", &pci[1], &pci[2], &pci[3], &rest) == 3;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 32) >= 'a' && (c | 32) <= 'f')
        return (c | 32) - 'a' + 10;
    return -1;
}

static bool parse_uuid(const char *text, uint8_t uuid[16])
{
    int digits = 0;
    memset(uuid, 0, 16);
    for (; *text; text++) {
        if (*text == '-')
            continue;
        int value = digit(*text);
        if (value < 0 || digits == 32)
            return false;
        uuid[digits / 2] = (uint8_t)(uuid[digits / 2] << 4 | value);
        digits++;
    }
    return digits == 32;
}

static bool matches(const struct address *address, const struct gg_device_info *info)
{
    unsigned long pci[4];
    if (address->is_uuid)
        return info->flags & GG_DEVICE_HAS_UUID && !memcmp(info->uuid, address->uuid, 16);
    return parse_pci(info->pci_bus_id, pci) && !memcmp(pci, address->pci, sizeof pci);
}

static void say_address(const struct address *address, const struct gg_device *device,
                        const struct gg_device_info *info, struct ggi_text *text)
{
    ggi_text_add(text, "%s%s:%d ", text->used ? ", " : "", device->backend->name,
                 (int)device->ordinal);
    if (!address->is_uuid || !(info->flags & GG_DEVICE_HAS_UUID)) {
        ggi_text_add(text, "%s",
                     address->is_uuid || !info->pci_bus_id[0] ? "(none)" : info->pci_bus_id);
        return;
    }
    for (int i = 0; i < 16; i++)
        ggi_text_add(text, "%02x", info->uuid[i]);
}

/* @p unread gets a device that did not tell what it is. */
static gg_device *search_backend(struct gg_backend *backend, const struct address *address,
                                 struct ggi_text *seen, gg_device **unread)
{
    for (int32_t i = 0; i < backend->device_count; i++) {
        struct gg_device_info info = {.struct_size = sizeof info};
        gg_device *device = &backend->devices[i];
        if (gg_device_info(device, &info)) {
            *unread = device;
            continue;
        }
        if (matches(address, &info))
            return device;
        say_address(address, device, &info, seen);
    }
    return NULL;
}

/* Every backend that GPUGLUE_BACKEND leaves in, the default one first: two may drive one device. */
static gg_device *search_all(const struct address *address, struct ggi_text *seen,
                             gg_device **unread)
{
    size_t count;
    struct ggi_text unused;
    const char *variable;
    struct gg_backend *first = NULL;
    gg_device *found = NULL;
    struct gg_backend **all = ggi_backends(&count);
    ggi_text_begin(&unused, NULL, 0);
    const struct ggi_selection *selection = ggi_selection_of_variable(&variable, &unused);
    if (!ggi_backend_default(&first))
        found = search_backend(first, address, seen, unread);
    for (size_t i = 0; all && i < count && !found; i++) {
        bool out = selection && !ggi_selection_admits(selection, all[i]);
        if (!out && all[i] != first && !ggi_backend_open(all[i]))
            found = search_backend(all[i], address, seen, unread);
    }
    free(all);
    return found;
}

static gg_status find_address(const char *given, const struct address *address, gg_device **out)
{
    char list[512];
    struct ggi_text seen;
    ggi_text_begin(&seen, list, sizeof list);
    gg_device *unread = NULL;
    ggi_quiet(1);
    gg_device *device = search_all(address, &seen, &unread);
    ggi_quiet(-1);
    if (!device && unread) { /* it may be the one: asked again, so that its driver's words are told */
        struct gg_device_info info = {.struct_size = sizeof info};
        gg_status status = gg_device_info(unread, &info);
        if (status)
            return status;
        device = matches(address, &info) ? unread : NULL;
    }
    if (device) {
        *out = device;
        return GG_OK;
    }
    return ggi_fail(GG_ERR_NO_SUCH_DEVICE, "no device has the %s of \"%.100s\"; there are: %s",
                    address->kind, given, list[0] ? list : "no devices");
}

/* ---- names ---- */

static gg_status no_name(const char *given)
{
    return ggi_fail(
        GG_ERR_INVALID_ARGUMENT,
        "\"%.100s\" names no device: expected \"backend:number\", \"number\", \"backend\", "
        "\"pci:0000:65:00.0\" or \"uuid:\" with 32 hexadecimal digits",
        given);
}

static gg_status find_ordinal(const char *given, const char *backend, const char *digits,
                              gg_device **out)
{
    struct gg_backend *found;
    size_t length = strlen(digits);
    if (!length || strspn(digits, "0123456789") != length)
        return no_name(given);
    gg_status status = open_named(backend, &found);
    return status ? status : take_ordinal(found, strtoll(digits, NULL, 10), digits, out);
}

static void lower(const char *from, size_t length, char *to, size_t size)
{
    if (length >= size)
        length = size - 1;
    for (size_t i = 0; i < length; i++)
        to[i] = from[i] >= 'A' && from[i] <= 'Z' ? (char)(from[i] | 32) : from[i];
    to[length] = 0;
}

gg_status gg_device_find(const char *name, gg_device **out)
{
    char backend[64];
    struct address address = {.kind = "PCI address"};
    if (!name || !out)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "device_find: no name, or no place for the device");
    if (!strncasecmp(name, "pci:", 4))
        return parse_pci(name + 4, address.pci) ? find_address(name, &address, out) : no_name(name);
    if (!strncasecmp(name, "uuid:", 5)) {
        address.kind = "UUID";
        address.is_uuid = true;
        return parse_uuid(name + 5, address.uuid) ? find_address(name, &address, out)
                                                  : no_name(name);
    }
    const char *colon = strchr(name, ':');
    lower(name, colon ? (size_t)(colon - name) : strlen(name), backend, sizeof backend);
    if (colon && ggi_name_is_valid(backend))
        return find_ordinal(name, backend, colon + 1, out);
    if (!colon && ggi_name_is_valid(backend))
        return gg_device_get(backend, 0, out);
    return colon ? no_name(name) : find_ordinal(name, NULL, name, out);
}
