/* test_crew.c: the threads that copy along, without a device: whoever holds a lane only opens chunks here, and
 * waits. A hang is a wake-up that was lost, or work that nobody takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "staging.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 8u
#define PART ((size_t)64)

static struct ggi_staging *staging;

static int start_one_worker(void **state)
{
    (void)state;
    staging = calloc(1, sizeof *staging);
    if (!staging)
        return -1;
    pthread_mutex_init(&staging->crew.lock, NULL);
    pthread_cond_init(&staging->crew.wake, NULL);
    staging->crew.node = -1;
    atomic_store(&staging->lane[0].slots, SLOTS);
    atomic_store(&staging->lane[1].slots, SLOTS);
    ggi_crew_looks = 1;
    return ggi_crew_start(staging, 2) == 1 ? 0 : -1;
}

static int stop_it(void **state)
{
    (void)state;
    ggi_crew_stop(&staging->crew);
    free(staging);
    return 0;
}

/* So many bytes in parts of @p part, as a chunk that is not open yet. */
static void put(struct ggi_lane *lane, uint64_t chunk, char *dst, const char *src, size_t nbytes,
                size_t part)
{
    struct ggi_load *load = &lane->load[chunk % SLOTS];
    ptrdiff_t strides[GG_COPY_MAX_DIMS];
    load->box = (struct ggi_box){.run = nbytes};
    load->dst = dst;
    load->src = src;
    ggi_box_pack(&load->box, false, GGI_DST, strides);
    ggi_cut_make(&load->cut, &load->box, strides, part);
    assert_true(load->cut.count <= GGI_MOST_PARTS);
    atomic_store(&lane->done[chunk % SLOTS], 0);
    atomic_store(&lane->end[chunk % SLOTS], chunk * GGI_MOST_PARTS + load->cut.count);
}

static void wait_for(struct ggi_lane *lane, uint64_t chunk)
{
    while (atomic_load(&lane->done[chunk % SLOTS]) != lane->load[chunk % SLOTS].cut.count)
        sched_yield();
}

static void a_worker_that_falls_asleep_misses_no_chunk(void **state)
{
    struct ggi_lane *lane = &staging->lane[1];
    char from[PART] = "from", to[PART] = "";
    (void)state;
    for (uint64_t chunk = 0; chunk < 50000; chunk++) {
        atomic_store(&lane->threads, 2);
        put(lane, chunk, to, from, PART, PART);
        for (uint64_t i = 0; i < chunk % 512 * 4; i++)
            atomic_load(&lane->open); /* a little later each time */
        ggi_lane_open(staging, lane, chunk + 1);
        wait_for(lane, chunk);
        atomic_store(&lane->next, (chunk + 1) * GGI_MOST_PARTS);
        atomic_store(&lane->threads, 0);
    }
    assert_string_equal(to, "from");
}

static void a_chunk_may_have_as_many_parts_as_there_are_numbers(void **state)
{
    struct ggi_lane *lane = &staging->lane[0];
    char from[GGI_MOST_PARTS * PART], to[sizeof from];
    (void)state;
    memset(from, 1, sizeof from);
    atomic_store(&lane->threads, 2);
    put(lane, 0, to, from, sizeof from, PART);
    assert_int_equal(lane->load[0].cut.count, GGI_MOST_PARTS);
    ggi_lane_open(staging, lane, 1);
    wait_for(lane, 0);
    assert_memory_equal(to, from, sizeof from);
}

/* The other lane's only part reads what the last part of this one writes. */
static void a_worker_gives_both_lanes_their_turn(void **state)
{
    static char from[SLOTS * GGI_MOST_PARTS * PART], to[sizeof from];
    const size_t chunk_bytes = GGI_MOST_PARTS * PART;
    char seen = 7;
    (void)state;
    memset(from, 1, sizeof from);
    for (uint64_t chunk = 0; chunk < SLOTS; chunk++)
        put(&staging->lane[0], chunk, to + chunk * chunk_bytes, from + chunk * chunk_bytes,
            chunk_bytes, PART);
    put(&staging->lane[1], 0, &seen, to + sizeof to - 1, 1, 1);
    ggi_lane_open(staging, &staging->lane[0], SLOTS);
    ggi_lane_open(staging, &staging->lane[1], 1);
    pthread_mutex_lock(&staging->crew.lock);
    atomic_store(&staging->lane[1].threads, 2);
    atomic_store(&staging->lane[0].threads, 2);
    pthread_cond_broadcast(&staging->crew.wake);
    pthread_mutex_unlock(&staging->crew.lock);
    wait_for(&staging->lane[1], 0);
    wait_for(&staging->lane[0], SLOTS - 1);
    assert_int_equal(seen, 0);
    assert_int_equal(to[sizeof to - 1], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_worker_that_falls_asleep_misses_no_chunk,
                                        start_one_worker, stop_it),
        cmocka_unit_test_setup_teardown(a_chunk_may_have_as_many_parts_as_there_are_numbers,
                                        start_one_worker, stop_it),
        cmocka_unit_test_setup_teardown(a_worker_gives_both_lanes_their_turn, start_one_worker,
                                        stop_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
