/* staged.c: see staged.h. */
#include "staged.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int wrong(const char *what)
{
    struct gg_error error = last_error();
    fprintf(stderr, "%s (%s)\n", what, error.message);
    return 1;
}

int set_scene(struct scene *s, size_t nbytes)
{
    s->from = malloc(nbytes);
    s->to = calloc(1, nbytes);
    if (!s->from || !s->to || gg_current_device(&s->device) ||
        gg_stream_create(s->device, GG_STREAM_NONBLOCKING, 0, &s->stream) ||
        gg_memory_alloc(s->device, GG_MEMORY_DEVICE, nbytes, s->stream, &s->memory))
        return wrong("no scene");
    fill_pattern(s->from, nbytes, 5);
    return 0;
}

gg_status up(struct scene *s, size_t nbytes)
{
    return copy(at(s->memory, 0), host_at(s->from), nbytes, s->stream, 0);
}

gg_status down(struct scene *s, size_t nbytes)
{
    return copy(host_at(s->to), at(s->memory, 0), nbytes, s->stream, 0);
}

void end_scene(struct scene *s)
{
    gg_memory_release(s->memory);
    gg_stream_release(s->stream);
    free(s->from);
    free(s->to);
    gg_shutdown(GG_FOREVER);
}

int there_and_back(struct scene *s, size_t nbytes)
{
    memset(s->to, 0, nbytes);
    if (up(s, nbytes) || down(s, nbytes))
        return wrong("a copy failed");
    return memcmp(s->from, s->to, nbytes) ? wrong("other bytes came back") : 0;
}

static const char *const thread_counts[] = {"1", "2", "5"};

void assert_silent(const char *scenario)
{
    char output[2000];
    setenv("GPUGLUE_STAGING", "always", 1); /* the scenario reads it at its first large copy */
    for (size_t i = 0; i < sizeof thread_counts / sizeof thread_counts[0]; i++) {
        int code = start_scenario(scenario, "GPUGLUE_COPY_THREADS", thread_counts[i], output,
                                  sizeof output);
        if (code || output[0])
            fail_msg("%s by %s threads: exit %d: %s", scenario, thread_counts[i], code, output);
    }
}
