/* pipeline_raw.c: the pipeline of pipeline.py by calls of the CUDA driver alone: its floor. Same memory, same kernel, streams of
 * its own. Built with `cc -O2 -shared -fPIC`; the caller has the device's primary context current. */
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* The driver's functions, whose addresses the caller knows. */
struct raw_pipeline_calls {
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_sync)(void *stream);
    int (*stream_destroy)(void *stream);
    int (*stream_wait)(void *stream, void *event, unsigned flags);
    int (*event_create)(void **event, unsigned flags);
    int (*event_record)(void *event, void *stream);
    int (*event_destroy)(void *event);
    int (*h2d)(uint64_t dst, const void *src, size_t nbytes, void *stream);
    int (*d2h)(void *dst, uint64_t src, size_t nbytes, void *stream);
    int (*launch)(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  unsigned, void *stream, void **parameters, void **extra);
    int (*module_load)(void **module, const void *image);
    int (*module_unload)(void *module);
    int (*function_get)(void **function, void *module, const char *name);
};

enum { UPLOAD = 1, KERNEL = 2, DOWNLOAD = 4, BY_ENGINE = 8, INDEPENDENT = 16 };
enum { BLOCK = 256, NON_BLOCKING = 1, NO_TIMING = 2, STREAMS = 16 };

/* Pieces that lie behind each other in all three places. */
struct raw_pipeline {
    struct raw_pipeline_calls cu;
    const char *given; /* pinned */
    char *result;      /* pinned */
    uint64_t memory;   /* on the device */
    uint64_t count;    /* of floats in a piece */
    const void *image; /* with the kernel "advance" */
    int pieces, stream_count, steps;
    void *streams[STREAMS], *module, *function;
    void *uploaded, *computed; /* events, recorded again for each piece */
};

int raw_pipeline_begin(struct raw_pipeline *p)
{
    int code = p->cu.module_load(&p->module, p->image);
    if (!code)
        code = p->cu.function_get(&p->function, p->module, "advance");
    for (int i = 0; i < STREAMS && !code; i++)
        code = p->cu.stream_create(&p->streams[i], NON_BLOCKING);
    if (!code)
        code = p->cu.event_create(&p->uploaded, NO_TIMING);
    return code ? code : p->cu.event_create(&p->computed, NO_TIMING);
}

void raw_pipeline_end(struct raw_pipeline *p)
{
    for (int i = 0; i < STREAMS; i++)
        if (p->streams[i])
            p->cu.stream_destroy(p->streams[i]);
    if (p->uploaded)
        p->cu.event_destroy(p->uploaded);
    if (p->computed)
        p->cu.event_destroy(p->computed);
    if (p->module)
        p->cu.module_unload(p->module);
}

/* Later work of one stream waits for the work of the other; not if the operations are independent, or on one stream. */
static int stream_follow(struct raw_pipeline *p, void *later, void *earlier, void *event, int how)
{
    if (later == earlier || how & INDEPENDENT)
        return 0;
    const int code = p->cu.event_record(event, earlier);
    return code ? code : p->cu.stream_wait(later, event, 0);
}

static int piece_queue(struct raw_pipeline *p, int i, int how)
{
    void *const own = p->streams[i % p->stream_count];
    void *const up = how & BY_ENGINE ? p->streams[0] : own;
    void *const on = how & BY_ENGINE ? p->streams[1] : own;
    void *const down = how & BY_ENGINE ? p->streams[2] : own;
    const size_t nbytes = p->count * sizeof(float);
    uint64_t memory = p->memory + (uint64_t)i * nbytes;
    void *parameters[] = {&memory, &p->count, &p->steps};
    int code = 0;
    if (how & UPLOAD)
        code = p->cu.h2d(memory, p->given + (size_t)i * nbytes, nbytes, up);
    if (!code && how & KERNEL)
        code = stream_follow(p, on, up, p->uploaded, how);
    if (!code && how & KERNEL)
        code = p->cu.launch(p->function, (unsigned)((p->count + BLOCK - 1) / BLOCK), 1, 1, BLOCK, 1,
                            1, 0, on, parameters, NULL);
    if (!code && how & DOWNLOAD)
        code = stream_follow(p, down, on, p->computed, how);
    if (!code && how & DOWNLOAD)
        code = p->cu.d2h(p->result + (size_t)i * nbytes, memory, nbytes, down);
    return code;
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Nanoseconds for all pieces; negative: the code of a call that failed. */
int64_t raw_pipeline_run(struct raw_pipeline *p, int how)
{
    int code = 0;
    const int64_t began = now();
    for (int i = 0; i < p->pieces && !code; i++)
        code = piece_queue(p, i, how);
    for (int i = 0; i < STREAMS && !code; i++)
        code = p->cu.stream_sync(p->streams[i]);
    return code ? -code : now() - began;
}
