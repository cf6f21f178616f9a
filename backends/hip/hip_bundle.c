/* hip_bundle.c: compressed bundles of code objects, which begin with "CCOB". The runtime decompresses them. */
#include "hip_driver.h"

#include <string.h>

/* The first release of ROCm/clr whose hip_code_object.cpp knows the mark. Earlier ones take the bundle for a code object. */
#define HIP_DECOMPRESSES (6 * HIP_MAJOR + 2 * HIP_MINOR)
/* That file reads the size of the bundle where version 1 of the header has the size of its contents, and would read
 * beyond the bundle's end. */
enum { BUNDLE_WITHOUT_SIZE = 1 };

gg_status hip_check_bundle(const void *bytes)
{
    char text[64];
    int version = 0;
    uint16_t header;
    if (memcmp(bytes, "CCOB", 4) != 0)
        return GG_OK;
    memcpy(&header, (const char *)bytes + 4, sizeof header);
    const int code = cuhip_driver.version(&version);
    if (code)
        return cuhip_fail(code, "the version of HIP, for a compressed bundle");
    cuhip.version_text(version, text, sizeof text);
    if (version < HIP_DECOMPRESSES)
        return cuhip_api->fail(
            GG_ERR_UNSUPPORTED, NULL,
            "the bundle is compressed, and HIP %s does not decompress it: expected HIP "
            "6.2.0 or newer; or compile with --no-offload-compress",
            text);
    if (header == BUNDLE_WITHOUT_SIZE)
        return cuhip_api->fail(
            GG_ERR_UNSUPPORTED, NULL,
            "the header of the compressed bundle has version 1, which HIP %s reads "
            "wrongly: expected version 2 or 3, as of ROCm 6.2's compiler; or "
            "compile with --no-offload-compress",
            text);
    return GG_OK;
}
