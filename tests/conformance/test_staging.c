/* test_staging.c: large copies of pageable memory through pinned slots: what they move, when they return,
 * what becomes of slots and threads. Each scenario is a process in which staging is forced. */
#include "staged.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- what comes back ---- */

static int copy_sizes(void)
{
    static const size_t sizes[] = {65537, 1 << 20, (1 << 20) + 1, 5000001, ODD};
    struct scene s;
    if (set_scene(&s, ODD))
        return 1;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (there_and_back(&s, sizes[i]))
            return 1;
    end_scene(&s);
    return 0;
}

static int copy_turned(void)
{
    enum { ROWS = 2100, COLUMNS = 1900 };
    const size_t nbytes = (size_t)ROWS * COLUMNS * 4, shape[] = {ROWS, COLUMNS};
    const ptrdiff_t turned[] = {4, ROWS * 4};
    struct scene s;
    if (set_scene(&s, nbytes))
        return 1;
    struct gg_end device = at(s.memory, 0), src = host_at(s.from), dst = host_at(s.to);
    if (gg_copy_nd(&device, NULL, &src, turned, 2, shape, 4, s.stream, 0) ||
        gg_copy_nd(&dst, turned, &device, NULL, 2, shape, 4, s.stream, 0))
        return wrong("a strided copy failed");
    if (memcmp(s.from, s.to, nbytes))
        return wrong("other bytes came back");
    end_scene(&s);
    return 0;
}

static int change_the_source(void)
{
    struct scene s;
    if (set_scene(&s, LARGE))
        return 1;
    memset(s.from, 0x55, LARGE);
    if (up(&s, LARGE))
        return wrong("no copy up");
    memset(s.from, 0, LARGE);
    if (down(&s, LARGE))
        return wrong("no copy down");
    for (size_t i = 0; i < LARGE; i++)
        if (s.to[i] != 0x55)
            return wrong("a change after the call was copied");
    end_scene(&s);
    return 0;
}

/* ---- several at once ---- */

struct both {
    struct scene scene;
    int failed;
    pthread_t thread;
};

static void *copy_often(void *argument)
{
    struct both *both = argument;
    for (int i = 0; i < 4 && !both->failed; i++)
        both->failed = there_and_back(&both->scene, ODD / 4);
    return NULL;
}

static int copy_in_threads(void)
{
    enum { THREADS = 4 };
    struct both both[THREADS] = {0};
    int failed = 0;
    for (int i = 0; i < THREADS; i++)
        if (set_scene(&both[i].scene, ODD / 4) ||
            pthread_create(&both[i].thread, NULL, copy_often, &both[i]))
            return 1;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(both[i].thread, NULL);
        failed |= both[i].failed;
        gg_memory_release(both[i].scene.memory);
        gg_stream_release(both[i].scene.stream);
        free(both[i].scene.from);
        free(both[i].scene.to);
    }
    gg_shutdown(1000000000);
    return failed;
}

/* ---- slots ---- */

static atomic_llong pinned, calls;

/* What is freed and allocated in these scenarios while the tracer looks is page-locked slots alone. */
static void count_pinned(void *user, const struct gg_trace *trace)
{
    (void)user;
    atomic_fetch_add(&calls, trace->op == GG_OP_copy);
    if (trace->status || trace->bytes < MANY_BYTES)
        return;
    if (trace->op == GG_OP_mem_alloc)
        atomic_fetch_add(&pinned, (long long)trace->bytes);
    if (trace->op == GG_OP_mem_free)
        atomic_fetch_sub(&pinned, (long long)trace->bytes);
}

static int trim_slots(void)
{
    static const struct gg_tracer tracer = {.struct_size = sizeof tracer, .post = count_pinned};
    struct scene s;
    if (set_scene(&s, LARGE))
        return 1;
    gg_set_tracer(&tracer);
    if (there_and_back(&s, LARGE))
        return 1;
    long long held = atomic_load(&pinned);
    if (held <= 0 || held > 128 << 20)
        return wrong("the slots are not within their budget");
    if (gg_stream_wait(s.stream, GG_FOREVER) || gg_device_trim(s.device))
        return wrong("no trim");
    if (atomic_load(&pinned))
        return wrong("trim did not give the slots back");
    if (there_and_back(&s, LARGE) || atomic_load(&pinned) != held)
        return wrong("the slots did not come again");
    gg_set_tracer(NULL);
    end_scene(&s);
    return 0;
}

/* Vendors copy it in one call, a lane in chunks. */
static int never_stage(void)
{
    static const struct gg_tracer tracer = {.struct_size = sizeof tracer, .post = count_pinned};
    struct scene s;
    setenv("GPUGLUE_STAGING", "never", 1);
    if (set_scene(&s, LARGE))
        return 1;
    gg_set_tracer(&tracer);
    if (there_and_back(&s, LARGE))
        return 1;
    gg_set_tracer(NULL);
    if (atomic_load(&pinned) || atomic_load(&calls) != 2)
        return wrong("it was staged");
    end_scene(&s);
    return 0;
}

/* It must come out well whatever was measured. */
static int choose_by_measuring(void)
{
    struct scene s;
    setenv("GPUGLUE_STAGING", "auto", 1);
    if (set_scene(&s, LARGE))
        return 1;
    for (int i = 0; i < 3; i++)
        if (there_and_back(&s, LARGE))
            return 1;
    end_scene(&s);
    return 0;
}

/* There is no room for the measurement at first. Says on the log what was measured, once it was. */
static int measure_again(void)
{
    struct scene s;
    struct gg_device_info info = {.struct_size = sizeof info};
    struct gg_pool_stats figures = {.struct_size = sizeof figures};
    setenv("GPUGLUE_STAGING", "auto", 1);
    if (set_scene(&s, LARGE) || gg_device_info(s.device, &info) ||
        gg_pool_stats(s.device, GG_MEMORY_DEVICE, &figures) ||
        gg_pool_set_limit(s.device, GG_MEMORY_DEVICE, figures.held_bytes))
        return wrong("no scene");
    if (info.flags & GG_DEVICE_INTEGRATED)
        return 77;
    if (there_and_back(&s, LARGE) || gg_pool_set_limit(s.device, GG_MEMORY_DEVICE, 0) ||
        there_and_back(&s, LARGE))
        return 1;
    end_scene(&s);
    return 0;
}

/* ---- threads that are refused, forks, the end ---- */

static int refuse_threads(void)
{
    struct rlimit before, none;
    struct scene s;
    if (set_scene(&s, LARGE) || there_and_back(&s, 1000))
        return 1;
    if (geteuid() == 0 && setuid(65534)) /* limits are not for root */
        return 77;
    if (getrlimit(RLIMIT_NPROC, &before))
        return 77;
    none = before;
    none.rlim_cur = 0;
    if (setrlimit(RLIMIT_NPROC, &none))
        return 77;
    if (there_and_back(&s, LARGE))
        return 1;
    setrlimit(RLIMIT_NPROC, &before); /* a leak checker has threads of its own */
    prctl(PR_SET_DUMPABLE, 1);
    end_scene(&s);
    return 0;
}

static atomic_int copies, enough;

static void *copy_until_enough(void *argument)
{
    struct scene *s = argument;
    while (!atomic_load(&enough)) {
        if (there_and_back(s, LARGE))
            return s;
        atomic_fetch_add(&copies, 1);
    }
    return NULL;
}

static int ask_in_child(const struct scene *s)
{
    uint64_t free_bytes, total;
    gg_status status = gg_device_memory_info(s->device, &free_bytes, &total);
    gg_memory_release(s->memory);
    gg_shutdown(1000000000);
    _exit(status == GG_ERR_FORKED ? 0 : 3);
}

static int fork_while_copying(void)
{
    static struct scene s;
    pthread_t thread;
    void *failed = NULL;
    int ended = 0;
    if (set_scene(&s, LARGE) || pthread_create(&thread, NULL, copy_until_enough, &s))
        return 1;
    for (int i = 0; i < 5 && !ended; i++) {
        int begun = atomic_load(&copies);
        pid_t child = fork();
        if (!child)
            ask_in_child(&s);
        if (child < 0 || waitpid(child, &ended, 0) != child)
            return wrong("no child");
        while (!ended && atomic_load(&copies) == begun)
            usleep(1000);
    }
    atomic_store(&enough, 1);
    pthread_join(thread, &failed);
    if (ended || failed)
        return wrong("parent and child disturb each other");
    end_scene(&s);
    return 0;
}

static void *copy_to_the_end(void *argument)
{
    struct scene *s = argument;
    while (!up(s, LARGE) && !down(s, LARGE))
        atomic_fetch_add(&copies, 1);
    return NULL;
}

static int end_while_copying(void)
{
    static struct scene s;
    pthread_t thread;
    if (set_scene(&s, LARGE) || pthread_create(&thread, NULL, copy_to_the_end, &s) ||
        pthread_detach(thread))
        return 1;
    while (!atomic_load(&copies))
        usleep(1000);
    gg_shutdown(1000000000);
    return 0;
}

/* ---- the tests: each in processes with one thread and with several ---- */

static void staged_copies_bring_every_byte(void **state)
{
    (void)state;
    assert_silent("copy_sizes");
}

static void staged_strided_copies_bring_every_element(void **state)
{
    (void)state;
    assert_silent("copy_turned");
}

static void the_source_of_a_staged_copy_may_change_once_it_has_returned(void **state)
{
    (void)state;
    assert_silent("change_the_source");
}

static void threads_share_the_lanes(void **state)
{
    (void)state;
    assert_silent("copy_in_threads");
}

static void slots_stay_within_their_budget_and_trim_gives_them_back(void **state)
{
    (void)state;
    assert_silent("trim_slots");
}

static void staging_can_be_switched_off(void **state)
{
    (void)state;
    assert_silent("never_stage");
}

static void what_was_measured_decides(void **state)
{
    (void)state;
    assert_silent("choose_by_measuring");
}

static void a_measurement_that_failed_is_made_again(void **state)
{
    char output[4000];
    (void)state;
    int code = start_scenario("measure_again", "GPUGLUE_LOG", "info", output, sizeof output);
    if (code == 77)
        skip();
    if (code || !strstr(output, "are staged from"))
        fail_msg("exit %d: %s", code, output);
}

static void without_more_threads_the_caller_copies_alone(void **state)
{
    char output[2000];
    int code;
    (void)state;
    code = start_scenario("refuse_threads", "GPUGLUE_COPY_THREADS", "4", output, sizeof output);
    if (code == 77)
        skip();
    if (code || !strstr(output, "refused a copy thread"))
        fail_msg("exit %d: %s", code, output);
}

static void a_fork_during_a_staged_copy_harms_nobody(void **state)
{
    (void)state;
    assert_silent("fork_while_copying");
}

static void a_process_may_end_during_a_staged_copy(void **state)
{
    (void)state;
    assert_silent("end_while_copying");
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"copy_sizes", copy_sizes},
        {"copy_turned", copy_turned},
        {"change_the_source", change_the_source},
        {"copy_in_threads", copy_in_threads},
        {"trim_slots", trim_slots},
        {"never_stage", never_stage},
        {"choose_by_measuring", choose_by_measuring},
        {"measure_again", measure_again},
        {"refuse_threads", refuse_threads},
        {"fork_while_copying", fork_while_copying},
        {"end_while_copying", end_while_copying},
    };
    struct CMUnitTest tests[] = {
        cmocka_unit_test(staged_copies_bring_every_byte),
        cmocka_unit_test(staged_strided_copies_bring_every_element),
        cmocka_unit_test(the_source_of_a_staged_copy_may_change_once_it_has_returned),
        cmocka_unit_test(threads_share_the_lanes),
        cmocka_unit_test(slots_stay_within_their_budget_and_trim_gives_them_back),
        cmocka_unit_test(staging_can_be_switched_off),
        cmocka_unit_test(what_was_measured_decides),
        cmocka_unit_test(a_measurement_that_failed_is_made_again),
        cmocka_unit_test(without_more_threads_the_caller_copies_alone),
        cmocka_unit_test(a_fork_during_a_staged_copy_harms_nobody),
        cmocka_unit_test(a_process_may_end_during_a_staged_copy),
    };
    setenv("GPUGLUE_STAGING", "always", 1); /* read at the first large copy of a scenario */
    int scenario = run_scenario(argc, argv, scenarios, sizeof scenarios / sizeof scenarios[0]);
    if (scenario >= 0)
        return scenario;
    return run_suite(argc, argv, "staging", tests, sizeof tests / sizeof tests[0]);
}
