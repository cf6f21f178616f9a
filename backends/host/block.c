/* block.c: run blocks of a grid, and the threads of a block on one thread of the system.
 *
 * They run one after the other on a fiber. A thread at a barrier is suspended with its fiber, and another fiber
 * runs the threads that have not started. When all have started, the fibers at the barrier are resumed in turn.
 * A kernel without barriers needs one fiber and two context switches per block. */
#include "host.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_SIZE ((size_t)1 << 20)
#define SHARED_ALIGNMENT 64u
#define GUARDS_MAX 8192u

static atomic_uint guards; /* pages, of all grids that run */

/* At the end of its stack, so that one mapping is all the memory of a fiber. */
struct fiber {
    ucontext_t context;
    struct gg_host_thread thread;
    struct runner *runner;
    struct fiber *next;        /* in the idle or waiting list */
    struct fiber *next_mapped; /* in the list of those with a mapping of their own */
};
#define FIBER_ROOM ((sizeof(struct fiber) + 63) / 64 * 64)

struct runner {
    const struct host_grid *grid;
    ucontext_t scheduler;
    struct gg_host_dim block; /* the one that runs */
    uint32_t next, threads;   /* of the block */
    struct fiber *idle, *waiting, **last_waiting, *mapped;
    char *reserve; /* memory for as many fibers as a block can need; NULL: each is mapped when it is needed */
    uint32_t reserve_used; /* fibers */
    uint32_t guards;       /* counted in `guards` */
    void *shared;
};

/* ---- on a fiber ---- */

static void fiber_wait_at_barrier(const struct gg_host_thread *thread)
{
    struct fiber *self = thread->reserved;
    struct runner *runner = self->runner;
    self->next = NULL;
    *runner->last_waiting = self;
    runner->last_waiting = &self->next;
    swapcontext(&self->context, &runner->scheduler);
}

static void fiber_run_thread(struct fiber *self, uint32_t index)
{
    const struct host_grid *grid = self->runner->grid;
    self->thread.thread.x = index % grid->block.x;
    self->thread.thread.y = index / grid->block.x % grid->block.y;
    self->thread.thread.z = index / grid->block.x / grid->block.y;
    self->thread.block = self->runner->block;
    grid->kernel->run(&self->thread, grid->arguments);
}

/* makecontext passes only ints. */
static void fiber_main(unsigned high, unsigned low)
{
    struct fiber *self = (struct fiber *)((uintptr_t)high << 32 | low);
    struct runner *runner = self->runner;
    for (;;) {
        while (runner->next < runner->threads)
            fiber_run_thread(self, runner->next++);
        self->next = runner->idle;
        runner->idle = self;
        swapcontext(&self->context, &runner->scheduler);
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
                                            .reserved = fiber};
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = (char *)fiber + FIBER_ROOM - STACK_SIZE;
    fiber->context.uc_stack.ss_size = STACK_SIZE - FIBER_ROOM;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, (void (*)(void))(uintptr_t)fiber_main, 2,
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
    struct fiber *fiber = runner->idle;
    if (!fiber)
        return fiber_new(runner);
    runner->idle = fiber->next;
    return fiber;
}

static void fiber_resume(struct runner *runner, struct fiber *fiber)
{
    swapcontext(&runner->scheduler, &fiber->context);
}

/* All threads have started, and those that have not ended are at the barrier: it opens. */
static void barrier_open(struct runner *runner)
{
    struct fiber *fiber = runner->waiting, *next;
    runner->waiting = NULL;
    runner->last_waiting = &runner->waiting;
    for (; fiber; fiber = next) {
        next = fiber->next;
        fiber_resume(runner, fiber);
    }
}

static bool block_run(struct runner *runner)
{
    runner->next = 0;
    runner->waiting = NULL;
    runner->last_waiting = &runner->waiting;
    while (runner->next < runner->threads || runner->waiting) {
        if (runner->next >= runner->threads) {
            barrier_open(runner);
            continue;
        }
        struct fiber *fiber = fiber_take(runner);
        if (!fiber)
            return false;
        fiber_resume(runner, fiber);
    }
    return true;
}

/* The next chunk of the grid's blocks; false if there is none, or a block cannot run. */
static bool chunk_run(struct runner *runner, struct host_job *job, bool *failed)
{
    const struct gg_host_dim grid = runner->grid->grid;
    const uint64_t first = atomic_fetch_add(&job->next_block, job->chunk);
    for (uint64_t i = first; i < job->blocks && i < first + job->chunk; i++) {
        runner->block.x = (uint32_t)(i % grid.x);
        runner->block.y = (uint32_t)(i / grid.x % grid.y);
        runner->block.z = (uint32_t)(i / grid.x / grid.y);
        if (!block_run(runner)) {
            *failed = true;
            return false;
        }
    }
    return first + job->chunk < job->blocks;
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
    bool failed = false;
    if (team && !job->offer_at)
        runner_offer(runner, job, team);
    while (chunk_run(runner, job, &failed))
        if (team && !job->offered && host_now_ns() >= job->offer_at)
            runner_offer(runner, job, team);
    if (failed)
        atomic_store(&job->failure,
                     "a kernel did not complete: no memory for the threads of a block");
}

void host_run_blocks(struct host_job *job, struct host_team *team)
{
    struct runner runner;
    if (runner_init(&runner, job->grid))
        runner_run(&runner, job, team);
    else
        atomic_store(&job->failure, "a kernel did not run: no memory for its shared memory");
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
