/* fixture.c: a plugin whose operations do nothing, with the one error that the build selects. meson.build
 * defines every FIXTURE_ name. */
#include <gpuglue/backend.h>

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

static const struct gg_host_api *host;
static _Atomic(int) active_probes;

/* An active probe is slow, so that threads race for it. The number of active probes is in the
 * version of the library. */
static void probe(enum gg_probe_level level, struct gg_probe_result *result)
{
    const struct timespec pause = {0, 300000};
    if (level == GG_ACTIVE) {
        atomic_fetch_add(&active_probes, 1);
        nanosleep(&pause, NULL);
    }
    result->status = level == GG_ACTIVE ? FIXTURE_STATUS : GG_PROBE_NOT_PROBED;
    result->device_count = level == GG_ACTIVE ? FIXTURE_DEVICES : -1;
    snprintf(result->reason, sizeof result->reason, "%s", FIXTURE_REASON);
    snprintf(result->library_path, sizeof result->library_path, "/fixture/library");
    snprintf(result->library_version, sizeof result->library_version, "%d active probes",
             atomic_load(&active_probes));
    host->note(result->log, "%d is a number of the fixture", 42);
    if (!FIXTURE_RELUCTANT || result->named)
        return;
    result->declined = 1;
    result->status = GG_PROBE_NO_DEVICE;
    result->device_count = -1;
    snprintf(result->reason, sizeof result->reason, "not searched");
}

static gg_status device_info(int32_t ordinal, struct gg_device_info *info)
{
    snprintf(info->name, sizeof info->name, "fixture %d", (int)ordinal);
    snprintf(info->pci_bus_id, sizeof info->pci_bus_id, "0000:0%d:00.0", (int)ordinal + 1);
    info->flags = GG_DEVICE_HAS_UUID;
    for (int i = 0; i < 16; i++)
        info->uuid[i] = (uint8_t)(i + 0x10 * ordinal + 1);
    return GG_OK;
}

/* Nothing below is ever called: the tests stop at devices. */
static gg_status nothing(void)
{
    return host->fail(GG_ERR_INTERNAL, NULL, "a fixture was used");
}
#define OF(slot) .slot = (__typeof__(((struct gg_backend_ops *)0)->slot))(void (*)(void))nothing

static const struct {
    struct gg_backend_ops ops;
    void (*later[4])(void); /* operations of a newer plugin, unknown to this core */
} table = {
    {
        .struct_size = FIXTURE_TABLE_SIZE,
        .probe = probe,
        .device_info = device_info,
        OF(device_open),
        OF(device_close),
        OF(device_synchronize),
        OF(device_enter),
        OF(device_leave),
        OF(mem_free),
        OF(copy),
        OF(fill),
        OF(stream_default),
        OF(stream_create),
        OF(stream_destroy),
        OF(stream_query),
        OF(stream_wait),
        OF(stream_wait_event),
        OF(event_create),
        OF(event_destroy),
        OF(event_record),
        OF(event_query),
        OF(event_wait),
        OF(event_elapsed),
        OF(FIXTURE_SLOT),
    },
    {0},
};

static const struct gg_backend_desc desc = {
    .magic = FIXTURE_MAGIC,
    .struct_size = FIXTURE_DESC_SIZE,
    .abi_major = FIXTURE_MAJOR,
    .abi_minor = GG_BACKEND_ABI_MINOR,
    .priority = FIXTURE_PRIORITY,
    .name = FIXTURE_NAME,
    .version = "1.2.3",
    .ops = &table.ops,
};

int gg_backend_query(uint32_t core_abi, const struct gg_host_api *api,
                     const struct gg_backend_desc **out)
{
    (void)core_abi;
    host = api;
    *out = &desc;
    return FIXTURE_ANSWER;
}
