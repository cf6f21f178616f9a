/* staged.h: a scene for large copies, and scenarios that run with one copy thread and with several. */
#ifndef GPUGLUE_TESTS_STAGED_H
#define GPUGLUE_TESTS_STAGED_H

#include "strided.h"

#define LARGE ((size_t)40 << 20) /* more than a lane has slots for */
#define ODD (LARGE + 4093)

struct scene {
    gg_device *device;
    gg_stream *stream;
    gg_memory *memory;
    unsigned char *from, *to;
};

int wrong(const char *what); /* prints it and gpuglue's last error; returns 1 */
int set_scene(struct scene *s, size_t nbytes);
void end_scene(struct scene *s);
gg_status up(struct scene *s, size_t nbytes);
gg_status down(struct scene *s, size_t nbytes);
int there_and_back(struct scene *s, size_t nbytes); /* 0: the bytes are the same */

/* The scenario succeeds without output, with each number of copy threads. */
void assert_silent(const char *scenario);

#endif
