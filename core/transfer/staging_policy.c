/* staging_policy.c: when a copy is staged, and with how many threads. The lane's model chooses, by what the copies
 * of this program have shown. */
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "transfer/staging.h"

#include <stdio.h>
#include <stdlib.h>

#define STAGED_MIN ((size_t)256 << 10) /* smaller copies are left to the driver */
/* The slots and the threads of a lane take a few milliseconds: not worth it before the driver has copied so much. */
#define WORTH_SETUP ((uint64_t)32 << 20)

static int64_t policy_mode(void)
{
    return ggi_env_value(GGI_ENV_STAGING, GGI_STAGING_AUTO);
}

/* ---- the guess ---- */

/* The first number in a file of the device's directory, such as "32.0 GT/s PCIe" or "16"; 0: none. */
static double pci_number(const char *bus_id, const char *file)
{
    char path[128];
    double number = 0;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", bus_id, file);
    FILE *stream = bus_id[0] ? fopen(path, "re") : NULL;
    if (!stream)
        return 0;
    if (fscanf(stream, "%lf", &number) != 1)
        number = 0;
    fclose(stream);
    return number;
}

/* GB/s of the device's link, or 0 if the system does not show it. The speed of the moment would not help: an idle
 * device lowers it. */
static double device_link(struct gg_device *device)
{
    struct gg_device_info info = {.struct_size = sizeof info};
    if (gg_device_info(device, &info))
        return 0;
    return pci_number(info.pci_bus_id, "max_link_speed") *
           pci_number(info.pci_bus_id, "max_link_width") / 8;
}

static void lane_start_model(struct gg_device *device, struct ggi_lane *lane)
{
    if (atomic_load(&lane->started))
        return;
    const double link = device_link(device);
    pthread_mutex_lock(&lane->lock);
    const bool first = !atomic_load(&lane->started);
    if (first)
        ggi_staging_model_start(&lane->model, link);
    atomic_store(&lane->started, true);
    pthread_mutex_unlock(&lane->lock);
    if (first)
        ggi_log(GG_LOG_INFO, device->backend->name,
                "copies %s of pageable memory: at most %d threads, a link of %.0f GB/s (0: not "
                "known)",
                lane == &device->staging->lane[0] ? "to the device" : "to the host",
                ggi_copy_thread_count(), link);
}

/* ---- what copies have shown ---- */

/* Before the copy: other copies of the device may end during it. */
static void job_begin(struct ggi_copy_job *job)
{
    const uint64_t last = atomic_load(&job->device->staging->ended_at), now = ggi_now_ns();
    job->spaced = now > last && now - last > ggi_copy_threads_spin_ns;
}

static struct ggi_staging_kind job_kind(const struct ggi_copy_job *job)
{
    return (struct ggi_staging_kind){job->nbytes, job->spaced};
}

static int lane_choose(struct ggi_copy_job *job, struct ggi_lane *lane)
{
    lane_start_model(job->device, lane);
    pthread_mutex_lock(&lane->lock);
    int threads = ggi_staging_model_choose(&lane->model, job_kind(job), ggi_copy_thread_count(),
                                           ggi_now_ns());
    pthread_mutex_unlock(&lane->lock);
    return threads;
}

static void lane_learn(struct ggi_copy_job *job, struct ggi_lane *lane, int threads, uint64_t begin)
{
    const uint64_t now = ggi_now_ns();
    lane_start_model(job->device, lane);
    pthread_mutex_lock(&lane->lock);
    ggi_staging_model_learn(&lane->model, job_kind(job), threads, now - begin, now);
    pthread_mutex_unlock(&lane->lock);
}

static void job_end(struct ggi_copy_job *job)
{
    atomic_store(&job->device->staging->ended_at, ggi_now_ns());
}

void ggi_staging_learn_driver(struct ggi_copy_job *job, uint64_t begin)
{
    if (job->nbytes < STAGED_MIN || policy_mode() != GGI_STAGING_AUTO)
        return;
    lane_learn(job, ggi_lane_of(job->device, job->kind), 0, begin);
    job_end(job);
}

/* ---- the decision ---- */

/* The first access to a page waits until it is mapped and zeroed: all threads share that work. */
static bool job_touches_pages(const struct ggi_copy_job *job)
{
    return job->flags & GG_COPY_DST_UNTOUCHED && ggi_copy_thread_count() > 1;
}

/* Whether the decision is known without the model. */
static bool policy_is_decided(const struct ggi_copy_job *job, bool *staged)
{
    const bool separate = job->nbytes >= STAGED_MIN && !(job->device->flags & GG_DEVICE_INTEGRATED);
    const int64_t mode = policy_mode();
    *staged = mode == GGI_STAGING_ALWAYS ||
              (mode == GGI_STAGING_AUTO && separate && job_touches_pages(job));
    return *staged || mode != GGI_STAGING_AUTO ||
           !separate; /* short, or host and device share their memory */
}

static bool lane_is_worth_it(const struct ggi_copy_job *job, struct ggi_lane *lane)
{
    return atomic_load(&lane->seen) >= WORTH_SETUP ||
           atomic_fetch_add(&lane->seen, job->nbytes) + job->nbytes >= WORTH_SETUP;
}

/* The first copy, which makes slots and threads, shows nothing about later ones. */
static gg_status lane_copy(struct ggi_copy_job *job, struct ggi_lane *lane, int threads, bool learn)
{
    struct ggi_staging_plan plan;
    ggi_staging_plan_make(&plan, job);
    gg_status status = ggi_lane_acquire(job->device, lane);
    if (status)
        return status;
    const struct ggi_retired *before = lane->used;
    const uint64_t begin = ggi_now_ns();
    const bool warm = ggi_copy_threads_start(&job->device->staging->threads, 0) >= threads - 1;
    status = ggi_staging_run(lane, &plan, threads);
    lane->used = lane->memory;
    learn = learn && warm && before == lane->memory;
    ggi_lane_release(lane);
    if (!status && learn)
        lane_learn(job, lane, threads, begin);
    job_end(job);
    return status;
}

gg_status ggi_staging_copy(struct ggi_copy_job *job)
{
    struct ggi_lane *lane = ggi_lane_of(job->device, job->kind);
    const bool fixed = policy_mode() != GGI_STAGING_AUTO || job_touches_pages(job);
    job_begin(job);
    int threads = fixed ? 0 : lane_choose(job, lane);
    return lane_copy(job, lane, threads ? threads : ggi_copy_thread_count(), false);
}

gg_status ggi_staging_copy_if_faster(struct ggi_copy_job *job)
{
    struct ggi_lane *lane = ggi_lane_of(job->device, job->kind);
    bool staged;
    if (policy_is_decided(job, &staged))
        return staged ? ggi_staging_copy(job) : GG_NOT_READY;
    job_begin(job);
    if (!lane_is_worth_it(job, lane))
        return GG_NOT_READY;
    int threads = lane_choose(job, lane);
    return threads ? lane_copy(job, lane, threads, true) : GG_NOT_READY;
}
