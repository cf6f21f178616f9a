/* graphs_raw.c: the chain of graphs.py by calls of the CUDA driver alone: its floor. Same kernel and argument, a stream of its
 * own. Built with `cc -O2 -shared -fPIC`; the caller has the device's primary context current. */
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* The driver's functions, whose addresses the caller knows. */
struct raw_chain_calls {
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_sync)(void *stream);
    int (*stream_destroy)(void *stream);
    int (*capture_begin)(void *stream, int mode);
    int (*capture_end)(void *stream, void **graph);
    int (*instantiate)(void **exec, void *graph, unsigned long long flags);
    int (*graph_launch)(void *exec, void *stream);
    int (*graph_destroy)(void *graph);
    int (*exec_destroy)(void *exec);
    int (*launch)(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  unsigned, void *stream, void **parameters, void **extra);
    int (*module_load)(void **module, const void *image);
    int (*module_unload)(void *module);
    int (*function_get)(void **function, void *module, const char *name);
};

struct raw_chain {
    struct raw_chain_calls cu;
    const void *image; /* with the kernel "step" */
    uint64_t memory;   /* its argument */
    int length;        /* launches in the graph */
    void *stream, *module, *function, *graph, *exec;
};

enum { BLOCK = 256, NON_BLOCKING = 1, THREAD_LOCAL = 1 };

static int chain_queue(struct raw_chain *p)
{
    void *parameters[] = {&p->memory};
    int code = 0;
    for (int i = 0; i < p->length && !code; i++)
        code = p->cu.launch(p->function, 1, 1, 1, BLOCK, 1, 1, 0, p->stream, parameters, NULL);
    return code;
}

int raw_chain_begin(struct raw_chain *p)
{
    int code = p->cu.module_load(&p->module, p->image);
    if (!code)
        code = p->cu.function_get(&p->function, p->module, "step");
    if (!code)
        code = p->cu.stream_create(&p->stream, NON_BLOCKING);
    if (!code)
        code = p->cu.capture_begin(p->stream, THREAD_LOCAL);
    if (!code)
        code = chain_queue(p);
    if (!code)
        code = p->cu.capture_end(p->stream, &p->graph);
    return code ? code : p->cu.instantiate(&p->exec, p->graph, 0);
}

void raw_chain_end(struct raw_chain *p)
{
    if (p->exec)
        p->cu.exec_destroy(p->exec);
    if (p->graph)
        p->cu.graph_destroy(p->graph);
    if (p->stream)
        p->cu.stream_destroy(p->stream);
    if (p->module)
        p->cu.module_unload(p->module);
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Nanoseconds of so many launches of the graph, or of the chain's kernels one by one, until the calls have returned (returned[0])
 * and until the stream is done (returned[1]). Returns the code of a call that failed. */
int raw_chain_run(struct raw_chain *p, int launches, int one_by_one, int64_t *returned)
{
    int code = 0;
    const int64_t began = now();
    for (int i = 0; i < launches && !code; i++)
        code = one_by_one ? chain_queue(p) : p->cu.graph_launch(p->exec, p->stream);
    returned[0] = now() - began;
    if (!code)
        code = p->cu.stream_sync(p->stream);
    returned[1] = now() - began;
    return code;
}
