/* program.c: runs the steps in turn and checks the state after each. */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATTERN 0xA5

void release_owner(void *owner)
{
    struct program *p = owner;
    atomic_fetch_add(&p->released, 1);
}

int check_bytes(struct program *p, const unsigned char *bytes, size_t count, unsigned char value,
                const char *what)
{
    size_t right = 0;
    while (right < count && bytes[right] == value)
        right++;
    if (right < count && !p->failed && !p->wrong)
        p->wrong = what;
    return GG_OK;
}

static bool untouched(const struct program *p, const union output *out)
{
    const unsigned char *bytes = (const unsigned char *)out;
    for (size_t i = p->sized ? sizeof(uint32_t) : 0; i < sizeof *out; i++)
        if (bytes[i] != PATTERN)
            return false;
    return true;
}

static void note_failure(struct program *p, const union output *out, struct step_result *result)
{
    struct gg_error error = {.struct_size = sizeof error};
    gg_last_error(&error);
    snprintf(result->message, sizeof result->message, "%.1023s", error.message);
    if ((int)error.status != result->status && !p->wrong)
        p->wrong = "the thread's last error is of another failure";
    if (!untouched(p, out) && !p->wrong)
        p->wrong = "a failed call wrote its outputs";
}

static void run_step(struct program *p, const struct step *step, struct outcome *outcome)
{
    union output out;
    struct step_result *result = &outcome->result[outcome->count++];
    memset(&out, PATTERN, sizeof out);
    p->sized = false;
    result->name = step->name;
    result->status = step->run(p, &out);
    if (result->status > GG_NOT_READY)
        note_failure(p, &out, result);
    result->unexpected = result->status != (int)step->expected &&
                         result->status != GG_ERR_UNSUPPORTED && result->status > GG_NOT_READY;
    p->failed = p->failed || result->unexpected;
    if (p->wrong && !outcome->wrong[0])
        snprintf(outcome->wrong, sizeof outcome->wrong, "%s: %s", step->name, p->wrong);
}

static void run_steps(struct program *p, const struct steps *steps, struct outcome *outcome)
{
    for (size_t i = 0; i < steps->count && outcome->count < STEPS_MAX; i++)
        run_step(p, &steps->step[i], outcome);
}

void run_program(const char *backend, struct outcome *out)
{
    static struct program program; /* static: owners are released until the process exits */
    struct program *p = &program;
    p->backend = backend;
    start_exporter(backend);
    p->host = calloc(1, LARGE);
    if (!p->host) {
        snprintf(out->wrong, sizeof out->wrong, "the test is out of memory");
        return;
    }
    run_steps(p, &device_steps, out);
    run_steps(p, &memory_steps, out);
    run_steps(p, &copies_steps, out);
    run_steps(p, &kinds_steps, out);
    run_steps(p, &ipc_steps, out);
    run_steps(p, &kernels_steps, out);
    run_steps(p, &graph_steps, out);
    run_steps(p, &comm_steps, out);
    run_steps(p, &staged_steps, out);
    run_steps(p, &work_steps, out);
    run_steps(p, &borrowed_steps, out);
    run_steps(p, &other_steps, out);
    run_steps(p, &end_steps, out);
    out->kept = p->given - atomic_load(&p->released);
    free(p->host);
}
