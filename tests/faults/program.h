/* program.h: a program that uses every operation, for the fault sweep. A new operation is a new
 * step: a function in a steps_*.c file and a row in that file's table. */
#ifndef GPUGLUE_TESTS_PROGRAM_H
#define GPUGLUE_TESTS_PROGRAM_H

#include <gpuglue/gpuglue.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STEPS_MAX 256
#define SKIPPED (-1) /* an object that the step needs does not exist */
#define SMALL 4096u
#define LARGE ((size_t)1 << 20) /* too many bytes for a pinned slot */

/* The output of a step's call. It is filled with a pattern before the step, and must not change if
 * the step fails. On success the step copies the values that later steps need. */
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
    gg_graph *graph;
    gg_comm *comm;
    uint32_t shape[2];
};

/* The objects created so far; NULL if the creation failed. */
struct program {
    const char *backend;
    gg_device *device, *other;
    gg_stream *first, *second, *urgent, *borrowed, *ownerless, *foreign, *of_other;
    gg_event *plain, *blocking, *start, *stop, *borrowed_event, *event_of_other;
    gg_memory *small, *large, *second_block, *pinned, *pinned_second, *empty, *wrapped,
        *memory_of_other;
    gg_memory *registered, *managed, *imported;
    gg_scope *scope;
    unsigned char *host; /* LARGE bytes of pageable memory */
    bool failed;         /* a step failed, so later data may be wrong */
    bool sized;          /* the step set the first word of the output, its struct_size */
    int given;           /* owners passed to gpuglue … */
    atomic_int released; /* … and released by it */
    atomic_int called;   /* host functions that ran */
    const char *wrong;   /* an error that no fault may cause */
};

struct step {
    const char *name;
    int (*run)(struct program *p, union output *out); /* a gg_status, or SKIPPED */
    gg_status expected;                               /* the status without a fault */
};

struct steps {
    const struct step *step;
    size_t count;
};
extern const struct steps device_steps, memory_steps, copies_steps, kinds_steps, ipc_steps,
    kernels_steps, graph_steps, comm_steps, staged_steps, work_steps, borrowed_steps, other_steps,
    end_steps;

/* A step's status, with the message if it failed. */
struct step_result {
    const char *name;
    int status;
    bool unexpected; /* a failure, also without a fault */
    char message[1024];
};

struct outcome {
    int count;
    struct step_result result[STEPS_MAX];
    char wrong[256]; /* "": no error */
    int kept;        /* owners that were not released */
};

/* Runs all steps. Each step appends to @p out, so that the last step is known after a crash. */
void run_program(const char *backend, struct outcome *out);

/* Starts the exporting process of steps_ipc.c. Call it before any other function. */
void start_exporter(const char *backend);

/* For the steps. */
void release_owner(void *owner); /* counts its calls */
int check_bytes(struct program *p, const unsigned char *bytes, size_t count, unsigned char value,
                const char *what);

#endif
