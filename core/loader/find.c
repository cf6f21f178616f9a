/* find.c: backends by name, devices by ordinal, name, PCI address or UUID. */
#include "base/error.h"
#include "loader/loader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/small.h"

gg_status ggi_backend_find(const char *name, struct gg_backend **out)
{
    struct ggi_plugin *plugin = ggi_plugin_named(name);
    if (plugin) {
        atomic_store(&plugin->named, true);
        *out = &plugin->backend;
        return GG_OK;
    }
    struct ggi_probe_report *record = ggi_plugin_missing(name);
    if (!record)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory to search for backend \"%.100s\"",
                        name);
    ggi_fail(GG_ERR_UNAVAILABLE, "backend not available: %.100s: %s: %s", name,
             gg_probe_status_name(record->report.status), record->report.reason);
    ggi_fail_names(name);
    ggi_probe_report_release(record);
    return GG_ERR_UNAVAILABLE;
}

/* The backend of that name, opened; the default one for NULL. */
static gg_status find_backend(const char *name, struct gg_backend **out)
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
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "device_count: the pointer for the result is NULL");
    gg_status status = find_backend(backend, &found);
    if (!status)
        *count = found->device_count;
    return status;
}

/* @p digits: the ordinal as the user wrote it, which may not fit an integer. */
static gg_status find_by_ordinal(struct gg_backend *backend, int64_t ordinal, const char *digits,
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
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "device_get: the pointer for the result is NULL");
    snprintf(digits, sizeof digits, "%" PRId32, ordinal);
    gg_status status = find_backend(backend, &found);
    return status ? status : find_by_ordinal(found, ordinal, digits, out);
}

/* ---- PCI addresses and UUIDs, the same in every backend ---- */

struct address {
    const char *kind;     /* "PCI address" or "UUID" */
    unsigned long pci[4]; /* domain, bus, device, function */
    uint8_t uuid[16];
    bool is_uuid;
};

/* "0000:65:00.0", a domain of any width, or none: "65:00.0". */
static bool find_parse_pci(const char *text, unsigned long pci[4])
{
    char rest;
    if (strspn(text, "0123456789abcdefABCDEF:.") != strlen(text))
        return false;
    if (sscanf(text, "%lx:%lx:%lx.%lx%c", &pci[0], &pci[1], &pci[2], &pci[3], &rest) == 4)
        return true;
    pci[0] = 0;
    return sscanf(text, "%lx:%lx.%lx%c", &pci[1], &pci[2], &pci[3], &rest) == 3;
}

/* Vendors' tools print "GPU-" or "MIG-" before it. */
static bool find_parse_uuid(const char *text, uint8_t uuid[16])
{
    static const char hex[] = "0123456789abcdef0123456789ABCDEF";
    int digits = 0;
    text += strncmp(text, "GPU-", 4) && strncmp(text, "MIG-", 4) ? 0 : 4;
    memset(uuid, 0, 16);
    for (; *text; text++) {
        const char *digit = strchr(hex, *text);
        if (*text == '-')
            continue;
        if (!digit || digits == 32)
            return false;
        uuid[digits / 2] = (uint8_t)(uuid[digits / 2] << 4 | ((digit - hex) & 15));
        digits++;
    }
    if (digits == 16) { /* a number of 64 bits */
        memcpy(uuid + 8, uuid, 8);
        memset(uuid, 0, 8);
    }
    return digits == 16 || digits == 32;
}

static bool find_matches(const struct address *address, const struct gg_device_info *info)
{
    unsigned long pci[4];
    if (address->is_uuid)
        return info->flags & GG_DEVICE_HAS_UUID && !memcmp(info->uuid, address->uuid, 16);
    return find_parse_pci(info->pci_bus_id, pci) && !memcmp(pci, address->pci, sizeof pci);
}

static void find_describe(const struct address *address, const struct gg_device *device,
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

struct search {
    const struct address *address;
    gg_device *found;
    gg_device *unread;    /* its information cannot be read */
    struct ggi_text same; /* the devices that match, if they are several */
    struct ggi_text seen; /* the others */
};

static void find_take(struct search *search, gg_device *device)
{
    if (!search->found)
        search->found = device;
    else if (!search->same.used)
        ggi_text_add(&search->same, "%s:%d and %s:%d", search->found->backend->name,
                     (int)search->found->ordinal, device->backend->name, (int)device->ordinal);
    else
        ggi_text_add(&search->same, " and %s:%d", device->backend->name, (int)device->ordinal);
}

static void find_in_backend(struct search *search, struct gg_backend *backend)
{
    for (int32_t i = 0; i < backend->device_count; i++) {
        struct gg_device_info info = {.struct_size = sizeof info};
        gg_device *device = &backend->devices[i];
        if (gg_device_info(device, &info))
            search->unread = device;
        else if (find_matches(search->address, &info))
            find_take(search, device);
        else
            find_describe(search->address, device, &info, &search->seen);
    }
}

/* Search every backend that GPUGLUE_BACKEND admits, the default one first: two may drive the same device. */
static void find_in_all(struct search *search)
{
    size_t count;
    struct ggi_text unused = {0};
    const char *variable;
    struct gg_backend *first = NULL;
    struct ggi_plugin **all = ggi_plugins(&count);
    const struct ggi_selection *selection = ggi_selection_of_variable(&variable, &unused);
    if (!ggi_backend_default(&first))
        find_in_backend(search, first);
    for (size_t i = 0; all && i < count && !search->found; i++) {
        bool out = selection && !ggi_selection_admits(selection, all[i]);
        struct gg_backend *backend = &all[i]->backend;
        if (!out && backend != first && !ggi_backend_open(backend))
            find_in_backend(search, backend);
    }
    free(all);
}

static gg_status find_by_address(const char *given, const struct address *address, gg_device **out)
{
    struct search search = {.address = address, .same = GGI_TEXT(256), .seen = GGI_TEXT(512)};
    ggi_suppress_errors(1);
    find_in_all(&search);
    ggi_suppress_errors(-1);
    if (!search.found &&
        search.unread) { /* it may match; the second call reports the driver's error */
        struct gg_device_info info = {.struct_size = sizeof info};
        gg_status status = gg_device_info(search.unread, &info);
        if (status)
            return status;
        search.found = find_matches(address, &info) ? search.unread : NULL;
    }
    if (search.same.used)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "the %s \"%.100s\" is that of %s: expected the name of one of them",
                        address->kind, given, search.same.data);
    if (!search.found)
        return ggi_fail(GG_ERR_NO_SUCH_DEVICE,
                        "no device has the %s \"%.100s\"; the devices have: %s", address->kind,
                        given, search.seen.used ? search.seen.data : "no devices");
    *out = search.found;
    return GG_OK;
}

/* ---- names ---- */

static gg_status find_fail(const char *given)
{
    return ggi_fail(
        GG_ERR_INVALID_ARGUMENT,
        "\"%.100s\" does not name a device: expected \"backend:number\", \"number\", \"backend\", "
        "\"pci:0000:65:00.0\" or \"uuid:\" with 16 or 32 hexadecimal digits",
        given);
}

static gg_status find_by_digits(const char *given, const char *backend, const char *digits,
                                gg_device **out)
{
    struct gg_backend *found;
    size_t length = strlen(digits);
    if (!length || strspn(digits, "0123456789") != length)
        return find_fail(given);
    gg_status status = find_backend(backend, &found);
    return status ? status : find_by_ordinal(found, strtoll(digits, NULL, 10), digits, out);
}

gg_status gg_device_find(const char *name, gg_device **out)
{
    struct ggi_text backend = GGI_TEXT(64);
    struct address address = {.kind = "PCI address"};
    if (!name || !out)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "device_find: the name or the pointer for the result is NULL");
    if (!strncasecmp(name, "pci:", 4))
        return find_parse_pci(name + 4, address.pci) ? find_by_address(name, &address, out)
                                                     : find_fail(name);
    if (!strncasecmp(name, "uuid:", 5)) {
        address.kind = "UUID";
        address.is_uuid = true;
        return find_parse_uuid(name + 5, address.uuid) ? find_by_address(name, &address, out)
                                                       : find_fail(name);
    }
    const char *colon = strchr(name, ':');
    ggi_text_add(&backend, "%.*s", (int)strcspn(name, ":"), name);
    ggi_text_lower(backend.data);
    if (ggi_backend_name_is_valid(backend.data))
        return colon ? find_by_digits(name, backend.data, colon + 1, out)
                     : gg_device_get(backend.data, 0, out);
    return colon ? find_fail(name) : find_by_digits(name, NULL, name, out);
}
