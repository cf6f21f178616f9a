/* sim_device.c: the simulated machine: its devices, its settings, and its state across init,
 * fork and exit. */
#include "sim_engine.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct sim_machine sim = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static atomic_bool initialised, forked, finished;

bool sim_initialised(void)
{
    return atomic_load(&initialised);
}

bool sim_forked(void)
{
    return atomic_load(&forked);
}

bool sim_finished(void)
{
    return atomic_load(&finished);
}

void sim_finish(void)
{
    atomic_store(&finished, true);
}

static void in_child(void)
{
    atomic_store(&forked, true);
}

uint64_t sim_setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    char *end = NULL;
    unsigned long long value;
    if (!text || !*text)
        return otherwise;
    value = strtoull(text, &end, 0);
    return *end ? otherwise : value;
}

uint64_t sim_random(uint64_t below)
{
    sim.random ^= sim.random << 13;
    sim.random ^= sim.random >> 7;
    sim.random ^= sim.random << 17;
    return sim.random % below;
}

uint64_t sim_serial(void)
{
    return ++sim.serial;
}

/* A visibility mask is a list of ordinals; it ends at the first ordinal that does not exist. */
static int visible_devices(const char *mask, int physical, int *out)
{
    int count = 0;
    if (!mask) {
        for (; count < physical; count++)
            out[count] = count;
        return count;
    }
    while (*mask && count < SIM_MAX_DEVICES) {
        char *end = NULL;
        long ordinal = strtol(mask, &end, 10);
        if (end == mask || (*end && *end != ',') || ordinal < 0 || ordinal >= physical)
            break;
        out[count++] = (int)ordinal;
        mask = *end ? end + 1 : end;
    }
    return count;
}

/* Device memory is a file that is mapped twice: without access for the client, with access for the
 * engine. */
static int map_device(struct sim_device *device, size_t size)
{
    int file = memfd_create("gpuglue-sim", MFD_CLOEXEC);
    void *client, *alias;
    if (file < 0 || ftruncate(file, (off_t)size))
        return SIM_NO_MEMORY;
    client = (void *)(uintptr_t)device->base;
    if (!sim.far_base)
        client = mmap(client, size, PROT_NONE, MAP_SHARED | MAP_FIXED, file, 0);
    alias = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (client == MAP_FAILED || alias == MAP_FAILED) {
        close(file);
        return SIM_NO_MEMORY;
    }
    device->file = file; /* other processes open it by its descriptor number */
    device->alias = alias;
    device->size = size;
    return SIM_OK;
}

static int map_devices(const int *physical, int count)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t size = sim_setting("GPUGLUE_SIM_MEMORY", (uint64_t)1 << 30);
    size_t mapped = (size + page - 1) / page * page;
    void *base = (void *)(uintptr_t)sim.far_base;
    if (!base)
        base = mmap(NULL, mapped * (size_t)count, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return SIM_NO_MEMORY;
    sim.base = (uintptr_t)base;
    sim.limit = sim.base + mapped * (size_t)count;
    for (int i = 0; i < count; i++) {
        struct sim_device *device = &sim.devices[i];
        device->ordinal = i;
        device->physical = physical[i];
        device->base = sim.base + mapped * (size_t)i;
        if (map_device(device, mapped))
            return SIM_NO_MEMORY;
        device->size = size;
    }
    sim.device_count = count;
    return SIM_OK;
}

static int make_pools(void)
{
    int status = SIM_OK;
    for (int i = 0; !status && i < sim.device_count; i++) {
        struct sim_device *device = &sim.devices[i];
        status = sim_pool_create(device, false, &device->default_pool);
        if (status)
            break;
        device->default_pool->slot.internal = true;
        device->current_pool = device->default_pool;
    }
    return status;
}

static int first_init(const char *visible)
{
    int physical[SIM_MAX_DEVICES];
    uint64_t devices = sim_setting("GPUGLUE_SIM_DEVICES", 2);
    int count = devices > SIM_MAX_DEVICES ? SIM_MAX_DEVICES : (int)devices;
    int status;
    count = visible_devices(visible, count, physical);
    if (!count)
        return SIM_NO_DEVICE;
    sim.random = sim_setting("GPUGLUE_SIM_SEED", 1) * 0x9E3779B97F4A7C15u | 1;
    sim.peers = sim_setting("GPUGLUE_SIM_PEERS", SIM_PEERS_REACH);
    sim.host_pointers = sim_setting("GPUGLUE_SIM_HOST_POINTERS", 1);
    status = map_devices(physical, count);
    if (!status)
        status = make_pools();
    if (!status)
        status = sim_worker_start();
    if (status)
        return status;
    pthread_atfork(NULL, NULL, in_child);
    atomic_store(&initialised, true);
    return SIM_OK;
}

int sim_init(const char *visible)
{
    int status = SIM_OK;
    pthread_mutex_lock(&sim.lock);
    if (!sim_initialised())
        status = first_init(visible);
    pthread_mutex_unlock(&sim.lock);
    return status;
}
