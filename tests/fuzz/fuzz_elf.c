/* fuzz_elf.c: cubins, code objects, zebins and shared objects. */
#include "image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char magic[] = "\177ELF\2\1"; /* 64-bit, little-endian */
    fuzz_image(magic, sizeof magic - 1, data, size);
    return 0;
}
