/* block.c: run blocks of a grid, and the threads of a block on one thread of the system.
 *
 * They run one after the other on a fiber. A thread at a barrier is suspended with its fiber, and another fiber
 * runs the threads that have not started. When all have started, the fibers at the barrier are resumed in turn.
 * A kernel without barriers needs one fiber and two context switches per block. A thread also waits for lanes of its warp
 * (warp.c); it goes on before further threads are started, so that a warp uses few fibers. */
#include "host.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_SIZE ((size_t)1 << 20)
#define SHARED_ALIGNMENT 64u
#define GUARDS_MAX 8192u

/* glibc's swapcontext() makes a system call, which takes ten times as long as the rest of a short kernel's thread. Sanitizers and
 * processes with shadow stacks know it, and not the other way. */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SWITCHES_WITHOUT_CALLS 1
#endif
#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#undef SWITCHES_WITHOUT_CALLS
#endif
#endif

static atomic_uint guards; /* pages, of all grids that run */

/* Where a fiber or the scheduler was left. */
struct place {
#ifdef SWITCHES_WITHOUT_CALLS
    void *left[5];  /* of __builtin_setjmp */
    uint32_t mxcsr; /* the rounding of floating-point numbers there */
    uint16_t x87;   /* the same of long double */
    bool begun;
#endif
    ucontext_t context; /* where it begins */
};

/* At the end of its stack, so that one mapping is all the memory of a fiber. */
struct fiber {
    struct host_lane lane; /* the first member */
    struct runner *runner;
    struct fiber *next; /* in the idle list */
    struct gg_host_thread thread;
    struct place place;
    struct fiber *next_mapped; /* in the list of those with a mapping of their own */
};
#define FIBER_ROOM ((sizeof(struct fiber) + 63) / 64 * 64)

struct runner {
    const struct host_grid *grid;
    struct place scheduler;
    struct gg_host_dim block; /* the one that runs */
    struct gg_host_dim at;    /* its thread that starts next */
    uint32_t next, threads;   /* that thread's number; of the block */
    struct fiber *idle, *mapped;
    struct host_lanes waiting, ready; /* at the barrier; to be resumed */
    struct host_warps *warps;         /* NULL: no thread has needed them yet */
    char *reserve; /* memory for as many fibers as a block can need; NULL: each is mapped when it is needed */
    uint32_t reserve_used; /* fibers */
    uint32_t guards;       /* counted in `guards` */
    void *shared;
    char failure[HOST_FAILURE_SIZE]; /* of the block: its threads are not resumed */
};

/* ---- switches ---- */

#ifdef SWITCHES_WITHOUT_CALLS
static bool has_shadow_stack(void)
{
    uint64_t top = 0; /* older processors leave it so */
    __asm__ volatile("rdsspq %0" : "+r"(top));
    return top != 0;
}

/* Not in the function that has __builtin_setjmp. */
__attribute__((noinline, noreturn)) static void place_enter(struct place *to)
{
    if (to->begun) {
        __asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(to->mxcsr), "m"(to->x87));
        __builtin_longjmp(to->left, 1);
    }
    to->begun = true;
    setcontext(&to->context);
    abort(); /* it does not fail */
}

__attribute__((noinline)) static void place_switch(struct place *from, struct place *to)
{
    if (has_shadow_stack()) {
        swapcontext(&from->context, &to->context);
        return;
    }
    from->begun = true;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(from->mxcsr), "=m"(from->x87));
    if (!__builtin_setjmp(from->left))
        place_enter(to);
}
#else
static void place_switch(struct place *from, struct place *to)
{
    swapcontext(&from->context, &to->context);
}
#endif

/* ---- on a fiber ---- */

static struct fiber *ready_take(struct runner *runner)
{
    struct fiber *fiber = (struct fiber *)runner->ready.first;
    runner->ready.first = fiber->lane.next;
    if (!runner->ready.first)
        host_lanes_clear(&runner->ready);
    return fiber;
}

static struct fiber *idle_take(struct runner *runner)
{
    struct fiber *fiber = runner->idle;
    runner->idle = fiber->next;
    return fiber;
}

/* Go on where the scheduler would, without a switch to it. The scheduler makes new fibers: they begin with its signal mask and
 * rounding, not with those of a kernel. */
static void fiber_leave(struct fiber *self)
{
    struct runner *runner = self->runner;
    struct fiber *next = NULL;
    if (!runner->failure[0] && runner->ready.first)
        next = ready_take(runner);
    else if (!runner->failure[0] && runner->next < runner->threads && runner->idle)
        next = idle_take(runner);
    if (next != self)
        place_switch(&self->place, next ? &next->place : &runner->scheduler);
}

static void fiber_wait_at_barrier(const struct gg_host_thread *thread)
{
    struct fiber *self = thread->reserved;
    host_lanes_append(&self->runner->waiting, &self->lane);
    fiber_leave(self);
}

/* Threads that have started and are not suspended have ended. */
static bool runner_make_warps(struct runner *runner, const struct fiber *self)
{
    const struct host_lane *queues[] = {runner->waiting.first, runner->ready.first};
    bool *alive = calloc(runner->threads, sizeof *alive);
    runner->warps = alive ? host_warps_new(runner->threads, &runner->ready) : NULL;
    for (size_t i = 0; runner->warps && i < sizeof queues / sizeof queues[0]; i++)
        for (const struct host_lane *lane = queues[i]; lane; lane = lane->next)
            alive[lane->index] = true;
    for (uint32_t i = 0; runner->warps && i < runner->next; i++)
        if (!alive[i] && i != self->lane.index)
            host_warps_end(runner->warps, i, runner->failure);
    free(alive);
    return runner->warps != NULL;
}

static void fiber_wait_for_warp(const struct gg_host_thread *thread, uint32_t mask,
                                const struct gg_host_operation *operation, void *argument,
                                const void *site)
{
    struct fiber *self = thread->reserved;
    struct runner *runner = self->runner;
    self->lane = (struct host_lane){NULL, self->lane.index, mask, operation, argument, site};
    if (runner->warps || runner_make_warps(runner, self))
        host_warps_call(runner->warps, &self->lane, runner->failure);
    else
        strcpy(runner->failure, "no memory for the warps of a block");
    fiber_leave(self);
}

static void runner_next_thread(struct runner *runner)
{
    const struct gg_host_dim size = runner->grid->block;
    runner->next++;
    if (++runner->at.x == size.x) {
        runner->at.x = 0;
        if (++runner->at.y == size.y) {
            runner->at.y = 0;
            runner->at.z++;
        }
    }
}

static void fiber_run_thread(struct fiber *self)
{
    struct runner *runner = self->runner;
    self->thread.thread = runner->at;
    self->thread.block = runner->block;
    self->lane.index = runner->next;
    runner_next_thread(runner);
    runner->grid->kernel->run(&self->thread, runner->grid->arguments);
}

static bool fiber_may_start_a_thread(const struct runner *runner)
{
    return runner->next < runner->threads && !runner->ready.first && !runner->failure[0];
}

/* makecontext passes only ints. */
static void fiber_main(unsigned high, unsigned low)
{
    struct fiber *self = (struct fiber *)((uintptr_t)high << 32 | low);
    struct runner *runner = self->runner;
    for (;;) {
        while (fiber_may_start_a_thread(runner)) {
            fiber_run_thread(self);
            if (runner->warps)
                host_warps_end(runner->warps, self->lane.index, runner->failure);
        }
        self->next = runner->idle;
        runner->idle = self;
        fiber_leave(self);
    }
}

/* ---- the scheduler ---- */

static void fiber_init(struct runner *runner, struct fiber *fiber)
{
    const struct host_grid *grid = runner->grid;
    fiber->runner = runner;
    fiber->thread = (struct gg_host_thread){.struct_size = sizeof fiber->thread,
                                            .shared_size = grid->shared,
                                            .block_dim = grid->block,
                                            .grid_dim = grid->grid,
                                            .shared = runner->shared,
                                            .barrier = fiber_wait_at_barrier,
                                            .reserved = fiber,
                                            .warp = fiber_wait_for_warp};
    getcontext(&fiber->place.context);
    fiber->place.context.uc_stack.ss_sp = (char *)fiber + FIBER_ROOM - STACK_SIZE;
    fiber->place.context.uc_stack.ss_size = STACK_SIZE - FIBER_ROOM;
    fiber->place.context.uc_link = NULL;
    makecontext(&fiber->place.context, (void (*)(void))(uintptr_t)fiber_main, 2,
                (unsigned)((uintptr_t)fiber >> 32), (unsigned)(uintptr_t)fiber);
}

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Memory for @p count fibers: a guard page and a stack for each. */
static char *fibers_map(uint32_t count)
{
    const size_t size = count * (page_size() + STACK_SIZE);
    char *base = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    if (count > 1)
        madvise(base, size, MADV_NOHUGEPAGE); /* of a stack few pages are used */
    return base;
}

/* An overflow of the stack ends the process instead of overwriting other data. A guard page makes two mappings of memory, of
 * which Linux permits a process about 65,000: with many blocks of many threads at once some stacks have no guard. */
static void fiber_guard(struct runner *runner, char *page)
{
    if (atomic_fetch_add(&guards, 1) < GUARDS_MAX && !mprotect(page, page_size(), PROT_NONE))
        runner->guards++;
    else
        atomic_fetch_sub(&guards, 1);
}

static struct fiber *fiber_new(struct runner *runner)
{
    const size_t page = page_size();
    const bool own = !runner->reserve;
    char *base =
        own ? fibers_map(1) : runner->reserve + runner->reserve_used++ * (page + STACK_SIZE);
    if (!base)
        return NULL;
    fiber_guard(runner, base);
    struct fiber *fiber = (void *)(base + page + STACK_SIZE - FIBER_ROOM);
    if (own) {
        fiber->next_mapped = runner->mapped;
        runner->mapped = fiber;
    }
    fiber_init(runner, fiber);
    return fiber;
}

static struct fiber *fiber_take(struct runner *runner)
{
    return runner->idle ? idle_take(runner) : fiber_new(runner);
}

static void fiber_resume(struct runner *runner, struct fiber *fiber)
{
    place_switch(&runner->scheduler, &fiber->place);
}

/* All threads have started, and none can go on. Those that have not ended are at the barrier, which then opens, or wait for
 * lanes of their warps. False: there is none that may go on now. */
static bool waiting_release(struct runner *runner)
{
    if (runner->warps)
        host_warps_stalled(runner->warps, runner->failure);
    if (!runner->ready.first && !runner->failure[0] && runner->waiting.first) {
        runner->ready = runner->waiting;
        host_lanes_clear(&runner->waiting);
    }
    return runner->ready.first != NULL;
}

static void threads_start(struct runner *runner)
{
    struct fiber *fiber = fiber_take(runner);
    if (fiber)
        fiber_resume(runner, fiber);
    else
        strcpy(runner->failure, "no memory for the threads of a block");
}

static void block_begin(struct runner *runner)
{
    runner->next = 0;
    runner->at = (struct gg_host_dim){0, 0, 0};
    host_lanes_clear(&runner->waiting);
    host_lanes_clear(&runner->ready);
    if (runner->warps)
        host_warps_begin(runner->warps);
}

static bool block_run(struct runner *runner)
{
    block_begin(runner);
    do {
        while (runner->ready.first && !runner->failure[0])
            fiber_resume(runner, ready_take(runner));
        while (fiber_may_start_a_thread(runner))
            threads_start(runner);
    } while (!runner->failure[0] && (runner->ready.first || waiting_release(runner)));
    return !runner->failure[0];
}

/* Why the first block that failed did. No further blocks begin. */
static void job_fail(struct host_job *job, const struct runner *runner)
{
    const struct gg_host_dim at = runner->block;
    if (!atomic_exchange(&job->failed, true))
        snprintf(job->failure, sizeof job->failure,
                 "the kernel %.64s did not complete: block (%u, %u, %u): %.200s",
                 job->grid->kernel->name, at.x, at.y, at.z, runner->failure);
}

/* The next chunk of the grid's blocks; false if there is none, or a block cannot run. */
static bool chunk_run(struct runner *runner, struct host_job *job)
{
    const struct gg_host_dim grid = runner->grid->grid;
    const uint64_t first = atomic_fetch_add(&job->next_block, job->chunk);
    for (uint64_t i = first; i < job->blocks && i < first + job->chunk; i++) {
        runner->block.x = (uint32_t)(i % grid.x);
        runner->block.y = (uint32_t)(i / grid.x % grid.y);
        runner->block.z = (uint32_t)(i / grid.x / grid.y);
        if (!block_run(runner)) {
            job_fail(job, runner);
            return false;
        }
    }
    return first + job->chunk < job->blocks && !atomic_load(&job->failed);
}

/* ---- the threads that run a grid ---- */

static bool runner_init(struct runner *runner, const struct host_grid *grid)
{
    const size_t units = (grid->shared + SHARED_ALIGNMENT - 1) / SHARED_ALIGNMENT;
    *runner =
        (struct runner){.grid = grid, .threads = grid->block.x * grid->block.y * grid->block.z};
    if (grid->shared)
        runner->shared = aligned_alloc(SHARED_ALIGNMENT, units * SHARED_ALIGNMENT);
    return !grid->shared || runner->shared;
}

/* After this no block fails for want of memory. */
static bool runner_reserve(struct runner *runner)
{
    runner->reserve = fibers_map(runner->threads);
    return runner->reserve != NULL;
}

static void runner_free(struct runner *runner)
{
    const size_t each = page_size() + STACK_SIZE;
    struct fiber *next;
    for (struct fiber *fiber = runner->mapped; fiber; fiber = next) {
        next = fiber->next_mapped;
        munmap((char *)fiber + FIBER_ROOM - each, each);
    }
    if (runner->reserve)
        munmap(runner->reserve, runner->threads * each);
    atomic_fetch_sub(&guards, runner->guards);
    free(runner->warps);
    free(runner->shared);
}

/* Other threads must not take the memory that this one needs: without a reserve it runs the grid alone. */
static void runner_offer(struct runner *runner, struct host_job *job, struct host_team *team)
{
    if (runner_reserve(runner))
        host_job_offer(job, team);
    else
        job->offer_at = GG_FOREVER;
}

static void runner_run(struct runner *runner, struct host_job *job, struct host_team *team)
{
    if (team && !job->offer_at)
        runner_offer(runner, job, team);
    while (chunk_run(runner, job))
        if (team && !job->offered && host_now_ns() >= job->offer_at)
            runner_offer(runner, job, team);
}

void host_run_blocks(struct host_job *job, struct host_team *team)
{
    struct runner runner;
    if (runner_init(&runner, job->grid))
        runner_run(&runner, job, team);
    else
        strcpy(job->failure, "a kernel did not run: no memory for its shared memory");
    /* Before the reserve is freed: malloc in another thread could take its addresses for good. */
    if (job->offered)
        host_job_withdraw(job, team);
    runner_free(&runner);
}

bool host_help_with_blocks(struct host_job *job)
{
    struct runner runner;
    const bool ready = runner_init(&runner, job->grid) && runner_reserve(&runner);
    if (ready)
        runner_run(&runner, job, NULL);
    runner_free(&runner);
    return ready;
}
