/* image_fat.c: containers of several images: which architectures they hold. Their contents, which may be
 * compressed, are the driver's to choose from; only what lies open is read. */
#include "image.h"

#include <stdio.h>

enum { FAT_PTX = 1, FAT_ELF = 2 }; /* others have to be linked first */

/* One member: a kind, the sizes of its header and of what follows, and the number of its target.
 * Whether it can be loaded as it is. */
static bool read_member(struct ggi_bytes member, struct gg_image *image)
{
    char arch[32];
    const unsigned kind = ggi_u16(member, 0);
    if (kind != FAT_PTX && kind != FAT_ELF)
        return false;
    snprintf(arch, sizeof arch, "%s_%u", kind == FAT_PTX ? "compute" : "sm",
             (unsigned)ggi_u32(member, 28));
    ggi_image_add_arch(image, arch);
    return true;
}

gg_status ggi_image_read_fatbin(struct ggi_bytes bytes, struct gg_image *image)
{
    const uint64_t header = ggi_u16(bytes, 6), size = ggi_u64(bytes, 8);
    struct ggi_bytes members = ggi_part(bytes, header, size);
    unsigned any = 0, loadable = 0;
    if (header < 16 || !ggi_inside(bytes, header, size))
        return ggi_image_damaged("the fatbin's %llu bytes do not fit into %zu",
                                 (unsigned long long)size, bytes.size);
    for (uint64_t at = 0; at < members.size; any++) {
        const uint64_t head = ggi_u32(members, at + 4), body = ggi_u64(members, at + 8);
        if (head < 32 || !ggi_inside(members, at, head) || !ggi_inside(members, at + head, body))
            return ggi_image_damaged("member %u of the fatbin lies past its end", any);
        loadable += read_member(ggi_part(members, at, head), image);
        at += head + body;
    }
    if (any && !loadable)
        image->format = GG_IMAGE_LTOIR;
    return GG_OK;
}

/* ---- a bundle of code objects ---- */

/* "…--gfx90a": what is behind the last "--"; the entry for the host has none. */
static void add_target(struct ggi_bytes triple, struct gg_image *image)
{
    char word[64];
    const unsigned char *dashes = triple.size ? memmem(triple.at, triple.size, "--gfx", 5) : NULL;
    size_t size = dashes ? (size_t)(triple.at + triple.size - (dashes + 2)) : 0;
    if (!size)
        return;
    if (size >= sizeof word) {
        ggi_image_add_arch(image, GGI_MORE_ARCHS);
        return;
    }
    memcpy(word, dashes + 2, size);
    word[size] = 0;
    ggi_image_add_arch(image, word);
}

gg_status ggi_image_read_bundle(struct ggi_bytes bytes, struct gg_image *image)
{
    const uint64_t count = ggi_u64(bytes, 24);
    uint64_t at = 32;
    if (ggi_begins(bytes, "CCOB", 4)) /* compressed: the driver knows */
        return GG_OK;
    if (!count || count > bytes.size / 24)
        return ggi_image_damaged("a bundle of %llu code objects", (unsigned long long)count);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t offset = ggi_u64(bytes, at), size = ggi_u64(bytes, at + 8);
        const uint64_t length = ggi_u64(bytes, at + 16);
        if (!ggi_inside(bytes, at, 24) || !ggi_inside(bytes, at + 24, length) ||
            !ggi_inside(bytes, offset, size))
            return ggi_image_damaged("code object %llu of the bundle lies past its end",
                                     (unsigned long long)i);
        add_target(ggi_part(bytes, at + 24, length), image);
        at += 24 + length;
    }
    return GG_OK;
}
