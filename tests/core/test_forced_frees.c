/* test_forced_frees.c: which streams a drain polls before it frees memory of which much is cached, without a device. */
#include "inside.h"

#include "memory/pool.h"
#include "runtime/stream.h"

#define STREAMS 128 /* more than a drain polls; the last one is done */

static struct gg_device device;
static struct gg_backend_ops ops;
static gg_stream streams[STREAMS];
static int queries;

static gg_status query(struct gg_stream_impl *impl)
{
    queries++;
    return impl == streams[STREAMS - 1].impl ? GG_OK : GG_NOT_READY;
}

static gg_status record_nothing(struct gg_event_impl *event, struct gg_stream_impl *impl)
{
    (void)event, (void)impl;
    return GG_ERR_UNSUPPORTED;
}

/* Each stream has work, of which no query has found yet whether it is done. */
static void start(void)
{
    device = (struct gg_device){.ops = &ops};
    ops.stream_query = query;
    ops.event_record = record_nothing;
    queries = 0;
    pthread_mutex_init(&device.lock, NULL);
    for (int i = 0; i < STREAMS; i++) {
        streams[i] =
            (gg_stream){.device = &device, .serial = (uint64_t)i + 1, .refs = 1, .submitted = 1};
        streams[i].next = i + 1 < STREAMS ? &streams[i + 1] : NULL;
        streams[i].impl = (struct gg_stream_impl *)&streams[i];
        streams[i].marker = (struct gg_event_impl *)&streams[i];
    }
    device.streams = &streams[0];
    for (int i = 0; i < GGI_POOLS; i++) {
        device.pools[i] = ggi_pool_new(&device, (enum gg_memory_kind)(GG_MEMORY_DEVICE + i));
        assert_non_null(device.pools[i]);
    }
}

static bool is_idle_after_the_last_stream(struct ggi_retired *self)
{
    self->after = &streams[STREAMS - 1];
    self->ticket = 1;
    return atomic_load(&self->after->completed) >= 1;
}

static void pinned_memory_is_freed_when_its_work_is_done_however_many_streams_are_busy(void **state)
{
    static struct ggi_retired item = {.idle = is_idle_after_the_last_stream, .may_wait = true};
    (void)state;
    start();
    device.pools[1]->stats.retired_bytes = UINT64_MAX / 2;
    ggi_retire(&device, &item);
    ggi_drain_locked(&device, GGI_DRAIN_SOME);
    assert_ptr_equal(device.ready, &item); /* to be destroyed after the drain */
}

static void a_pool_within_its_threshold_is_not_trimmed_for_another(void **state)
{
    (void)state;
    start();
    ggi_device_parts.before_sweep(&device);
    assert_int_equal(queries, 0);
    assert_int_equal(atomic_load(&device.over), 0); /* or each drain would try again */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pinned_memory_is_freed_when_its_work_is_done_however_many_streams_are_busy),
    cmocka_unit_test(a_pool_within_its_threshold_is_not_trimmed_for_another),
};
SUITE(forced_frees, tests);
