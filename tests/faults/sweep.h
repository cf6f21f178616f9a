/* sweep.h: shared by the files of the fault sweep. */
#ifndef GPUGLUE_TESTS_SWEEP_H
#define GPUGLUE_TESTS_SWEEP_H

#include "program.h"

#include <sys/types.h>

#define NAMES_MAX 128
#define NAME_SIZE 64

enum class { CLASS_ERROR, CLASS_MEMORY, CLASS_LOST, CLASSES };

struct fault {
    char name[NAME_SIZE]; /* the vendor's function; "": no fault */
    int nth;
    bool onwards; /* all later calls of it fail too */
    enum class class;
};

/* The simulated driver's report at process exit. */
struct report {
    size_t count;
    struct {
        char name[NAME_SIZE];
        int calls, reported, silent; /* injected failures that a step reported, or no step */
    } name[NAMES_MAX];
    int leaked; /* objects for which no destroy was called */
    bool there;
};

/* One process with one fault. */
struct trial {
    struct fault fault;
    struct outcome *outcome; /* shared with the process */
    char directory[96];      /* of its report and its output */
    pid_t child;             /* 0: none */
    int ended;               /* the status from waitpid */
    struct report report;
};

enum verdict {
    RIGHT,
    NOT_REACHED, /* the program did not make that call */
    CRASHED,
    HUNG,
    LEAKED_HOST_MEMORY,
    LEAKED_VENDOR_OBJECTS,
    WRONG,
    VERDICTS
};

/* report.c */
void read_report(const char *directory, struct report *report);
int calls_of(const struct report *report, const char *name);
bool output_has(const char *directory, const char *text);
void print_output(const char *directory);

/* judge.c. @p reported: the status of a step differs from the run without the fault. @p why may be
 * empty. */
enum verdict judge(const struct trial *trial, const struct outcome *baseline, bool *reported,
                   char *why, size_t size);
/* Whether failures of this function may be silent, but at least one must be reported. */
bool must_be_reported_once(const char *name);
/* Whether some or all of its failures may be silent. */
bool is_exempt(const char *name);
const char *class_name(enum class class);
int code_of(const char *name, enum class class);

#endif
