/* late.c: calls a function from a thread that Python did not create: for some arguments at once,
 * for the rest during process exit, after the interpreter has ended. For tests of late releases. */
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

/* Runs in exit(), which Python calls after its own finalization. */
static void run_late_calls(void)
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

/* Returns 0 after the early calls; -1 on failure. */
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
    if (atexit(run_late_calls) || pthread_create(&late.thread, NULL, call_all, NULL))
        return -1;
    sem_wait(&late.early_done);
    return 0;
}
