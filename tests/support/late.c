/* late.c: calls a function from a thread that is no Python thread: some arguments at once, the rest when the
 * interpreter has ended and the process is on its way out. For tests of what may be let go of at any time. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dlfcn.h>

static struct {
    void (*function)(void *);
    void **arguments;
    size_t count, early;
    sem_t early_done, ended;
    pthread_t thread;
} late;

static void *call_all(void *unused)
{
    for (size_t i = 0; i < late.count; i++) {
        if (i == late.early) {
            sem_post(&late.early_done);
            sem_wait(&late.ended);
        }
        late.function(late.arguments[i]);
    }
    return unused;
}

/* Runs in exit(), which Python calls when it has ended itself. */
static void go_on(void)
{
    int (*initialized)(void) = NULL;
    void *found = dlsym(RTLD_DEFAULT, "Py_IsInitialized");
    memcpy(&initialized, &found, sizeof found);
    sem_post(&late.ended);
    pthread_join(late.thread, NULL);
    printf("late: %zu calls %s the end\n", late.count - late.early,
           initialized && !initialized() ? "after" : "before");
    free(late.arguments);
}

/* 0, when the early ones are done; -1 */
__attribute__((visibility("default"))) int
late_calls(void (*function)(void *), void *const *arguments, size_t count, size_t early)
{
    late.arguments = malloc(count * sizeof *arguments);
    if (!late.arguments || early >= count)
        return -1;
    memcpy(late.arguments, arguments, count * sizeof *arguments);
    late.function = function;
    late.count = count;
    late.early = early;
    sem_init(&late.early_done, 0, 0);
    sem_init(&late.ended, 0, 0);
    if (atexit(go_on) || pthread_create(&late.thread, NULL, call_all, NULL))
        return -1;
    sem_wait(&late.early_done);
    return 0;
}
