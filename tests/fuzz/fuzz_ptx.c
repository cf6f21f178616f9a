/* fuzz_ptx.c: PTX. The version, with which every PTX file begins, is not part of the input. */
#include "image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char version[] = ".version 8.0    \n";
    const size_t length = sizeof version - 1;
    uint8_t *text = malloc(length + size);
    FUZZ_CHECK(text);
    memcpy(text, version, length);
    memcpy(text + length, data, size);
    fuzz_image(version, length, text, length + size);
    free(text);
    return 0;
}
