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
    int (*h2d)(uint64_t dst, const void *src, size_t nbytes, void *stream);
    int (*d2h)(void *dst, uint64_t src, size_t nbytes, void *stream);
    int (*launch)(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  unsigned, void *stream, void **parameters, void **extra);
    int (*module_load)(void **module, const void *image);
    int (*module_unload)(void *module);
    int (*function_get)(void **function, void *module, const char *name);
};

/* Pieces that lie behind each other in all three places. */
struct raw_pipeline {
    struct raw_pipeline_calls cu;
    const char *given; /* pinned */
    char *result;      /* pinned */
    uint64_t memory;   /* on the device */
    uint64_t count;    /* of floats in a piece */
    const void *image; /* with the kernel "advance" */
    int pieces, stream_count, steps;
    void *streams[16], *module, *function;
};

enum { UPLOAD = 1, KERNEL = 2, DOWNLOAD = 4, BLOCK = 256, NON_BLOCKING = 1 };

int raw_pipeline_begin(struct raw_pipeline *p)
{
    int code = p->cu.module_load(&p->module, p->image);
    if (!code)
        code = p->cu.function_get(&p->function, p->module, "advance");
    for (int i = 0; i < p->stream_count && !code; i++)
        code = p->cu.stream_create(&p->streams[i], NON_BLOCKING);
    return code;
}

void raw_pipeline_end(struct raw_pipeline *p)
{
    for (int i = 0; i < p->stream_count; i++)
        if (p->streams[i])
            p->cu.stream_destroy(p->streams[i]);
    if (p->module)
        p->cu.module_unload(p->module);
}

static int piece_queue(struct raw_pipeline *p, int i, int operations)
{
    void *const stream = p->streams[i % p->stream_count];
    const size_t nbytes = p->count * sizeof(float);
    uint64_t memory = p->memory + (uint64_t)i * nbytes;
    void *parameters[] = {&memory, &p->count, &p->steps};
    int code = 0;
    if (operations & UPLOAD)
        code = p->cu.h2d(memory, p->given + (size_t)i * nbytes, nbytes, stream);
    if (!code && operations & KERNEL)
        code = p->cu.launch(p->function, (unsigned)((p->count + BLOCK - 1) / BLOCK), 1, 1, BLOCK, 1,
                            1, 0, stream, parameters, NULL);
    if (!code && operations & DOWNLOAD)
        code = p->cu.d2h(p->result + (size_t)i * nbytes, memory, nbytes, stream);
    return code;
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Nanoseconds for all pieces; negative: the code of a call that failed. */
int64_t raw_pipeline_run(struct raw_pipeline *p, int operations)
{
    int code = 0;
    const int64_t began = now();
    for (int i = 0; i < p->pieces && !code; i++)
        code = piece_queue(p, i, operations);
    for (int i = 0; i < p->stream_count && !code; i++)
        code = p->cu.stream_sync(p->streams[i]);
    return code ? -code : now() - began;
}
