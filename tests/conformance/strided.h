/* strided.h: a copy of N axes as a plain loop over all elements, and memory to compare with it. */
#ifndef GPUGLUE_TESTS_STRIDED_H
#define GPUGLUE_TESTS_STRIDED_H

#include "conformance.h"

#define MOST 6
#define ROOM 4096u /* bytes of each operand in the small tests */

struct layout {
    size_t offset; /* of element [0, …, 0] */
    ptrdiff_t strides[MOST];
};

struct request {
    int ndim;
    size_t shape[MOST], itemsize;
    struct layout dst, src;
};

/* One copy of one element after the other. */
void reference(const struct request *r, unsigned char *dst, const unsigned char *src);
void fill_pattern(unsigned char *bytes, size_t nbytes, unsigned seed);
/* gg_copy_nd with the request's offsets added to those of the operands. */
gg_status run(const struct request *r, struct gg_copy_operand dst, struct gg_copy_operand src,
              gg_stream *stream, uint32_t flags);

/* Every kind of pair of operands, over the same bytes. */
enum pair { UP, DOWN, ACROSS, FROM_PINNED, TO_PINNED, BETWEEN_PINNED, PAIRS };

struct bench {
    struct fixture *f;
    size_t room;
    unsigned char *from, *to, *expected;
    gg_memory *device_src, *device_dst, *pinned_src, *pinned_dst;
};

struct bench new_bench(struct fixture *f, size_t room);
void free_bench(struct bench *b);
/* Run it and compare all bytes of the destination: those between the elements must not change. */
void check(struct bench *b, const struct request *r, enum pair pair, uint32_t flags);
/* With every pair, waiting and not. */
void check_all(struct fixture *f, const struct request *r, size_t room);

#endif
