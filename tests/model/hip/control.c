/* control.c: faults that a test requests, and the model's messages.
 *
 * GPUGLUE_TEST_MODEL_CONTROL names a directory. While it contains a file `hold`, no queue advances; a file `lost` makes the next
 * packet fail its queue; a file `memory` has the number of bytes that may be allocated on each GPU.
 * GPUGLUE_TEST_MODEL_LOG=1 writes each packet to stderr. */
#include "model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- messages ---- */

static void say(const char *format, va_list values)
{
    char text[512];
    vsnprintf(text, sizeof text, format, values);
    fprintf(stderr, "gpu model: %s\n", text);
}

bool model_logs(void)
{
    static int logs = -1;
    if (logs < 0)
        logs = getenv("GPUGLUE_TEST_MODEL_LOG") != NULL;
    return logs;
}

void model_log(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    say(format, values);
    va_end(values);
}

void model_fail(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    say(format, values);
    va_end(values);
    abort();
}

/* ---- faults ---- */

static bool control_path(const char *name, char *path, size_t size)
{
    const char *directory = getenv("GPUGLUE_TEST_MODEL_CONTROL");
    if (!directory)
        return false;
    snprintf(path, size, "%s/%s", directory, name);
    return true;
}

static bool asked(const char *name)
{
    char path[4096];
    return control_path(name, path, sizeof path) && !access(path, F_OK);
}

bool control_may_advance(struct queue *queue)
{
    unsigned turns = 0;
    while (asked("hold") && !atomic_load(&queue->ending))
        model_relax(&turns);
    if (queue->info.type == QUEUE_AQL && !atomic_load(&queue->ending) && asked("lost")) {
        MODEL_LOG("queue %p: lost", (void *)queue);
        queue_report_lost(queue);
        return false;
    }
    return !atomic_load(&queue->ending);
}

uint64_t control_memory_limit(uint64_t all)
{
    char path[4096];
    unsigned long long limit;
    FILE *file = control_path("memory", path, sizeof path) ? fopen(path, "r") : NULL;
    if (!file)
        return all;
    if (fscanf(file, "%llu", &limit) != 1)
        limit = all;
    fclose(file);
    return limit;
}
