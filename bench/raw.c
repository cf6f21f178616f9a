/* raw.c: the floor. The calls that gpuglue is made of, in C straight on the driver, timed in the way that
 * bench/ times gpuglue: median over bursts of 16 calls, with a wait between bursts outside the clock.
 *
 *   cc -O2 -o raw raw.c -ldl && ./raw [device]
 *
 * Prints one JSON object: nanoseconds per call, GB/s for the bandwidths. Without a driver or a device it
 * prints {"error": "…"}; that is no failure. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BURST 16
#define BURSTS 2000
#define SMALL_BURSTS 200 /* of calls that take tens of microseconds */
#define KIB 1024u
#define MIB (1024u * KIB)
#define BULK (256ull * MIB)
#define BULK_RUNS 10

/* SLOT(name, symbol, parameters): what is used of the driver. */
#define DRIVER(SLOT)                                                            \
    SLOT(init, "cuInit", (unsigned))                                            \
    SLOT(version, "cuDriverGetVersion", (int *))                                \
    SLOT(device_get, "cuDeviceGet", (int *, int))                               \
    SLOT(device_name, "cuDeviceGetName", (char *, int, int))                    \
    SLOT(retain, "cuDevicePrimaryCtxRetain", (void **, int))                    \
    SLOT(release, "cuDevicePrimaryCtxRelease_v2", (int))                        \
    SLOT(set_current, "cuCtxSetCurrent", (void *))                              \
    SLOT(get_current, "cuCtxGetCurrent", (void **))                             \
    SLOT(get_device, "cuCtxGetDevice", (int *))                                 \
    SLOT(stream_create, "cuStreamCreateWithPriority", (void **, unsigned, int)) \
    SLOT(stream_destroy, "cuStreamDestroy_v2", (void *))                        \
    SLOT(stream_query, "cuStreamQuery", (void *))                               \
    SLOT(stream_sync, "cuStreamSynchronize", (void *))                          \
    SLOT(stream_wait, "cuStreamWaitEvent", (void *, void *, unsigned))          \
    SLOT(event_create, "cuEventCreate", (void **, unsigned))                    \
    SLOT(event_destroy, "cuEventDestroy_v2", (void *))                          \
    SLOT(event_record, "cuEventRecord", (void *, void *))                       \
    SLOT(event_query, "cuEventQuery", (void *))                                 \
    SLOT(alloc, "cuMemAlloc_v2", (uint64_t *, size_t))                          \
    SLOT(release_memory, "cuMemFree_v2", (uint64_t))                            \
    SLOT(alloc_host, "cuMemHostAlloc", (void **, size_t, unsigned))             \
    SLOT(release_host, "cuMemFreeHost", (void *))                               \
    SLOT(h2d, "cuMemcpyHtoDAsync_v2", (uint64_t, const void *, size_t, void *)) \
    SLOT(d2h, "cuMemcpyDtoHAsync_v2", (void *, uint64_t, size_t, void *))       \
    SLOT(d2d, "cuMemcpyDtoDAsync_v2", (uint64_t, uint64_t, size_t, void *))

#define MEMBER(name, symbol, parameters) int(*name) parameters;
static struct {
    DRIVER(MEMBER)
} cu;
#undef MEMBER

#define ROW(name, symbol, parameters) {symbol, &cu.name},
static const struct {
    const char *symbol;
    void *target;
} rows[] = {DRIVER(ROW)};
#undef ROW

static FILE *out; /* written when all went well, so that the output is one object in any case */

/* What a case works with; one set for each kind of stream. */
struct set {
    void *stream, *event, *spare;
    void *pinned;
    char *host; /* pageable, BULK bytes */
    void *big;  /* pinned, BULK bytes */
    uint64_t memory, other;
};

static void quit(const char *what, int code)
{
    fprintf(stdout, "{\"error\": \"%s\", \"code\": %d}\n", what, code);
    exit(0);
}

static void check(int code, const char *what)
{
    if (code)
        quit(what, code);
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

/* ---- the calls -------------------------------------------------------------------------------- */

static int current_device(struct set *s)
{
    int device;
    (void)s;
    return cu.get_device(&device);
}

static int current_context(struct set *s)
{
    void *context;
    (void)s;
    return cu.get_current(&context);
}

static int event_query(struct set *s)
{
    return cu.event_query(s->event);
}

static int stream_query(struct set *s)
{
    return cu.stream_query(s->stream);
}

static int stream_synchronize(struct set *s)
{
    return cu.stream_sync(s->stream);
}

static int event_record(struct set *s)
{
    return cu.event_record(s->event, s->stream);
}

static int wait_event(struct set *s)
{
    return cu.stream_wait(s->stream, s->event, 0);
}

static int event_create_destroy(struct set *s)
{
    const int code = cu.event_create(&s->spare, 2);
    return code ? code : cu.event_destroy(s->spare);
}

static int stream_create_destroy(struct set *s)
{
    const int code = cu.stream_create(&s->spare, 1, 0);
    return code ? code : cu.stream_destroy(s->spare);
}

static int alloc_free_1mib(struct set *s)
{
    uint64_t memory;
    const int code = cu.alloc(&memory, MIB);
    (void)s;
    return code ? code : cu.release_memory(memory);
}

static int upload(struct set *s, size_t nbytes)
{
    memcpy(s->pinned, s->host, nbytes);
    return cu.h2d(s->memory, s->pinned, nbytes, s->stream);
}

static int download(struct set *s, size_t nbytes)
{
    int code = cu.d2h(s->pinned, s->memory, nbytes, s->stream);
    if (!code)
        code = cu.stream_sync(s->stream);
    memcpy(s->host, s->pinned, nbytes);
    return code;
}

static int h2d_8_queue(struct set *s)
{
    return upload(s, 8);
}

static int h2d_8(struct set *s)
{
    const int code = upload(s, 8);
    return code ? code : cu.stream_sync(s->stream);
}

static int d2h_8(struct set *s)
{
    return download(s, 8);
}

static int roundtrip_1kib(struct set *s)
{
    const int code = upload(s, KIB);
    return code ? code : download(s, KIB);
}

static int h2d_pinned(struct set *s)
{
    return cu.h2d(s->memory, s->big, BULK, s->stream);
}

static int d2h_pinned(struct set *s)
{
    return cu.d2h(s->big, s->memory, BULK, s->stream);
}

static int h2d_pageable(struct set *s)
{
    return cu.h2d(s->memory, s->host, BULK, s->stream);
}

static int d2h_pageable(struct set *s)
{
    return cu.d2h(s->host, s->memory, BULK, s->stream);
}

static int d2d(struct set *s)
{
    return cu.d2d(s->other, s->memory, BULK, s->stream);
}

static const struct small {
    const char *name;
    int (*call)(struct set *s);
    int bursts;
} smalls[] = {
    {"current_device", current_device, BURSTS},
    {"current_context", current_context, BURSTS},
    {"event_query", event_query, BURSTS},
    {"stream_query", stream_query, BURSTS},
    {"stream_synchronize_idle", stream_synchronize, BURSTS},
    {"event_record", event_record, BURSTS},
    {"wait_event", wait_event, BURSTS},
    {"event_create_destroy", event_create_destroy, BURSTS},
    {"h2d_8_queue", h2d_8_queue, BURSTS},
    {"h2d_8", h2d_8, BURSTS},
    {"d2h_8", d2h_8, BURSTS},
    {"roundtrip_1kib", roundtrip_1kib, BURSTS},
    {"alloc_free_1mib", alloc_free_1mib, SMALL_BURSTS},
    {"stream_create_destroy", stream_create_destroy, SMALL_BURSTS},
};

static const struct bulk {
    const char *name;
    int (*call)(struct set *s);
} bulks[] = {
    {"h2d_pinned_256mib", h2d_pinned},
    {"d2h_pinned_256mib", d2h_pinned},
    {"h2d_pageable_256mib", h2d_pageable},
    {"d2h_pageable_256mib", d2h_pageable},
    {"d2d_256mib", d2d},
};

/* ---- timing ----------------------------------------------------------------------------------- */

static double time_small(const struct small *c, struct set *s)
{
    static double times[BURSTS];
    for (int i = 0; i < c->bursts; i++) {
        int code = 0;
        const double start = now_ns();
        for (int k = 0; k < BURST; k++)
            code |= c->call(s);
        times[i] = (now_ns() - start) / BURST;
        check(code, c->name);
        check(cu.stream_sync(s->stream), c->name);
    }
    return median(times, c->bursts);
}

static double time_bulk(const struct bulk *c, struct set *s)
{
    double times[BULK_RUNS];
    check(c->call(s), c->name); /* once to warm up */
    check(cu.stream_sync(s->stream), c->name);
    for (int i = 0; i < BULK_RUNS; i++) {
        const double start = now_ns();
        check(c->call(s), c->name);
        check(cu.stream_sync(s->stream), c->name);
        times[i] = now_ns() - start;
    }
    return (double)BULK / median(times, BULK_RUNS);
}

static void measure(const char *name, struct set *s, bool last)
{
    const size_t small_count = sizeof smalls / sizeof smalls[0];
    const size_t bulk_count = sizeof bulks / sizeof bulks[0];
    check(cu.event_record(s->event, s->stream), "event_record");
    check(cu.stream_sync(s->stream), "stream_synchronize");
    fprintf(out, "  \"%s\": {\n", name);
    for (size_t i = 0; i < small_count; i++)
        fprintf(out, "    \"%s\": %.1f,\n", smalls[i].name, time_small(&smalls[i], s));
    for (size_t i = 0; i < bulk_count; i++)
        fprintf(out, "    \"%s_gbps\": %.2f%s\n", bulks[i].name, time_bulk(&bulks[i], s),
                i + 1 < bulk_count ? "," : "");
    fprintf(out, "  }%s\n", last ? "" : ",");
}

/* ---- set-up ----------------------------------------------------------------------------------- */

static void load(void)
{
    const char *path = getenv("GPUGLUE_CUDA_LIBRARY");
    void *library = dlopen(path && *path ? path : "libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!library)
        quit("no libcuda.so.1", 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        void *found = dlsym(library, rows[i].symbol);
        if (!found)
            quit(rows[i].symbol, 0);
        memcpy(rows[i].target, &found, sizeof found);
    }
}

static void describe(int device)
{
    char name[128] = "";
    int version = 0;
    check(cu.device_name(name, (int)sizeof name, device), "cuDeviceGetName");
    check(cu.version(&version), "cuDriverGetVersion");
    fprintf(out, "{\n  \"device\": \"%s\",\n  \"driver\": %d,\n  \"burst\": %d,\n", name, version,
            BURST);
}

static void make(struct set *s)
{
    check(cu.event_create(&s->event, 2), "cuEventCreate");
    check(cu.alloc(&s->memory, BULK), "cuMemAlloc");
    check(cu.alloc(&s->other, BULK), "cuMemAlloc");
    check(cu.alloc_host(&s->pinned, 64 * KIB, 1), "cuMemHostAlloc");
    check(cu.alloc_host(&s->big, BULK, 1), "cuMemHostAlloc");
    s->host = malloc(BULK);
    if (!s->host)
        quit("out of host memory", 0);
    memset(s->host, 1, BULK); /* its pages are there before the clock runs */
    memset(s->pinned, 1, 64 * KIB);
    memset(s->big, 1, BULK);
}

static void unmake(struct set *s)
{
    cu.event_destroy(s->event);
    cu.release_memory(s->memory);
    cu.release_memory(s->other);
    cu.release_host(s->pinned);
    cu.release_host(s->big);
    free(s->host);
}

int main(int argc, char **argv)
{
    struct set set = {0};
    void *context, *nonblocking, *blocking;
    int device;
    char *text = NULL;
    size_t length = 0;
    load();
    out = open_memstream(&text, &length);
    if (!out)
        quit("out of host memory", 0);
    check(cu.init(0), "cuInit");
    check(cu.device_get(&device, argc > 1 ? atoi(argv[1]) : 0), "cuDeviceGet");
    check(cu.retain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cu.set_current(context), "cuCtxSetCurrent");
    check(cu.stream_create(&nonblocking, 1, 0), "cuStreamCreateWithPriority");
    check(cu.stream_create(&blocking, 0, 0), "cuStreamCreateWithPriority");
    make(&set);
    describe(device);
    set.stream = nonblocking;
    measure("nonblocking", &set, false);
    set.stream = blocking;
    measure("blocking", &set, false);
    set.stream = (void *)1; /* CU_STREAM_LEGACY */
    measure("legacy", &set, true);
    fprintf(out, "}\n");
    unmake(&set);
    cu.stream_destroy(nonblocking);
    cu.stream_destroy(blocking);
    cu.release(device);
    fclose(out);
    fputs(text, stdout);
    free(text);
    return 0;
}
