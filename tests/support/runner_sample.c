/* runner_sample.c: a program with a test for each result that test_runner.py expects. */
#include "runner.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void passes(void **state)
{
    (void)state;
}

static void fails(void **state)
{
    (void)state;
    assert_int_equal(1, 2);
}

static void is_killed(void **state)
{
    (void)state;
    raise(SIGKILL);
}

/* The child process of this test must end with it. */
static void hangs(void **state)
{
    (void)state;
    print_message("hangs with %d\n", (int)getpid());
    if (fork() == 0)
        print_message("and %d\n", (int)getpid());
    for (;;)
        pause();
}

static void is_skipped(void **state)
{
    (void)state;
    skip_because("there is no %s", "moon");
}

static void exits(void **state)
{
    (void)state;
    exit(0);
}

static void exits_as_skipped(void **state)
{
    (void)state;
    exit(77);
}

static void exec_of_a_scenario(void **state)
{
    (void)state;
    become_scenario("scenario");
}

static int scenario(void)
{
    return 3;
}

static const struct scenario scenarios[] = {{"scenario", scenario}};

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(hangs),
    cmocka_unit_test(passes),
    cmocka_unit_test(fails),
    cmocka_unit_test(is_killed),
    cmocka_unit_test(exits),
    cmocka_unit_test(is_skipped),
    cmocka_unit_test(exits_as_skipped),
    cmocka_unit_test(exec_of_a_scenario),
};
SUITE_AND_SCENARIOS(sample, tests, scenarios);

static const struct CMUnitTest others[] = {cmocka_unit_test(passes)};
SUITE(other, others);

static void prepare(const char *target)
{
    (void)target;
}

static int available(void)
{
    return getenv("SAMPLE_ABSENT") ? 77 : 0;
}

static const char *excuse(void)
{
    return getenv("SAMPLE_EXCUSE");
}

int main(int argc, char **argv)
{
    static const struct program program = {
        .target = "TARGET", .prepare = prepare, .available = available, .excuse = excuse};
    return run_program(argc, argv, &program);
}
