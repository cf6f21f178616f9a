/* raw.c: the baseline: the driver calls that gpuglue makes, in C directly on the driver. They are timed in bursts of 16
 * calls, with an unmeasured wait between bursts.
 *
 * bench.py loads it as a library and runs it in alternation with gpuglue, in the same processes and on one stream.
 * raw_main.c makes a program of it. */
#include "raw.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MANY 2000
#define SOME 200 /* of calls that take tens of microseconds */
#define FEW 10   /* of large copies */

struct raw_driver raw_cu;
static char error_text[256];

const char *raw_error(void)
{
    return error_text;
}

static int check(int code, const char *what)
{
    if (code)
        snprintf(error_text, sizeof error_text, "%s: code %d", what, code);
    return code;
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* ---- the calls -------------------------------------------------------------------------------- */

static int current_device(struct raw *r)
{
    int device;
    (void)r;
    return raw_cu.get_device(&device);
}

static int current_context(struct raw *r)
{
    void *context;
    (void)r;
    return raw_cu.get_current(&context);
}

static int event_query(struct raw *r)
{
    return raw_cu.event_query(r->event);
}

static int stream_query(struct raw *r)
{
    return raw_cu.stream_query(r->stream);
}

static int stream_synchronize(struct raw *r)
{
    return raw_cu.stream_sync(r->stream);
}

static int event_record(struct raw *r)
{
    return raw_cu.event_record(r->event, r->stream);
}

static int event_record_query(struct raw *r)
{
    const int code = raw_cu.event_record(r->event, r->stream), done = raw_cu.event_query(r->event);
    return code ? code : done == RAW_NOT_READY ? 0 : done;
}

static int wait_event(struct raw *r)
{
    return raw_cu.stream_wait(r->stream, r->event, 0);
}

static int event_create_destroy(struct raw *r)
{
    const int code = raw_cu.event_create(&r->spare, 2);
    return code ? code : raw_cu.event_destroy(r->spare);
}

static int stream_create_destroy(struct raw *r)
{
    const int code = raw_cu.stream_create(&r->spare, 1, 0);
    return code ? code : raw_cu.stream_destroy(r->spare);
}

static int alloc_free_1mib(struct raw *r)
{
    uint64_t memory;
    const int code = raw_cu.alloc(&memory, RAW_MIB);
    (void)r;
    return code ? code : raw_cu.release_memory(memory);
}

static int alloc_free(struct raw *r)
{
    uint64_t memory;
    const int code = raw_cu.alloc(&memory, r->alloc_bytes);
    return code ? code : raw_cu.release_memory(memory);
}

/* From the driver's own pool, in the order of the stream's work. */
static int alloc_free_async(struct raw *r)
{
    uint64_t memory;
    const int code = raw_cu.alloc_async(&memory, r->alloc_bytes, r->stream);
    return code ? code : raw_cu.free_async(memory, r->stream);
}

void raw_alloc_bytes(struct raw *r, size_t nbytes)
{
    r->alloc_bytes = nbytes;
}

static int upload(struct raw *r, size_t nbytes)
{
    memcpy(r->pinned, r->host, nbytes);
    return raw_cu.h2d(r->memory, r->pinned, nbytes, r->stream);
}

static int download(struct raw *r, size_t nbytes)
{
    int code = raw_cu.d2h(r->pinned, r->memory, nbytes, r->stream);
    if (!code)
        code = raw_cu.stream_sync(r->stream);
    memcpy(r->host, r->pinned, nbytes);
    return code;
}

static int h2d_8_queue(struct raw *r)
{
    return upload(r, 8);
}

static int h2d_8(struct raw *r)
{
    const int code = upload(r, 8);
    return code ? code : raw_cu.stream_sync(r->stream);
}

static int d2h_8(struct raw *r)
{
    return download(r, 8);
}

static int h2d_1kib_queue(struct raw *r)
{
    return upload(r, RAW_KIB);
}

static int roundtrip_1kib(struct raw *r)
{
    const int code = upload(r, RAW_KIB);
    return code ? code : download(r, RAW_KIB);
}

/* ---- launches: empty kernels in PTX, which the driver compiles ---- */

static const char kernels[] =
    ".version 6.4\n.target sm_50\n.address_size 64\n"
    ".visible .entry nothing()\n{\n ret;\n}\n"
    ".visible .entry sixteen(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d,\n"
    " .param .u64 e, .param .u64 f, .param .u64 g, .param .u64 h, .param .u32 i, .param .u32 j,\n"
    " .param .u32 k, .param .u32 l, .param .u32 m, .param .u32 n, .param .u32 o, .param .u32 p)\n"
    "{\n ret;\n}\n";

static int launch(struct raw *r)
{
    return raw_cu.launch(r->nothing, 1, 1, 1, 32, 1, 1, 0, r->stream, NULL, NULL);
}

static int launch_synchronize(struct raw *r)
{
    const int code = launch(r);
    return code ? code : raw_cu.stream_sync(r->stream);
}

static int launch_16(struct raw *r)
{
    static uint32_t word;
    void *arguments[16];
    for (int i = 0; i < 16; i++)
        arguments[i] = i < 8 ? (void *)&r->memory : (void *)&word;
    return raw_cu.launch(r->sixteen, 1, 1, 1, 32, 1, 1, 0, r->stream, arguments, NULL);
}

static int load_kernels(struct raw *r)
{
    void *module;
    int code = check(raw_cu.module_load(&module, kernels), "cuModuleLoadData");
    if (!code)
        code = check(raw_cu.function(&r->nothing, module, "nothing"), "cuModuleGetFunction");
    return code ? code
                : check(raw_cu.function(&r->sixteen, module, "sixteen"), "cuModuleGetFunction");
}

/* The measured time of large copies includes a wait. */
static int waited(struct raw *r, int code)
{
    return code ? code : raw_cu.stream_sync(r->stream);
}

static int h2d_pinned(struct raw *r)
{
    const struct raw_bulk *b = &r->bulk;
    return waited(r, raw_cu.h2d(b->memory, b->pinned, b->nbytes, r->stream));
}

static int d2h_pinned(struct raw *r)
{
    const struct raw_bulk *b = &r->bulk;
    return waited(r, raw_cu.d2h(b->pinned, b->memory, b->nbytes, r->stream));
}

static int h2d_pageable(struct raw *r)
{
    const struct raw_bulk *b = &r->bulk;
    return waited(r, raw_cu.h2d(b->memory, b->pageable, b->nbytes, r->stream));
}

static int h2d_pageable_queue(struct raw *r)
{
    const struct raw_bulk *b = &r->bulk;
    return raw_cu.h2d(b->memory, b->pageable, b->nbytes, r->stream);
}

static int d2h_pageable(struct raw *r)
{
    const struct raw_bulk *b = &r->bulk;
    return waited(r, raw_cu.d2h(b->pageable, b->memory, b->nbytes, r->stream));
}

static int d2d(struct raw *r)
{
    const struct raw_bulk *b = &r->bulk;
    return waited(r, raw_cu.d2d(b->other, b->memory, b->nbytes, r->stream));
}

const struct raw_row raw_rows[] = {
    {"current_device", current_device, RAW_BURST, MANY},
    {"current_context", current_context, RAW_BURST, MANY},
    {"event_query", event_query, RAW_BURST, MANY},
    {"stream_query", stream_query, RAW_BURST, MANY},
    {"stream_synchronize_idle", stream_synchronize, RAW_BURST, MANY},
    {"event_record", event_record, RAW_BURST, MANY},
    {"event_record_query", event_record_query, RAW_BURST, MANY},
    {"wait_event", wait_event, RAW_BURST, MANY},
    {"event_create_destroy", event_create_destroy, RAW_BURST, MANY},
    {"h2d_8_queue", h2d_8_queue, RAW_BURST, MANY},
    {"h2d_8", h2d_8, RAW_BURST, MANY},
    {"d2h_8", d2h_8, RAW_BURST, MANY},
    {"h2d_1kib_queue", h2d_1kib_queue, RAW_BURST, MANY},
    {"roundtrip_1kib", roundtrip_1kib, RAW_BURST, MANY},
    {"alloc_free_1mib", alloc_free_1mib, RAW_BURST, SOME},
    {"alloc_free", alloc_free, RAW_BURST, SOME},
    {"alloc_free_async", alloc_free_async, RAW_BURST, SOME},
    {"stream_create_destroy", stream_create_destroy, RAW_BURST, SOME},
    {"launch", launch, RAW_BURST, MANY},
    {"launch_synchronize", launch_synchronize, RAW_BURST, MANY},
    {"launch_16", launch_16, RAW_BURST, MANY},
    {"h2d_pinned", h2d_pinned, 1, FEW},
    {"d2h_pinned", d2h_pinned, 1, FEW},
    {"h2d_pageable", h2d_pageable, 1, FEW},
    {"h2d_pageable_queue", h2d_pageable_queue, 1, FEW},
    {"d2h_pageable", d2h_pageable, 1, FEW},
    {"d2d", d2d, 1, FEW},
    {NULL, NULL, 0, 0},
};

/* ---- set-up ----------------------------------------------------------------------------------- */

/* A function of a library, and the pointer that receives it. */
struct symbol {
    const char *name;
    void *target;
};

#define ROW(name, symbol, parameters) {symbol, &raw_cu.name},
static const struct symbol symbols[] = {RAW_DRIVER(ROW)};
#undef ROW

static int load(const char *path, const struct symbol *wanted, size_t count)
{
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        snprintf(error_text, sizeof error_text, "%s", dlerror());
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        void *found = dlsym(library, wanted[i].name);
        if (!found)
            return check(-1, wanted[i].name);
        memcpy(wanted[i].target, &found, sizeof found);
    }
    return 0;
}

static int enter(struct raw *r, void **before)
{
    const int code = raw_cu.get_current(before);
    return code ? code : raw_cu.set_current(r->context);
}

static int make(struct raw *r)
{
    int code = check(raw_cu.event_create(&r->event, 2), "cuEventCreate");
    if (!code)
        code = check(raw_cu.alloc(&r->memory, RAW_KIB), "cuMemAlloc");
    if (!code)
        code = check(raw_cu.alloc_host(&r->pinned, RAW_KIB, 1), "cuMemHostAlloc");
    if (!code)
        memset(r->pinned, 1, RAW_KIB);
    return code ? code : load_kernels(r);
}

static int begin(struct raw *r, const char *library, int ordinal)
{
    void *before;
    int code = load(library, symbols, sizeof symbols / sizeof symbols[0]);
    if (!code)
        code = check(raw_cu.init(0), "cuInit");
    if (!code)
        code = check(raw_cu.device_get(&r->device, ordinal), "cuDeviceGet");
    if (!code)
        code = check(raw_cu.retain(&r->context, r->device), "cuDevicePrimaryCtxRetain");
    if (!code)
        code = check(enter(r, &before), "cuCtxSetCurrent");
    if (code)
        return code;
    code = make(r);
    raw_cu.set_current(before);
    return code;
}

struct raw *raw_open(const char *library, int ordinal)
{
    struct raw *r = calloc(1, sizeof *r);
    if (r && begin(r, library, ordinal)) {
        raw_close(r);
        r = NULL;
    }
    return r;
}

void raw_close(struct raw *r)
{
    void *before;
    if (r->context && !enter(r, &before)) {
        raw_cu.event_destroy(r->event);
        raw_cu.release_memory(r->memory);
        raw_cu.release_host(r->pinned);
        raw_cu.set_current(before);
        raw_cu.release(r->device);
    }
    free(r);
}

int raw_stay(struct raw *r)
{
    return check(raw_cu.set_current(r->context), "cuCtxSetCurrent");
}

int raw_use(struct raw *r, void *stream, const struct raw_bulk *bulk)
{
    void *before;
    int code = check(enter(r, &before), "cuCtxSetCurrent");
    if (code)
        return code;
    r->stream = stream;
    r->bulk = bulk ? *bulk : (struct raw_bulk){0};
    code = check(raw_cu.event_record(r->event, stream), "cuEventRecord");
    if (!code)
        code = check(raw_cu.stream_sync(stream), "cuStreamSynchronize");
    raw_cu.set_current(before);
    return code;
}

static int (*event_elapsed)(float *milliseconds, void *start, void *stop);

/* HIP's functions with the driver's parameters, and its query. */
static const struct symbol hip_symbols[] = {
    {"hipGetDevice", &raw_cu.get_device},
    {"hipStreamCreateWithPriority", &raw_cu.stream_create},
    {"hipStreamDestroy", &raw_cu.stream_destroy},
    {"hipStreamQuery", &raw_cu.stream_query},
    {"hipStreamSynchronize", &raw_cu.stream_sync},
    {"hipStreamWaitEvent", &raw_cu.stream_wait},
    {"hipEventCreateWithFlags", &raw_cu.event_create},
    {"hipEventDestroy", &raw_cu.event_destroy},
    {"hipEventRecord", &raw_cu.event_record},
    {"hipEventElapsedTime", &event_elapsed},
    {"hipMalloc", &raw_cu.alloc},
    {"hipFree", &raw_cu.release_memory},
    {"hipMemcpyHtoDAsync", &raw_cu.h2d},
    {"hipMemcpyDtoHAsync", &raw_cu.d2h},
    {"hipModuleLaunchKernel", &raw_cu.launch},
};

static int event_query_by_time(void *event)
{
    float none;
    return event_elapsed(&none, event, event);
}

static int load_hip(const char *path)
{
    const int code = load(path, hip_symbols, sizeof hip_symbols / sizeof hip_symbols[0]);
    if (!code)
        raw_cu.event_query = event_query_by_time;
    return code;
}

int raw_through(struct raw *r, const char *library)
{
    void *before;
    int code = check(enter(r, &before), "cuCtxSetCurrent");
    if (code)
        return code;
    code = check(raw_cu.event_destroy(r->event), "cuEventDestroy");
    if (!code)
        code = load_hip(library);
    if (!code)
        code = check(raw_cu.event_create(&r->event, 0), "hipEventCreateWithFlags");
    raw_cu.set_current(before);
    return code;
}

/* ---- timing ----------------------------------------------------------------------------------- */

static int time_row(struct raw *r, const struct raw_row *row, int bursts, double *ns)
{
    int (*const call)(struct raw *) = row->call;
    const int calls = row->calls;
    int code = 0;
    for (int i = 0; i < bursts && !code; i++) {
        const double start = now_ns();
        for (int k = 0; k < calls; k++)
            code |= call(r);
        ns[i] = (now_ns() - start) / calls;
        code |= raw_cu.stream_sync(r->stream);
    }
    return check(code, row->name);
}

int raw_run(struct raw *r, const char *name, int bursts, double *ns)
{
    const struct raw_row *row = raw_rows;
    void *before;
    int code;
    while (row->name && strcmp(row->name, name) != 0)
        row++;
    if (!row->name)
        return check(-1, "no such row");
    code = check(enter(r, &before), "cuCtxSetCurrent");
    if (code)
        return code;
    code = time_row(r, row, bursts, ns);
    raw_cu.set_current(before);
    return code;
}
