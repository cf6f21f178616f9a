/* runner.h: a test program of many suites, which runs each test in its own process. */
#ifndef GPUGLUE_TESTS_RUNNER_H
#define GPUGLUE_TESTS_RUNNER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A part of a test that needs its own process. */
struct scenario {
    const char *name;
    int (*run)(void); /* returns 0 if it passed, 77 if it is not possible here */
};

struct suite {
    const char *name;
    const struct CMUnitTest *tests;
    size_t test_count;
    const struct scenario *scenarios;
    size_t scenario_count;
    void (*prepare)(void); /* or NULL; runs in the process of each test, before anything else */
    struct suite *next;
};

/* Settings of all tests of a program. */
struct program {
    const char *target; /* the name of the first argument in the usage line */
    /* Runs before each test or scenario, in its process. */
    void (*prepare)(const char *target);
    /* Runs before all tests, in its own process. Returns 0, or prints a message and returns the
     * program's exit status. */
    int (*available)(void);
    /* For tests without their own setup and teardown. */
    CMFixtureFunction setup, teardown;
    void (*end)(void); /* after a test or a scenario, or after all tests of a process */
    /* Why a test that has failed so far could not pass here, or NULL: then it is skipped. */
    const char *(*excuse)(void);
};

/* Adds the suite of a file to the program that it is linked into. */
#define ADD_SUITE(NAME, TESTS, SCENARIOS, SCENARIO_COUNT, PREPARE)                               \
    __attribute__((constructor)) static void add_suite_##NAME(void)                              \
    {                                                                                            \
        static struct suite suite = {#NAME,   TESTS, COUNT_OF(TESTS), SCENARIOS, SCENARIO_COUNT, \
                                     PREPARE, NULL};                                             \
        suite_add(&suite);                                                                       \
    }                                                                                            \
    _Static_assert(COUNT_OF(TESTS) > 0, "a suite has tests")
#define COUNT_OF(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])
#define SUITE(NAME, TESTS) ADD_SUITE(NAME, TESTS, NULL, 0, NULL)
#define SUITE_PREPARED(NAME, TESTS, PREPARE) ADD_SUITE(NAME, TESTS, NULL, 0, PREPARE)
#define SUITE_AND_SCENARIOS(NAME, TESTS, SCENARIOS) \
    ADD_SUITE(NAME, TESTS, SCENARIOS, COUNT_OF(SCENARIOS), NULL)
void suite_add(struct suite *suite);

/* The whole of main(). */
int run_program(int argc, char **argv, const struct program *program);

/* Ends the running test as skipped. Every skip has a reason, so cmocka's skip() is disabled. */
#undef skip
#define skip() _Static_assert(0, "call skip_because() with a reason")
_Noreturn void skip_because(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Replaces this process with one that runs a scenario of the running suite. Call it in a child. */
_Noreturn void become_scenario(const char *name);

#endif
