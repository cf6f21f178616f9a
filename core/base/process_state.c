/* process_state.c: forks, the shutdown, the wait hook and the clock. */
#include "base/process_state.h"

#include <gpuglue/gpuglue.h>

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define RESET_ROOM 64
#define FILES_ROOM 64

_Atomic(uint32_t) ggi_generation = 1;
_Atomic(int) ggi_shutting_down;

static _Atomic(int (*)(void)) process_wait_hook;
static pthread_once_t process_watch_once = PTHREAD_ONCE_INIT;
/* The locks of GGI_RESET_IN_CHILD: the linker defines the two names. */
extern pthread_mutex_t *__start_ggi_locks[], *__stop_ggi_locks[];
/* Those of ggi_reset_in_child. */
static pthread_mutex_t *process_resets[RESET_ROOM];
static _Atomic(int) process_reset_count;

/* Files of ggi_close_in_child. A fork may come at any time, so blocks are only added, and each change is one store. */
struct process_files {
    struct process_files *next;
    _Atomic(int) files[FILES_ROOM]; /* and 1; 0: free */
};
static _Atomic(struct process_files *) process_all_files;

const char *gg_library_path(void)
{
    Dl_info info;
    return dladdr((const void *)&ggi_generation, &info) ? info.dli_fname : NULL;
}

static void process_close_files(void)
{
    for (struct process_files *some = atomic_load(&process_all_files); some; some = some->next)
        for (int i = 0; i < FILES_ROOM; i++)
            if (atomic_load(&some->files[i]))
                close(atomic_exchange(&some->files[i], 0) - 1);
}

/* Runs in the child, which has one thread. */
static void process_reset_in_child(void)
{
    int count = atomic_load(&process_reset_count);
    atomic_fetch_add(&ggi_generation, 1);
    process_close_files();
    for (pthread_mutex_t **lock = __start_ggi_locks; lock < __stop_ggi_locks; lock++)
        pthread_mutex_init(*lock, NULL);
    for (int i = 0; i < count && i < RESET_ROOM; i++)
        if (process_resets[i]) /* NULL if the fork came between the count and the store */
            pthread_mutex_init(process_resets[i], NULL);
}

static void process_watch_forks(void)
{
    pthread_atfork(NULL, NULL, process_reset_in_child);
}

void ggi_watch_forks(void)
{
    pthread_once(&process_watch_once, process_watch_forks);
}

void ggi_reset_in_child(pthread_mutex_t *lock)
{
    int at = atomic_fetch_add(&process_reset_count, 1);
    if (at < RESET_ROOM)
        process_resets[at] = lock;
}

/* Replace a file, or a free place. */
static bool process_files_change(int from, int to)
{
    for (struct process_files *some = atomic_load(&process_all_files); some; some = some->next)
        for (int i = 0; i < FILES_ROOM; i++)
            if (atomic_compare_exchange_strong(&some->files[i], &(int){from}, to))
                return true;
    return false;
}

bool ggi_close_in_child(int file)
{
    ggi_watch_forks();
    if (process_files_change(0, file + 1))
        return true;
    struct process_files *more = calloc(1, sizeof *more);
    if (!more)
        return false;
    atomic_store(&more->files[0], file + 1);
    more->next = atomic_load(&process_all_files);
    while (!atomic_compare_exchange_weak(&process_all_files, &more->next, more))
        ;
    return true;
}

void ggi_close_file(int file)
{
    process_files_change(file + 1, 0);
    close(file);
}

void gg_set_wait_hook(int (*hook)(void))
{
    atomic_store(&process_wait_hook, hook);
}

int ggi_interrupted(void)
{
    int (*hook)(void) = atomic_load(&process_wait_hook);
    return hook ? hook() : 0;
}

uint64_t ggi_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
