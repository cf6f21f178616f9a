/* scale.c: alloc + close with many streams, with blocks that another stream uses, with many blocks that queued work still uses, with
 * many blocks in use, in many threads, and of 1 GiB beside a busy stream. Prints a table of nanoseconds: mean, median, 99.9th percentile,
 * worst, which call of its thread that was, and in which part of it the driver allocated or freed memory.
 *
 *     scale [CALLS [KIND [FILE.json [targets]]]]       KIND: streams, live, retired, threads, large, or all
 *
 * With `targets` only the rows that have one. scale.py runs this program in several processes.
 *
 * "nothing" is the same loop in as many threads without the calls: it shows what the machine itself adds. "as long, no pool" reads the
 * clock for as long as an allocation and a release take, and makes the same driver calls: it shows what threads that wait for a
 * processor add. "a lock alone" takes a shared lock twice. "a record and a query" is of one event for each use, without a pool. "own blocks
 * and polls" is the row of own blocks, and with each 64th pair what finding 64 free blocks of other streams costs at least. */
#include "scale.h"

#include <stdio.h>
#include <string.h>

/* Targets, in nanoseconds. */
#define MEAN 300
#define WORST 200000
#define LARGE_MEAN 2000

gg_device *device;
long calls = 1000000;
_Thread_local uint64_t driver_ns;
static _Thread_local uint64_t driver_began;
static FILE *json;

void check(gg_status status, const char *what)
{
    struct gg_error error = {.struct_size = sizeof error};
    if (!status)
        return;
    gg_last_error(&error);
    fprintf(stderr, "scale: %s: %s\n", what, error.message);
    exit(1);
}

gg_stream *new_stream(void)
{
    gg_stream *stream;
    check(gg_stream_create(device, GG_STREAM_NONBLOCKING, 0, &stream), "stream");
    return stream;
}

gg_memory *new_block(gg_stream *stream)
{
    gg_memory *memory;
    check(gg_memory_alloc(device, GG_MEMORY_DEVICE, NBYTES, stream, &memory), "alloc");
    return memory;
}

uint64_t timed(gg_stream *stream, gg_stream *user)
{
    driver_ns = 0;
    uint64_t start = now_ns();
    gg_memory *memory = new_block(stream);
    const uint64_t taken = now_ns() - start, driver_taken = driver_ns;
    if (user)
        check(gg_fill(memory, 0, "", 1, NBYTES, user), "fill");
    driver_ns = driver_taken;
    start = now_ns();
    gg_memory_release(memory);
    return taken + now_ns() - start;
}

/* ---- the driver's part of a call: the other operations are not timed, so that they take no longer ---- */

static bool is_of_memory(const struct gg_trace *trace)
{
    return trace->op == GG_OP_mem_alloc || trace->op == GG_OP_mem_free;
}

static void before_operation(void *user, const struct gg_trace *trace)
{
    (void)user;
    if (is_of_memory(trace))
        driver_began = now_ns();
}

static void after_operation(void *user, const struct gg_trace *trace)
{
    (void)user;
    if (is_of_memory(trace))
        driver_ns += now_ns() - driver_began;
}

static const struct gg_tracer tracer = {sizeof tracer, NULL, before_operation, after_operation};

/* ---- the table ---- */

struct row {
    const char *kind, *name; /* the name has a place for the count */
    void (*measure)(long count, struct tally *tally);
    long count;
    double mean, worst; /* targets; 0: none */
};

static const struct row rows[] = {
    {"streams", "%ld streams, own blocks", own_blocks, 1, MEAN, WORST},
    {"streams", "%ld streams, own blocks", own_blocks, 100, MEAN, WORST},
    {"streams", "%ld streams, own blocks", own_blocks, 1000, MEAN, WORST},
    {"streams", "%ld streams, each in use", blocks_of_another, 100, MEAN, WORST},
    {"streams", "%ld streams, each in use", blocks_of_another, 1000, MEAN, WORST},
    {"streams", "%ld streams: own blocks and polls", own_blocks_and_polls, 100, 0, 0},
    {"streams", "%ld streams: own blocks and polls", own_blocks_and_polls, 1000, 0, 0},
    {"streams", "%ld streams: a record and a query", record_and_query, 100, 0, 0},
    {"streams", "%ld streams: a record and a query", record_and_query, 1000, 0, 0},
    {"live", "beside %ld live blocks", beside_live, 1, MEAN, WORST},
    {"live", "beside %ld live blocks", beside_live, 10000, MEAN, WORST},
    {"live", "beside %ld live blocks", beside_live, 100000, MEAN, WORST},
    {"live", "beside %ld live blocks", beside_live, 1000000, MEAN, WORST},
    {"retired", "beside %ld retired blocks", beside_retired, 1, MEAN, WORST},
    {"retired", "beside %ld retired blocks", beside_retired, 10000, MEAN, WORST},
    {"retired", "beside %ld retired blocks", beside_retired, 100000, MEAN, WORST},
    {"retired", "... %ld, after that work", after_retired, 100000, MEAN, WORST},
    {"threads", "%ld threads", in_threads, 1, MEAN, WORST},
    {"threads", "%ld threads", in_threads, 16, MEAN, WORST},
    {"threads", "%ld threads", in_threads, 128, MEAN, WORST},
    {"threads", "%ld threads: a lock alone", lock_alone, 16, 0, 0},
    {"threads", "%ld threads: a lock alone", lock_alone, 128, 0, 0},
    {"threads", "%ld threads: as long, no pool", as_long, 16, 0, 0},
    {"threads", "%ld threads: as long, no pool", as_long, 128, 0, 0},
    {"threads", "%ld threads: nothing", nothing, 16, 0, 0},
    {"threads", "%ld threads: nothing", nothing, 128, 0, 0},
    {"large", "1 GiB beside a busy stream, %ld", large, 10000, LARGE_MEAN, 0},
};

/* What a row has found; @p idle: as many threads that do nothing, if they were measured. */
struct result {
    struct figures figures, idle;
    const char *text; /* "", or whether the targets are reached */
};

static void show_json(const struct row *row, const char *name, const struct result *self)
{
    static bool more;
    const struct figures *f = &self->figures;
    fprintf(json,
            "%s\n\"%s\": {\"kind\": \"%s\", \"mean\": %.1f, \"median\": %ju, \"p999\": %ju, "
            "\"worst\": %ju, "
            "\"worst_at\": %ld, \"worst_driver\": %ju, \"result\": \"%s\"",
            more ? "," : "", name, row->kind, f->mean, (uintmax_t)f->median, (uintmax_t)f->most,
            (uintmax_t)f->worst, f->worst_at, (uintmax_t)f->worst_driver, self->text);
    if (row->mean > 0)
        fprintf(json, ", \"mean_target\": %.0f", row->mean);
    if (row->worst > 0)
        fprintf(json, ", \"worst_target\": %.0f", row->worst);
    if (self->idle.worst)
        fprintf(json, ", \"idle\": {\"mean\": %.1f, \"worst\": %ju}", self->idle.mean,
                (uintmax_t)self->idle.worst);
    fputs("}", json);
    more = true;
}

static void show(const struct row *row, const char *name, const struct result *self)
{
    const struct figures *f = &self->figures;
    printf("%-36s %9.0f %9ju %9ju %10ju %9ld %10ju  %s\n", name, f->mean, (uintmax_t)f->median,
           (uintmax_t)f->most, (uintmax_t)f->worst, f->worst_at, (uintmax_t)f->worst_driver,
           self->text);
    fflush(stdout);
    if (json)
        show_json(row, name, self);
}

static bool is_judged(const struct row *row)
{
    return row->mean > 0 || row->worst > 0;
}

static bool reaches(const struct row *row, struct figures f)
{
    return (row->mean == 0 || f.mean <= row->mean) &&
           (row->worst == 0 || (double)f.worst <= row->worst);
}

/* False: the row cannot run here. */
static bool measure(const struct row *row, struct figures *found)
{
    struct tally *tally = tally_new();
    row->measure(row->count, tally);
    const bool some = tally->count > 0;
    if (some)
        *found = tally_figures(tally);
    free(tally);
    check(gg_device_trim(device), "trim");
    return some;
}

/* Other programs may interrupt each process: where the same number of threads misses a target although they do nothing, the result is
 * not known. */
static void judge(const struct row *row, struct result *self)
{
    struct row idle = *row;
    idle.measure = nothing;
    idle.count = row->measure == in_threads ? row->count : 1;
    if (!is_judged(row))
        self->text = "";
    else if (reaches(row, self->figures))
        self->text = "ok";
    else
        self->text =
            measure(&idle, &self->idle) && reaches(row, self->idle) ? "missed" : "too noisy to say";
}

static void run(const struct row *row)
{
    struct result result = {.text = ""};
    char name[64];
    check(gg_set_tracer(is_judged(row) ? &tracer : NULL), "tracer");
    snprintf(name, sizeof name, row->name, row->count);
    if (!measure(row, &result.figures)) {
        printf("%-36s not here: too little memory, or no host functions\n", name);
        return;
    }
    judge(row, &result);
    show(row, name, &result);
}

static void run_all(const char *kind, bool only_judged)
{
    printf("%-36s %9s %9s %9s %10s %9s %10s\n", "alloc + close, ns", "mean", "median", "99.9 %",
           "worst", "call", "driver");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if ((!strcmp(kind, "all") || !strcmp(kind, rows[i].kind)) &&
            (!only_judged || is_judged(&rows[i])))
            run(&rows[i]);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        calls = atol(argv[1]);
    if (argc > 3)
        json = fopen(argv[3], "w");
    if (json)
        fputs("{", json);
    check(gg_device_get(NULL, 0, &device), "device");
    run_all(argc > 2 ? argv[2] : "all", argc > 4 && !strcmp(argv[4], "targets"));
    if (json) {
        fputs("\n}\n", json);
        fclose(json);
    }
    check(gg_set_tracer(NULL), "tracer");
    gg_shutdown(0);
    return 0;
}
