/* test_captures.c: the begin of a capture and waits in other threads, without a device. */
#include "inside.h"

#include "runtime/stream.h"

#include <pthread.h>
#include <time.h>

struct begin {
    gg_stream stream;
    atomic_bool ready;
};

static void *get_ready(void *argument)
{
    struct begin *begin = argument;
    ggi_stream_stop_waits(&begin->stream);
    atomic_store(&begin->ready, true);
    return NULL;
}

/* @p slices are in progress, and end one after the other. */
static void begin_with(int slices)
{
    struct begin begin = {.ready = false};
    pthread_t thread;
    atomic_store(&begin.stream.waits, slices);
    assert_int_equal(pthread_create(&thread, NULL, get_ready, &begin), 0);
    for (; slices > 0; slices--) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* time to get ready too early */
        assert_false(atomic_load(&begin.ready));
        atomic_fetch_sub(&begin.stream.waits, 1);
    }
    pthread_join(thread, NULL);
    assert_true(atomic_load(&begin.stream.captures_soon) == 1);
    assert_true(ggi_stream_wait_disturbs_capture(&begin.stream));
    ggi_stream_allow_waits(&begin.stream);
}

static void a_capture_begins_after_all_slices_of_waits_in_other_threads(void **state)
{
    (void)state;
    begin_with(0);
    begin_with(2);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_capture_begins_after_all_slices_of_waits_in_other_threads)};
SUITE(captures, tests);
