/* pairs.h: two devices, of one backend or of two, for tests of copies between them.
 *
 * The devices are those of the run's backend and the host, or the first device of each backend
 * that GPUGLUE_TOGETHER lists and a second one of the run's own. So several backends are open in
 * one process. */
#ifndef GPUGLUE_TESTS_PAIRS_H
#define GPUGLUE_TESTS_PAIRS_H

#include "conformance.h"

#define DEVICES_ROOM 8
#define NBYTES 4096u

struct devices {
    gg_device *device[DEVICES_ROOM];
    size_t count;
};

struct pair {
    struct fixture *f;
    gg_device *from, *to;
};

struct devices all_devices(struct fixture *f); /* skips the test where there is only one */
void for_each_pair(void **state, void (*body)(struct pair *pair));
/* Pairs whose copies go through the host; pairs whose copies are direct, with a skip where there
 * are none. */
void for_each_pair_apart(void **state, void (*body)(struct pair *pair));
void for_each_direct_pair(void **state, void (*body)(struct pair *pair));

/* ---- objects on either device, released by the fixture ---- */

gg_memory *memory_on(struct pair *pair, gg_device *device, enum gg_memory_kind kind, size_t nbytes);
/* NBYTES bytes, all @p value when it returns. */
gg_memory *filled_on(struct pair *pair, gg_device *device, unsigned char value);
gg_stream *stream_on(struct pair *pair, gg_device *device);
unsigned char first_byte(gg_memory *memory);

#endif
