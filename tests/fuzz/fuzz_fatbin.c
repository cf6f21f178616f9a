/* fuzz_fatbin.c: the containers of several images: fatbins, and bundles of code objects. */
#include "image.h"

/* The first byte selects the container. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char fatbin[] = "\x50\xed\x55\xba", bundle[] = "__CLANG_OFFLOAD_BUNDLE__";
    if (size && data[0] % 2)
        fuzz_image(bundle, sizeof bundle - 1, data + 1, size - 1);
    else if (size)
        fuzz_image(fatbin, sizeof fatbin - 1, data + 1, size - 1);
    return 0;
}
