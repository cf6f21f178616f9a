/* inside.h: shared by the tests of the core. The core makes many decisions only once per process, so
 * each case runs in a child of a process that has never called it. */
#ifndef GPUGLUE_TESTS_INSIDE_H
#define GPUGLUE_TESTS_INSIDE_H

#include "../support/runner.h"

#include "base/error.h"
#include "loader/loader.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char fixtures[PATH_MAX]; /* the first argument of the program */
extern char directory[64];      /* an empty directory for each case */

/* In a child a failed check prints itself and ends the process. */
static inline void check(int good, const char *what, const char *file, int line)
{
    if (good)
        return;
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    _exit(1);
}
#define CHECK(condition) check((condition) != 0, #condition, __FILE__, __LINE__)

static inline void check_has(const char *text, const char *part, const char *file, int line)
{
    if (text && strstr(text, part))
        return;
    fprintf(stderr, "%s:%d: \"%s\" is not in \"%s\"\n", file, line, part, text ? text : "NULL");
    _exit(1);
}
#define CHECK_HAS(text, part) check_has(text, part, __FILE__, __LINE__)

static inline void check_same(const char *text, const char *same, const char *file, int line)
{
    if (text && !strcmp(text, same))
        return;
    fprintf(stderr, "%s:%d: \"%s\" is not \"%s\"\n", file, line, text ? text : "NULL", same);
    _exit(1);
}
#define CHECK_SAME(text, same) check_same(text, same, __FILE__, __LINE__)

static inline const char *error_message(void)
{
    struct gg_error *error = calloc(1, sizeof *error); /* not freed: the case ends soon */
    CHECK(error != NULL);
    error->struct_size = sizeof *error;
    gg_last_error(error);
    return error->message;
}

/* @p body in a forked child; the status that wait gives. */
static inline int forked(void (*body)(void))
{
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* cmocka would continue with the next test here */
        signal(SIGABRT, SIG_DFL);
        body();
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    return status;
}

static inline void remove_directory(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf -- '%s'", directory);
    if (directory[0] && system(command))
        print_message("%s could not be removed\n", directory);
}

/* One case. */
static inline void in_child(void (*body)(void))
{
    snprintf(directory, sizeof directory, "/tmp/gpuglue-core-XXXXXX");
    assert_non_null(mkdtemp(directory));
    int status = forked(body);
    remove_directory();
    assert_int_equal(status, 0);
}

/* The path of @p name in @p directory. It stays reachable until the case ends, for the leak checker. */
static inline const char *joined(const char *directory, const char *name)
{
    static char *paths[64];
    static size_t count;
    CHECK(count < sizeof paths / sizeof paths[0]);
    CHECK(asprintf(&paths[count], "%s/%s", directory, name) > 0);
    return paths[count++];
}
static inline const char *inside(const char *name)
{
    return joined(directory, name);
}
static inline const char *fixture(const char *name)
{
    return joined(fixtures, name);
}

static inline const char *make_directory(const char *name, mode_t mode)
{
    const char *path = inside(name);
    CHECK(mkdir(path, 0755) == 0);
    CHECK(chmod(path, mode) == 0);
    return path;
}

static inline const char *write_file(const char *path, const void *data, size_t size)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    CHECK(file >= 0);
    CHECK(write(file, data, size) == (ssize_t)size);
    CHECK(fchmod(file, 0755) == 0);
    close(file);
    return path;
}

static inline const char *copy_fixture(const char *name, const char *path)
{
    char data[4096];
    ssize_t size;
    int from = open(fixture(name), O_RDONLY), to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    CHECK(from >= 0);
    CHECK(to >= 0);
    while ((size = read(from, data, sizeof data)) > 0)
        CHECK(write(to, data, (size_t)size) == size);
    close(from);
    close(to);
    return path;
}

/* ---- reports ---- */

static inline struct gg_reports *reports(enum gg_probe_level level)
{
    struct gg_reports *all = NULL;
    CHECK(gg_probe(level, &all) == GG_OK);
    return all;
}

static inline const struct gg_report *report_in(const struct gg_reports *all, const char *name)
{
    for (size_t i = 0; i < all->count; i++)
        if (!strcmp(all->report[i].name, name))
            return &all->report[i];
    return NULL;
}

/* Never freed: the case ends soon. */
static inline const struct gg_report *report_of(enum gg_probe_level level, const char *name)
{
    const struct gg_report *report = report_in(reports(level), name);
    check(report != NULL, name, "report_of", 0);
    return report;
}

/* The plugin gpuglue_@p name.so of the fixtures, registered and probed. */
static inline const struct gg_report *registered(const char *name)
{
    char file[64];
    snprintf(file, sizeof file, "gpuglue_%s.so", name);
    CHECK(gg_register_plugin(fixture(file)) == GG_OK);
    return report_of(GG_ACTIVE, name);
}

#endif
