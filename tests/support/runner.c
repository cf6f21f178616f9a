/* runner.c: selects the tests and runs them in children, or runs one test in a child. */
#include "runner.h"

#include "children.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct suite *suites, **suites_end = &suites;
static const struct program *program;
static const struct suite *current; /* the suite of the test or scenario that this process runs */
static const char *target;
static bool was_skipped;

void suite_add(struct suite *suite)
{
    *suites_end = suite;
    suites_end = &suite->next;
}

/* ---- in a child ---- */

void skip_because(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf(SKIP_MARK);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    fflush(stdout);
    was_skipped = true;
    _skip(__FILE__, __LINE__);
    abort(); /* not reached: the test has ended */
}

static struct CMUnitTest with_fixture(const struct CMUnitTest *test)
{
    struct CMUnitTest made = *test;
    if (!made.initial_state && !made.setup_func && !made.teardown_func) {
        made.setup_func = program->setup;
        made.teardown_func = program->teardown;
    }
    return made;
}

static void end(void)
{
    if (program->end)
        program->end();
}

static bool excused(void)
{
    const char *reason = program->excuse ? program->excuse() : NULL;
    if (reason)
        printf(SKIP_MARK "%s\n", reason);
    return reason;
}

static int run_one(const struct suite *suite, const struct CMUnitTest *test)
{
    struct CMUnitTest only[] = {with_fixture(test)};
    current = suite;
    if (_cmocka_run_group_tests(suite->name, only, 1, NULL, NULL))
        return excused() ? SKIPPED : 1;
    return was_skipped ? SKIPPED : PASSED;
}

void become_scenario(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", current->name, name);
    execl("/proc/self/exe", "scenario", target, "--run-scenario", path, (char *)NULL);
    _exit(127);
}

/* ---- names: "suite", "suite/test" or "test" ---- */

static bool begins_with_suite(const char *name, const struct suite *suite)
{
    size_t length = strlen(suite->name);
    return strncmp(name, suite->name, length) == 0 && (name[length] == '/' || !name[length]);
}

static bool is_named(const char *name, const struct suite *suite, const char *test)
{
    if (strcmp(name, suite->name) == 0 || strcmp(name, test) == 0)
        return true;
    return begins_with_suite(name, suite) && strcmp(name + strlen(suite->name) + 1, test) == 0;
}

/* ---- the command line ---- */

enum mode { RUN, LIST, HERE, CHILD_TEST, CHILD_SCENARIO, CHILD_AVAILABLE };
struct options {
    char **names;
    size_t name_count;
    char **without; /* suites to leave out, unless NAME is SUITE or SUITE/TEST */
    size_t without_count;
    const char *only; /* in a child: "suite/test" or "suite/scenario" */
    enum mode mode;
    struct limits limits;
};

static int usage(const char *self)
{
    fprintf(stderr,
            "usage: %s %s [-j N] [--timeout SECONDS] [--verbose] [--without SUITE]... [NAME]...\n"
            "       NAME is SUITE, SUITE/TEST or TEST; --suite SUITE is the same as SUITE\n"
            "       %s %s --here [NAME]...    in this process, for a debugger\n"
            "       %s --list [NAME]...\n",
            self, program->target, self, program->target, self);
    return 2;
}

static bool take_option(struct options *options, int option)
{
    switch (option) {
    case 'j':
        return (options->limits.jobs = atol(optarg)) > 0;
    case 't':
        return (options->limits.seconds = atol(optarg)) > 0;
    case 'v':
        options->limits.verbose = true;
        return true;
    case 's':
        options->names[options->name_count++] = optarg;
        return true;
    case 'w':
        options->without[options->without_count++] = optarg;
        return true;
    case LIST:
    case HERE:
    case CHILD_AVAILABLE:
        options->mode = (enum mode)option;
        return true;
    case CHILD_TEST:
    case CHILD_SCENARIO:
        options->only = optarg;
        options->mode = (enum mode)option;
        return true;
    default:
        return false;
    }
}

static bool read_options(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"jobs", required_argument, NULL, 'j'},
        {"timeout", required_argument, NULL, 't'},
        {"verbose", no_argument, NULL, 'v'},
        {"suite", required_argument, NULL, 's'},
        {"without", required_argument, NULL, 'w'},
        {"list", no_argument, NULL, LIST},
        {"here", no_argument, NULL, HERE},
        {"run-test", required_argument, NULL, CHILD_TEST},
        {"run-scenario", required_argument, NULL, CHILD_SCENARIO},
        {"run-available", no_argument, NULL, CHILD_AVAILABLE},
        {NULL, 0, NULL, 0},
    };
    int option;
    options->names = calloc((size_t)argc + 1, sizeof *options->names);
    options->without = calloc((size_t)argc + 1, sizeof *options->without);
    if (!options->names || !options->without)
        return false;
    while ((option = getopt_long(argc, argv, "j:v", known, NULL)) != -1)
        if (!take_option(options, option))
            return false;
    if (options->mode != LIST) {
        target = argv[optind];
        optind += optind < argc;
    }
    while (optind < argc)
        options->names[options->name_count++] = argv[optind++];
    return target || options->mode == LIST;
}

/* ---- the modes ---- */

/* Returns a name that matches no test, or NULL. A mistyped name must not pass. */
static const char *unknown_name(const struct options *options)
{
    for (size_t i = 0; i < options->name_count; i++) {
        bool found = false;
        for (const struct suite *suite = suites; suite && !found; suite = suite->next)
            for (size_t t = 0; t < suite->test_count && !found; t++)
                found = is_named(options->names[i], suite, suite->tests[t].name);
        if (!found)
            return options->names[i];
    }
    return NULL;
}

static bool is_left_out(const struct options *options, const struct suite *suite)
{
    for (size_t i = 0; i < options->without_count; i++)
        if (strcmp(options->without[i], suite->name) == 0)
            return true;
    return false;
}

static bool is_chosen(const struct options *options, const struct suite *suite, const char *test)
{
    const bool left_out = is_left_out(options, suite);
    for (size_t i = 0; i < options->name_count; i++)
        if (is_named(options->names[i], suite, test) &&
            (!left_out || begins_with_suite(options->names[i], suite)))
            return true;
    return options->name_count == 0 && !left_out;
}

/* Calls @p visit for each chosen test; returns the sum of its results. */
static int for_each_chosen(const struct options *options,
                           int (*visit)(const struct suite *, const struct CMUnitTest *))
{
    int sum = 0;
    for (const struct suite *suite = suites; suite; suite = suite->next)
        for (size_t i = 0; i < suite->test_count; i++)
            if (is_chosen(options, suite, suite->tests[i].name))
                sum += visit(suite, &suite->tests[i]);
    return sum;
}

static int list_test(const struct suite *suite, const struct CMUnitTest *test)
{
    printf("%s/%s\n", suite->name, test->name);
    return 0;
}

static int run_one_here(const struct suite *suite, const struct CMUnitTest *test)
{
    was_skipped = false;
    return run_one(suite, test) == 1;
}

static int add_test(const struct suite *suite, const struct CMUnitTest *test)
{
    children_add(suite->name, test->name);
    return 1;
}

/* Finds the test "suite/test" that this child was started for. */
static const struct CMUnitTest *find_test(const char *path, const struct suite **suite)
{
    for (*suite = suites; *suite; *suite = (*suite)->next)
        for (size_t i = 0; i < (*suite)->test_count; i++)
            if (is_named(path, *suite, (*suite)->tests[i].name))
                return &(*suite)->tests[i];
    return NULL;
}

static int run_found(const struct suite *suite, const struct scenario *scenario)
{
    current = suite;
    int status = scenario->run();
    end();
    return status && status != SKIPPED && excused() ? SKIPPED : status;
}

static int run_scenario(const char *path)
{
    for (const struct suite *suite = suites; suite; suite = suite->next)
        for (size_t i = 0; i < suite->scenario_count; i++)
            if (is_named(path, suite, suite->scenarios[i].name))
                return run_found(suite, &suite->scenarios[i]);
    fprintf(stderr, "there is no scenario %s\n", path);
    return 2;
}

static int available(void)
{
    return program->available ? program->available() : 0;
}

/* The parent has found the target available, so an unavailable target is a failure here. */
static int run_only(const char *path)
{
    const struct suite *suite;
    const struct CMUnitTest *test = find_test(path, &suite);
    int result;
    if (test && suite->prepare)
        suite->prepare();
    if (!test || available())
        return 1;
    result = run_one(suite, test);
    end();
    return result;
}

static int prepare_suite(const struct suite *suite, const struct CMUnitTest *test)
{
    if (suite->prepare && test == suite->tests)
        suite->prepare();
    return 0;
}

static int run_here(const struct options *options)
{
    for_each_chosen(options, prepare_suite);
    int status = available();
    if (status)
        return status;
    status = for_each_chosen(options, run_one_here) > 0;
    end();
    return status;
}

static int run_in_children(const struct options *options)
{
    int status = children_available(target);
    if (status)
        return status;
    if (!for_each_chosen(options, add_test)) {
        fprintf(stderr, "--without leaves out all tests\n");
        return 2;
    }
    return children_run(target, &options->limits);
}

static int run_mode(const struct options *options)
{
    switch (options->mode) {
    case LIST:
        return for_each_chosen(options, list_test);
    case HERE:
        return run_here(options);
    case CHILD_TEST:
        return run_only(options->only);
    case CHILD_SCENARIO:
        return run_scenario(options->only);
    case CHILD_AVAILABLE:
        return available();
    case RUN:
        break;
    }
    return run_in_children(options);
}

static int run_options(const struct options *options)
{
    const char *unknown = unknown_name(options);
    if (unknown) {
        fprintf(stderr, "there is no suite or test %s; --list lists them\n", unknown);
        return 2;
    }
    if (options->mode != LIST && options->mode != RUN)
        program->prepare(target);
    return run_mode(options);
}

int run_program(int argc, char **argv, const struct program *of_tests)
{
    struct options options = {.limits = {.jobs = 0, .seconds = 120}};
    program = of_tests;
    const int status = read_options(argc, argv, &options) ? run_options(&options) : usage(argv[0]);
    free(options.names);
    free(options.without);
    return status;
}
