/* block.c: the threads of a block on one thread of the system.
 *
 * They run one after the other. One that comes to a barrier is set aside with its stack, a fiber, and
 * another fiber goes on with the threads that have not begun; when none is left the fibers at the
 * barrier go on in turn. A kernel without barriers needs one fiber and changes stacks once a block. */
#include "mine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_SIZE ((size_t)1 << 20)
#define SHARED_ALIGNMENT 64u

struct fiber {
    ucontext_t context;
    struct gg_host_thread thread;
    struct runner *runner;
    struct fiber *next; /* in the list that it is in */
    struct fiber *made; /* all of them */
    char *stack;
};

struct runner {
    const struct mine_grid *grid;
    ucontext_t scheduler;
    struct gg_host_dim block; /* which one runs */
    uint32_t next, threads;   /* of the block */
    struct fiber *idle, *waiting, **last_waiting, *all;
    void *shared;
};

/* ---- on a fiber ---- */

static void wait_at_barrier(const struct gg_host_thread *thread)
{
    struct fiber *self = thread->reserved;
    struct runner *runner = self->runner;
    self->next = NULL;
    *runner->last_waiting = self;
    runner->last_waiting = &self->next;
    swapcontext(&self->context, &runner->scheduler);
}

static void run_thread(struct fiber *self, uint32_t index)
{
    const struct mine_grid *grid = self->runner->grid;
    self->thread.thread.x = index % grid->block.x;
    self->thread.thread.y = index / grid->block.x % grid->block.y;
    self->thread.thread.z = index / grid->block.x / grid->block.y;
    self->thread.block = self->runner->block;
    grid->kernel->run(&self->thread, grid->arguments);
}

/* makecontext passes ints only. */
static void run_fiber(unsigned high, unsigned low)
{
    struct fiber *self = (struct fiber *)((uintptr_t)high << 32 | low);
    struct runner *runner = self->runner;
    for (;;) {
        while (runner->next < runner->threads)
            run_thread(self, runner->next++);
        self->next = runner->idle;
        runner->idle = self;
        swapcontext(&self->context, &runner->scheduler);
    }
}

/* ---- the scheduler ---- */

static void prepare(struct runner *runner, struct fiber *fiber)
{
    const struct mine_grid *grid = runner->grid;
    fiber->runner = runner;
    fiber->thread = (struct gg_host_thread){.struct_size = sizeof fiber->thread,
                                            .shared_size = grid->shared,
                                            .block_dim = grid->block,
                                            .grid_dim = grid->grid,
                                            .shared = runner->shared,
                                            .barrier = wait_at_barrier,
                                            .reserved = fiber};
    fiber->made = runner->all;
    runner->all = fiber;
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = STACK_SIZE;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, (void (*)(void))(uintptr_t)run_fiber, 2,
                (unsigned)((uintptr_t)fiber >> 32), (unsigned)(uintptr_t)fiber);
}

/* One page below the stack faults, so that an overflow ends the process instead of other data. */
static struct fiber *new_fiber(struct runner *runner)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct fiber *fiber = calloc(1, sizeof *fiber);
    if (!fiber)
        return NULL;
    char *base = mmap(NULL, page + STACK_SIZE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (base == MAP_FAILED) {
        free(fiber);
        return NULL;
    }
    mprotect(base, page, PROT_NONE);
    fiber->stack = base + page;
    prepare(runner, fiber);
    return fiber;
}

static struct fiber *take_fiber(struct runner *runner)
{
    struct fiber *fiber = runner->idle;
    if (!fiber)
        return new_fiber(runner);
    runner->idle = fiber->next;
    return fiber;
}

static void resume(struct runner *runner, struct fiber *fiber)
{
    swapcontext(&runner->scheduler, &fiber->context);
}

/* All threads have begun, and those that have not ended are at the barrier: it opens. */
static void open_barrier(struct runner *runner)
{
    struct fiber *fiber = runner->waiting, *next;
    runner->waiting = NULL;
    runner->last_waiting = &runner->waiting;
    for (; fiber; fiber = next) {
        next = fiber->next;
        resume(runner, fiber);
    }
}

static bool run_block(struct runner *runner)
{
    runner->next = 0;
    runner->waiting = NULL;
    runner->last_waiting = &runner->waiting;
    while (runner->next < runner->threads || runner->waiting) {
        if (runner->next >= runner->threads) {
            open_barrier(runner);
            continue;
        }
        struct fiber *fiber = take_fiber(runner);
        if (!fiber)
            return false;
        resume(runner, fiber);
    }
    return true;
}

static void free_fibers(struct runner *runner)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct fiber *next;
    for (struct fiber *fiber = runner->all; fiber; fiber = next) {
        next = fiber->made;
        munmap(fiber->stack - page, page + STACK_SIZE);
        free(fiber);
    }
}

static bool run_blocks(struct runner *runner)
{
    const struct gg_host_dim grid = runner->grid->grid;
    struct gg_host_dim *at = &runner->block;
    for (at->z = 0; at->z < grid.z; at->z++)
        for (at->y = 0; at->y < grid.y; at->y++)
            for (at->x = 0; at->x < grid.x; at->x++)
                if (!run_block(runner))
                    return false;
    return true;
}

const char *mine_run_grid(const struct mine_grid *grid)
{
    struct runner runner = {.grid = grid, .threads = grid->block.x * grid->block.y * grid->block.z};
    const size_t shared = (grid->shared + SHARED_ALIGNMENT - 1) / SHARED_ALIGNMENT;
    bool ran;
    if (grid->shared) {
        runner.shared = aligned_alloc(SHARED_ALIGNMENT, shared * SHARED_ALIGNMENT);
        if (!runner.shared)
            return "a kernel did not run: no memory for its shared memory";
    }
    ran = run_blocks(&runner);
    free_fibers(&runner);
    free(runner.shared);
    return ran ? NULL : "a kernel did not run to its end: no memory for the threads of a block";
}
