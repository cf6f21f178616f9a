/* children.h: tests in processes of their own, several at a time. */
#ifndef GPUGLUE_TESTS_CHILDREN_H
#define GPUGLUE_TESTS_CHILDREN_H

#include <stdbool.h>

/* Exit statuses of a test. PASSED is not 0, because a test may call exit(0) by mistake. */
#define PASSED 88
#define SKIPPED 77
/* A skipped test prints this before the reason. */
#define SKIP_MARK "skipped: "

struct limits {
    long jobs;    /* tests at a time; 0: as many as there are processors */
    long seconds; /* time limit: a test is then killed with its processes */
    bool verbose; /* also show the output of passed tests */
};

/* Checks that tests can run on @p target. Returns 0, or an exit status after a message. */
int children_available(const char *target);
void children_add(const char *suite, const char *test);
/* Runs all tests that were added. Returns 0, or 1 if a test failed. */
int children_run(const char *target, const struct limits *limits);

#endif
