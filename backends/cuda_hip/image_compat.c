/* image_compat.c: whether a device can load an image, by the device's architecture: sm_… loads cubins, fatbins
 * and PTX; gfx… loads code objects and bundles of them. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARCH_SIZE 64
#define MORE_ARCHS "\xe2\x80\xa6" /* the last word if gg_image has no room for all */

/* ---- sm_90, sm_90a, compute_90 ---- */

struct target {
    unsigned number;
    char suffix; /* 'a': only this one; 'f': its family; 0: this one and later */
    bool text;   /* compiled by the driver, also for newer devices */
};

static bool target_parse(const char *word, struct target *out)
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

static bool target_is_compatible(const struct target *target, unsigned device)
{
    if (target->suffix == 'a')
        return target->number == device;
    if (target->suffix == 'f')
        return target->number / 10 == device / 10 && target->number <= device;
    return target->number <= device && (target->text || target->number / 10 == device / 10);
}

static bool sm_is_compatible(const struct gg_image *image, const char *word, unsigned device)
{
    struct target target = {0, 0, false};
    if (!target_parse(word, &target))
        return false;
    target.text = target.text || image->format == GG_IMAGE_PTX;
    return target_is_compatible(&target, device);
}

/* ---- gfx90a, gfx90a:sramecc+:xnack- ---- */

/* Whether one of the image's features has the opposite sign in the device's @p features. */
static bool gfx_features_differ(const char *mine, const char *features)
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

static bool gfx_is_compatible(const char *word, const char *device)
{
    const size_t length = strcspn(word, ":");
    if (strstr(word, "-generic"))
        return true; /* a family: the driver knows its members */
    return length == strcspn(device, ":") && !strncmp(word, device, length) &&
           !gfx_features_differ(word + length, device + length);
}

/* ---- an image ---- */

static bool image_format_is_compatible(const struct gg_image *image, bool is_sm)
{
    if (is_sm)
        return image->format == GG_IMAGE_CUBIN || image->format == GG_IMAGE_FATBIN ||
               image->format == GG_IMAGE_PTX;
    return image->format == GG_IMAGE_CODE_OBJECT || image->format == GG_IMAGE_BUNDLE;
}

/* True if a word matches, if there are no words, or if not all are listed: then the driver decides. */
static bool image_is_compatible(const struct gg_image *image, const char *device)
{
    char words[sizeof image->arch], *rest = words;
    const bool is_sm = !strncmp(device, "sm_", 3);
    const unsigned number = is_sm ? (unsigned)strtoul(device + 3, NULL, 10) : 0;
    if (!image_format_is_compatible(image, is_sm))
        return false;
    if (!image->arch[0])
        return true;
    memcpy(words, image->arch, sizeof words);
    for (char *word; (word = strsep(&rest, " "));)
        if (!strcmp(word, MORE_ARCHS) ||
            (is_sm ? sm_is_compatible(image, word, number) : gfx_is_compatible(word, device)))
            return true;
    return false;
}

gg_status cuhip_check_image(struct gg_device_impl *device, const struct gg_image *image)
{
    char arch[ARCH_SIZE] = "";
    const int code = cuhip.device_arch(device->device, arch, sizeof arch);
    if (code)
        return cuhip_fail(code, "the device's architecture");
    if (image_is_compatible(image, arch))
        return GG_OK;
    return cuhip_api->fail(GG_ERR_INVALID_ARGUMENT, NULL,
                           "the image is %s for %s, this device is %s: build it for %s", image->word,
                           image->arch[0] ? image->arch : "another kind of device", arch, arch);
}
