/* fuzz_msgpack.c: the metadata of code objects, without the ELF file around it. */
#include "image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gg_image *image = calloc(1, sizeof *image);
    uint8_t *copy = malloc(size ? size : 1);
    FUZZ_CHECK(image && copy);
    memcpy(copy, data, size);
    if (!ggi_image_read_msgpack((struct ggi_bytes){copy, size}, image))
        fuzz_check_image(image);
    gg_image_free(image);
    free(copy);
    return 0;
}
