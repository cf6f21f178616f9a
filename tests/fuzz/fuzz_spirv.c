/* fuzz_spirv.c: SPIR-V in both byte orders. */
#include "image.h"

#define BOUND 12      /* offset of the number of ids */
#define IDS_MAX 0xfff /* of an input */

/* The first byte selects the byte order. The reader allocates an entry per id: the number is kept small, so that the
 * fuzzer does not spend its time on clearing memory. Numbers that are refused stay as they are. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char little[] = "\x03\x02\x23\x07", big[] = "\x07\x23\x02\x03";
    const bool swapped = size && data[0] % 2;
    if (size < 1 + BOUND + 4)
        return 0;
    uint8_t *copy = malloc(size - 1), *bound = copy + BOUND;
    FUZZ_CHECK(copy);
    memcpy(copy, data + 1, size - 1);
    if (!bound[swapped ? 0 : 3]) {
        bound[swapped ? 1 : 2] = 0;
        bound[swapped ? 2 : 1] &= IDS_MAX >> 8;
    }
    fuzz_image(swapped ? big : little, 4, copy, size - 1);
    free(copy);
    return 0;
}
