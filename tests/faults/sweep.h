/* sweep.h: what the parts of the fault sweep share. */
#ifndef GPUGLUE_TESTS_SWEEP_H
#define GPUGLUE_TESTS_SWEEP_H

#include "program.h"

#include <sys/types.h>

#define NAMES_MAX 128
#define NAME_SIZE 64

enum class { CLASS_ERROR, CLASS_MEMORY, CLASS_LOST, CLASSES };

struct fault {
    char name[NAME_SIZE]; /* of the vendor's function; "": no fault */
    int nth;
    bool onwards; /* and all calls of it after that */
    enum class class;
};

/* What the simulated driver reports when a process ends. */
struct report {
    size_t count;
    struct {
        char name[NAME_SIZE];
        int calls, told; /* told: injected failures that a step noticed */
    } name[NAMES_MAX];
    int leaked; /* objects for which no destroy was tried */
    bool there;
};

/* One process with one fault. */
struct trial {
    struct fault fault;
    struct outcome *outcome; /* shared with the process */
    char folder[96];         /* its report and its output */
    pid_t child;             /* 0: none */
    int ended;               /* as waitpid says */
    struct report report;
};

enum verdict {
    RIGHT,
    NOT_REACHED, /* the program took another way and did not make that call */
    CRASHED,
    HUNG,
    LEAKED_HOST_MEMORY,
    LEAKED_VENDOR_OBJECTS,
    WRONG,
    VERDICTS
};

/* report.c */
void read_report(const char *folder, struct report *report);
int calls_of(const struct report *report, const char *name);
bool output_has(const char *folder, const char *text);
void print_output(const char *folder);

/* judge.c. @p told: some step answered otherwise than without the fault. @p why is empty where the
 * verdict says all. */
enum verdict judge(const struct trial *trial, const struct outcome *baseline, bool *told, char *why,
                   size_t size);
/* Whether the failures of this function may be silent, but not all of them. */
bool must_be_told_once(const char *name);
const char *class_name(enum class class);
int code_of(const char *name, enum class class);

#endif
