/* program.h: one program that uses every operation, for the fault sweep. A new operation is a step:
 * a function in the steps_*.c of its row, and a line in that file's table. */
#ifndef GPUGLUE_TESTS_PROGRAM_H
#define GPUGLUE_TESTS_PROGRAM_H

#include <gpuglue/gpuglue.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STEPS_MAX 192
#define SKIPPED (-1) /* what the step needs was not made */
#define SMALL 4096u
#define LARGE ((size_t)1 << 20) /* too many bytes for a pinned slot */

/* What a step lets a call write into: filled with a pattern before the step and compared after one that
 * failed. On success the step takes what it wants. */
union output {
    gg_device *device;
    gg_stream *stream;
    gg_event *event;
    gg_memory *memory;
    gg_scope *scope;
    uint64_t handles[4];
    int64_t number;
    int32_t numbers[2];
    double milliseconds;
    struct gg_device_info info;
    struct gg_memory_stats stats;
    struct gg_pointer_info pointer;
    struct gg_ipc_handle handle;
    uint32_t shape[2];
};

/* What was made so far; NULL where that failed. */
struct program {
    const char *backend;
    gg_device *device, *other;
    gg_stream *first, *second, *urgent, *borrowed, *ownerless, *foreign, *of_other;
    gg_event *plain, *blocking, *start, *stop, *borrowed_event, *event_of_other;
    gg_memory *small, *large, *twin, *pinned, *pinned_twin, *empty, *wrapped, *memory_of_other;
    gg_memory *registered, *managed, *imported;
    gg_scope *scope;
    unsigned char *host; /* LARGE bytes of ordinary memory */
    bool failed;         /* a step so far that should not: from then on data may be wrong */
    bool sized;          /* the step has set the first word of the output, which is its size */
    int given;           /* owners that gpuglue was handed … */
    atomic_int released; /* … and has let go of */
    atomic_int called;   /* host functions that ran */
    const char *wrong;   /* what a step found that no fault excuses */
};

struct step {
    const char *name;
    int (*run)(struct program *p, union output *out); /* a gg_status, or SKIPPED */
    gg_status expected;                               /* where not success: also without a fault */
};

struct steps {
    const struct step *step;
    size_t count;
};
extern const struct steps device_steps, memory_steps, copies_steps, kinds_steps, ipc_steps,
    kernels_steps, work_steps, borrowed_steps, other_steps, end_steps;

/* A step's answer, with what a failure said. */
struct answer {
    const char *name;
    int status;
    char message[1024];
};

struct outcome {
    int count;
    struct answer answer[STEPS_MAX];
    char wrong[256]; /* "": nothing */
    int kept;        /* owners that were not let go */
};

/* Runs all steps. What is in @p out grows with each step, so that a crash tells how far it came. */
void run_program(const char *backend, struct outcome *out);

/* Before anything else: the other process of steps_ipc.c. */
void start_exporter(const char *backend);

/* For steps. */
void release_owner(void *owner); /* counts */
int check_bytes(struct program *p, const unsigned char *bytes, size_t count, unsigned char value,
                const char *what);

#endif
