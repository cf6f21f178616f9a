/* fuzz_fatbin.c: the containers of several images: fatbins, bundles of code objects, and the headers of compressed bundles. */
#include "image.h"

/* The first byte selects the container. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const magic[] = {"\x50\xed\x55\xba", "__CLANG_OFFLOAD_BUNDLE__", "CCOB"};
    if (size) {
        const char *const selected = magic[data[0] % 3];
        fuzz_image(selected, strlen(selected), data + 1, size - 1);
    }
    return 0;
}
