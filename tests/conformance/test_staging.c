/* test_staging.c: large copies of pageable memory through pinned slots: their bytes, when they
 * return, and the lifetime of slots and threads. Each scenario is a process in which staging is
 * forced. */
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

/* ---- bytes ---- */

static int copy_sizes(void)
{
    static const size_t sizes[] = {65537,   100000,        131072,  131073,
                                   1 << 20, (1 << 20) + 1, 5000001, ODD};
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
    struct gg_copy_operand device = at(s.memory, 0), src = host_at(s.from), dst = host_at(s.to);
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

/* ---- several copies at once ---- */

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
    gg_shutdown(GG_FOREVER);
    return failed;
}

/* ---- slots ---- */

static atomic_llong pinned, calls;

static bool op_is(const struct gg_trace *trace, enum gg_op one, enum gg_op other)
{
    return trace->op == one || trace->op == other;
}

/* The only memory that these scenarios allocate, register or free under the tracer is pinned slots. */
static void count_pinned(void *user, const struct gg_trace *trace)
{
    (void)user;
    atomic_fetch_add(&calls, trace->op == GG_OP_copy);
    if (trace->status > GG_NOT_READY || trace->bytes < MANY_BYTES)
        return;
    if (op_is(trace, GG_OP_mem_alloc, GG_OP_mem_register))
        atomic_fetch_add(&pinned, (long long)trace->bytes);
    if (op_is(trace, GG_OP_mem_free, GG_OP_mem_unregister))
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

/* The driver copies it in one call, a staging lane in chunks. */
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

static atomic_llong copied;

static void count_copied(void *user, const struct gg_trace *trace)
{
    (void)user;
    if (trace->op == GG_OP_copy)
        atomic_fetch_add(&copied, (long long)trace->bytes);
}

/* The bytes must be right whatever is chosen, and no others may be copied. */
static int choose_while_copying(void)
{
    static const struct gg_tracer tracer = {.struct_size = sizeof tracer, .post = count_copied};
    enum { TIMES = 20 };
    struct scene s;
    setenv("GPUGLUE_STAGING", "auto", 1);
    if (set_scene(&s, LARGE))
        return 1;
    gg_set_tracer(&tracer);
    for (int i = 0; i < TIMES; i++)
        if (there_and_back(&s, LARGE))
            return 1;
    gg_set_tracer(NULL);
    if (atomic_load(&copied) != 2ll * TIMES * LARGE)
        return wrong("other copies were made than those of the program");
    end_scene(&s);
    return 0;
}

/* ---- threads that cannot be created, forks, the exit ---- */

static int refuse_threads(void)
{
    struct rlimit before, none;
    struct scene s;
    if (set_scene(&s, LARGE) || there_and_back(&s, 1000))
        return 1;
    if (geteuid() == 0 && setuid(65534)) /* root has no such limits */
        return not_here("this process cannot become another user");
    if (getrlimit(RLIMIT_NPROC, &before))
        return not_here("the number of threads has no limit");
    none = before;
    none.rlim_cur = 0;
    if (setrlimit(RLIMIT_NPROC, &none))
        return not_here("the number of threads cannot be limited");
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
    gg_shutdown(GG_FOREVER);
    return 0;
}

/* ---- the tests, each in processes with one copy thread and with several ---- */

static void staged_copies_are_complete(void **state)
{
    (void)state;
    assert_silent("copy_sizes");
}

static void staged_strided_copies_are_complete(void **state)
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

static void staging_buffers_stay_within_their_budget_and_trim_frees_them(void **state)
{
    (void)state;
    assert_silent("trim_slots");
}

static void staging_can_be_switched_off(void **state)
{
    (void)state;
    assert_silent("never_stage");
}

static void the_policy_learns_from_the_copies_of_the_program_alone(void **state)
{
    (void)state;
    assert_silent("choose_while_copying");
}

static void without_more_threads_the_caller_copies_alone(void **state)
{
    char output[2000];
    int code;
    (void)state;
    setenv("GPUGLUE_STAGING", "always", 1);
    code = start_scenario("refuse_threads", "GPUGLUE_COPY_THREADS", "4", output, sizeof output);
    if (code || !strstr(output, "refused to start a copy thread"))
        fail_msg("exit %d: %s", code, output);
}

static void after_a_fork_during_a_staged_copy_both_processes_work(void **state)
{
    (void)state;
    assert_silent("fork_while_copying");
}

static void a_process_may_end_during_a_staged_copy(void **state)
{
    (void)state;
    assert_silent("end_while_copying");
}

static const struct scenario scenarios[] = {
    {"copy_sizes", copy_sizes},
    {"copy_turned", copy_turned},
    {"change_the_source", change_the_source},
    {"copy_in_threads", copy_in_threads},
    {"trim_slots", trim_slots},
    {"never_stage", never_stage},
    {"choose_while_copying", choose_while_copying},
    {"refuse_threads", refuse_threads},
    {"fork_while_copying", fork_while_copying},
    {"end_while_copying", end_while_copying},
};

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(staged_copies_are_complete),
    cmocka_unit_test(staged_strided_copies_are_complete),
    cmocka_unit_test(the_source_of_a_staged_copy_may_change_once_it_has_returned),
    cmocka_unit_test(threads_share_the_lanes),
    cmocka_unit_test(staging_buffers_stay_within_their_budget_and_trim_frees_them),
    cmocka_unit_test(staging_can_be_switched_off),
    cmocka_unit_test(the_policy_learns_from_the_copies_of_the_program_alone),
    cmocka_unit_test(without_more_threads_the_caller_copies_alone),
    cmocka_unit_test(after_a_fork_during_a_staged_copy_both_processes_work),
    cmocka_unit_test(a_process_may_end_during_a_staged_copy),
};
SUITE_AND_SCENARIOS(staging, tests, scenarios);
