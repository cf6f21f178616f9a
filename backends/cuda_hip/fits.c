/* fits.c: whether an image is for a device, told by the architecture that the device reports: sm_… takes
 * cubins, fatbins and PTX, gfx… takes code objects and bundles of them. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARCH_SIZE 64
#define MORE_ARCHS "\xe2\x80\xa6" /* the last word where gg_image has no room for all */

/* ---- sm_90, sm_90a, compute_90 ---- */

struct target {
    unsigned number;
    char suffix; /* 'a': that one only; 'f': its family; 0: and later */
    bool text;   /* compiled by the driver for whatever is newer */
};

static bool parse_target(const char *word, struct target *out)
{
    const char *digits = strchr(word, '_');
    char *end;
    if (!digits || (strncmp(word, "sm_", 3) && strncmp(word, "compute_", 8)))
        return false;
    out->text = word[0] == 'c';
    out->number = (unsigned)strtoul(digits + 1, &end, 10);
    out->suffix = *end;
    return end != digits + 1;
}

static bool target_fits(const struct target *target, unsigned device)
{
    if (target->suffix == 'a')
        return target->number == device;
    if (target->suffix == 'f')
        return target->number / 10 == device / 10 && target->number <= device;
    return target->number <= device && (target->text || target->number / 10 == device / 10);
}

static bool sm_fits(const struct gg_image *image, const char *word, unsigned device)
{
    struct target target = {0, 0, false};
    if (!parse_target(word, &target))
        return false;
    target.text = target.text || image->format == GG_IMAGE_PTX;
    return target_fits(&target, device);
}

/* ---- gfx90a, gfx90a:sramecc+:xnack- ---- */

/* Whether @p features of the device say the contrary of one of the image's. */
static bool contradicts(const char *mine, const char *features)
{
    while ((mine = strchr(mine, ':'))) {
        char opposite[32];
        size_t length = strcspn(++mine, ":");
        if (length < 2 || length >= sizeof opposite)
            continue;
        memcpy(opposite, mine, length);
        opposite[length - 1] = mine[length - 1] == '+' ? '-' : '+';
        opposite[length] = 0;
        if (strstr(features, opposite))
            return true;
    }
    return false;
}

static bool gfx_fits(const char *word, const char *device)
{
    const size_t length = strcspn(word, ":");
    if (strstr(word, "-generic"))
        return true; /* a family: the driver knows who is of it */
    return length == strcspn(device, ":") && !strncmp(word, device, length) &&
           !contradicts(word + length, device + length);
}

/* ---- an image ---- */

static bool format_fits(const struct gg_image *image, bool is_sm)
{
    if (is_sm)
        return image->format == GG_IMAGE_CUBIN || image->format == GG_IMAGE_FATBIN ||
               image->format == GG_IMAGE_PTX;
    return image->format == GG_IMAGE_CODE_OBJECT || image->format == GG_IMAGE_BUNDLE;
}

/* Any of the words, or none there, or more than those: then the driver looks itself. */
static bool any_fits(const struct gg_image *image, const char *device)
{
    char words[sizeof image->arch], *rest = words;
    const bool is_sm = !strncmp(device, "sm_", 3);
    const unsigned number = is_sm ? (unsigned)strtoul(device + 3, NULL, 10) : 0;
    if (!format_fits(image, is_sm))
        return false;
    if (!image->arch[0])
        return true;
    memcpy(words, image->arch, sizeof words);
    for (char *word; (word = strsep(&rest, " "));)
        if (!strcmp(word, MORE_ARCHS) ||
            (is_sm ? sm_fits(image, word, number) : gfx_fits(word, device)))
            return true;
    return false;
}

gg_status twin_image_fits(struct gg_device_impl *device, const struct gg_image *image)
{
    char arch[ARCH_SIZE] = "";
    const int code = twin.device_arch(device->device, arch, sizeof arch);
    if (code)
        return twin_fail(code, "the device's architecture");
    if (any_fits(image, arch))
        return GG_OK;
    return twin_host->fail(GG_ERR_INVALID_ARGUMENT, NULL,
                           "the image is %s for %s, this device is %s: build it for %s", image->word,
                           image->arch[0] ? image->arch : "another kind of device", arch, arch);
}
