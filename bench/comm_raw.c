/* comm_raw.c: loops that call NCCL directly, for comm.py: what it costs without gpuglue. Built with `cc -O2 -shared -fPIC`. */
#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef int all_reduce(const void *, void *, size_t, int, int, void *, void *);
typedef int all_gather(const void *, void *, size_t, int, void *, void *);

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Nanoseconds until all calls have returned; negative: the code of one that failed. */
int64_t raw_all_reduce(all_reduce *call, const void *src, void *dst, size_t count, int type, int op,
                       void *comm, void *stream, int calls)
{
    const int64_t began = now();
    for (int i = 0; i < calls; i++) {
        const int code = call(src, dst, count, type, op, comm, stream);
        if (code)
            return -code;
    }
    return now() - began;
}

/* The same for all_gather and, with one more argument, for reduce_scatter. */
int64_t raw_all_gather(all_gather *call, const void *src, void *dst, size_t count, int type,
                       void *comm, void *stream, int calls)
{
    const int64_t began = now();
    for (int i = 0; i < calls; i++) {
        const int code = call(src, dst, count, type, comm, stream);
        if (code)
            return -code;
    }
    return now() - began;
}
