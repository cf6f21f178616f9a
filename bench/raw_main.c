/* raw_main.c: the baseline alone, as a program.
 *
 *   cc -O2 -D_GNU_SOURCE -o raw raw.c raw_main.c -ldl && ./raw [device]
 *
 * Prints one JSON object: medians in nanoseconds per call, GB/s for the large copies. Without a driver or a
 * device it prints {"error": "…"} and exits with status 0. */
#include "raw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BULK (256ull * RAW_MIB)
#define MOST_BURSTS 2000

static FILE *out; /* printed at the end, so that the output is one object in any case */

static void quit(const char *what)
{
    printf("{\"error\": \"%s\"}\n", what);
    exit(0);
}

static void check(int code)
{
    if (code)
        quit(raw_error());
}

static void need(int code, const char *what)
{
    if (code)
        quit(what);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(struct raw *r, const struct raw_row *row)
{
    static double times[MOST_BURSTS];
    check(raw_run(r, row->name, row->bursts / 10, times)); /* to warm up */
    check(raw_run(r, row->name, row->bursts, times));
    qsort(times, (size_t)row->bursts, sizeof *times, compare);
    return times[row->bursts / 2];
}

static void measure(struct raw *r, const char *kind, void *stream, const struct raw_bulk *bulk)
{
    check(raw_use(r, stream, bulk));
    fprintf(out, ",\n  \"%s\": {\n", kind);
    raw_alloc_bytes(r, RAW_MIB);
    for (const struct raw_row *row = raw_rows; row->name; row++) {
        const double ns = median(r, row);
        const char *comma = row[1].name ? "," : "";
        if (row->calls == 1)
            fprintf(out, "    \"%s_gbps\": %.2f%s\n", row->name, (double)BULK / ns, comma);
        else
            fprintf(out, "    \"%s\": %.1f%s\n", row->name, ns, comma);
    }
    fprintf(out, "  }");
}

static void describe(const struct raw *r)
{
    char name[128] = "";
    int version = 0;
    need(raw_cu.device_name(name, (int)sizeof name, r->device), "cuDeviceGetName");
    need(raw_cu.version(&version), "cuDriverGetVersion");
    fprintf(out, "{\n  \"device\": \"%s\",\n  \"driver\": %d,\n  \"burst\": %d", name, version,
            RAW_BURST);
}

static void allocate(struct raw_bulk *b)
{
    b->nbytes = BULK;
    need(raw_cu.alloc(&b->memory, BULK), "cuMemAlloc");
    need(raw_cu.alloc(&b->other, BULK), "cuMemAlloc");
    need(raw_cu.alloc_host(&b->pinned, BULK, 1), "cuMemHostAlloc");
    b->pageable = malloc(BULK);
    need(!b->pageable, "out of host memory");
    memset(b->pinned, 1, BULK); /* fault the pages in before the measurement */
    memset(b->pageable, 1, BULK);
}

int main(int argc, char **argv)
{
    const char *path = getenv("GPUGLUE_CUDA_LIBRARY");
    struct raw *r = raw_open(path && *path ? path : "libcuda.so.1", argc > 1 ? atoi(argv[1]) : 0);
    struct raw_bulk bulk = {0};
    void *nonblocking, *blocking, *legacy = (void *)1; /* CU_STREAM_LEGACY */
    char *text = NULL;
    size_t length = 0;
    need(!r, raw_error());
    out = open_memstream(&text, &length);
    need(!out, "out of host memory");
    need(raw_cu.set_current(r->context), "cuCtxSetCurrent");
    need(raw_cu.stream_create(&nonblocking, 1, 0), "cuStreamCreateWithPriority");
    need(raw_cu.stream_create(&blocking, 0, 0), "cuStreamCreateWithPriority");
    allocate(&bulk);
    describe(r);
    measure(r, "nonblocking", nonblocking, &bulk);
    measure(r, "blocking", blocking, &bulk);
    measure(r, "legacy", legacy, &bulk);
    fprintf(out, "\n}\n");
    fclose(out);
    fputs(text, stdout);
    free(text);
    raw_cu.release_memory(bulk.memory);
    raw_cu.release_memory(bulk.other);
    raw_cu.release_host(bulk.pinned);
    free(bulk.pageable);
    raw_cu.stream_destroy(nonblocking);
    raw_cu.stream_destroy(blocking);
    raw_close(r);
    return 0;
}
