/* image_bundle.c: bundles of code objects: their architectures, and the kernels of all of them. */
#include "kernel/image.h"

#define MEMBERS_MAX 256u /* a bundle with more members hides its kernels: each is read */

/* The code objects of a bundle usually have the same kernels in the same order. */
static struct gg_image_kernel *bundle_find(struct gg_image *image, const char *name, size_t from)
{
    struct gg_image_kernel *kernels = (struct gg_image_kernel *)(uintptr_t)image->kernels;
    for (size_t i = 0; i < image->kernel_count; i++) {
        struct gg_image_kernel *kernel = &kernels[(from + i) % image->kernel_count];
        if (!strcmp(kernel->name, name))
            return kernel;
    }
    return NULL;
}

static bool bundle_same_parameters(const struct gg_image_kernel *a, const struct gg_image_kernel *b)
{
    return a->parameter_count == b->parameter_count &&
           (a->parameter_count < 1 || !memcmp(a->parameters, b->parameters,
                                              (size_t)a->parameter_count * sizeof *a->parameters));
}

/* The parameters differ between the code objects, so they are not known before the driver selects one. */
static void bundle_forget_parameters(struct gg_image_kernel *kernel)
{
    free((void *)(uintptr_t)kernel->parameters);
    kernel->parameters = NULL;
    kernel->parameter_count = -1;
}

/* Add the kernels of a code object. Takes the parameters of new ones. */
static gg_status bundle_add_kernels(struct gg_image *image, struct gg_image *object)
{
    struct gg_image_kernel *from = (struct gg_image_kernel *)(uintptr_t)object->kernels;
    for (size_t i = 0; i < object->kernel_count; i++) {
        struct gg_image_kernel *kernel = bundle_find(image, from[i].name, i);
        if (kernel) {
            if (!bundle_same_parameters(kernel, &from[i]))
                bundle_forget_parameters(kernel);
            continue;
        }
        const struct ggi_bytes name = {(const unsigned char *)from[i].name, strlen(from[i].name)};
        const gg_status status = ggi_image_add_kernel(image, name, &kernel);
        if (status)
            return status;
        kernel->parameters = from[i].parameters;
        kernel->parameter_count = from[i].parameter_count;
        from[i].parameters = NULL;
    }
    return GG_OK;
}

/* GG_NOT_READY: the member is not a readable code object, so the bundle's kernels are not known. */
static gg_status bundle_read_object(struct ggi_bytes member, struct gg_image *image)
{
    struct gg_image object = {.struct_size = sizeof object};
    ggi_suppress_errors(1);
    gg_status status = ggi_bytes_start_with(member, "\177ELF", 4)
                           ? ggi_image_read_elf(member, &object)
                           : GG_NOT_READY;
    ggi_suppress_errors(-1);
    if (status || object.format != GG_IMAGE_CODE_OBJECT)
        status = GG_NOT_READY;
    else
        status = bundle_add_kernels(image, &object);
    ggi_image_clear(&object);
    return status;
}

struct bundle_member {
    struct ggi_bytes triple, code;
};

static bool bundle_next(struct ggi_bytes bytes, uint64_t *at, struct bundle_member *out)
{
    const uint64_t offset = ggi_u64(bytes, *at), size = ggi_u64(bytes, *at + 8);
    const uint64_t length = ggi_u64(bytes, *at + 16);
    if (!ggi_bytes_contain(bytes, *at, 24) || !ggi_bytes_contain(bytes, *at + 24, length) ||
        !ggi_bytes_contain(bytes, offset, size))
        return false;
    out->triple = ggi_bytes_slice(bytes, *at + 24, length);
    out->code = ggi_bytes_slice(bytes, offset, size);
    *at += 24 + length;
    return true;
}

static bool bundle_is_device(struct ggi_bytes triple)
{
    return triple.size && memmem(triple.at, triple.size, "--gfx", 5);
}

/* Members that share one code object are read once. */
static gg_status bundle_read_kernels(struct ggi_bytes bytes, uint64_t count, struct gg_image *image)
{
    gg_status status = count > MEMBERS_MAX ? GG_NOT_READY : GG_OK;
    const unsigned char *last = NULL;
    uint64_t at = 32;
    struct bundle_member member;
    for (uint64_t i = 0; i < count && !status && bundle_next(bytes, &at, &member); i++) {
        if (!bundle_is_device(member.triple) || member.code.at == last)
            continue;
        last = member.code.at;
        status = bundle_read_object(member.code, image);
    }
    if (status == GG_NOT_READY) {
        ggi_image_clear(image);
        status = GG_OK;
    }
    return status;
}

/* Clang's header of a compressed bundle, up to version 3. Runtimes trust the size that it declares. */
static gg_status compressed_bundle_check(struct ggi_bytes bytes)
{
    const unsigned version = ggi_u16(bytes, 4);
    const uint64_t head = version == 1 ? 20 : version == 2 ? 24 : 32;
    const uint64_t size = version == 2   ? ggi_u32(bytes, 8)
                          : version == 3 ? ggi_u64(bytes, 8)
                                         : bytes.size;
    if (!version || bytes.size < head || size < head || size > bytes.size)
        return ggi_image_damaged("the header of the compressed bundle (version %u) declares %llu "
                                 "bytes, but there are %zu",
                                 version, (unsigned long long)size, bytes.size);
    return GG_OK;
}

gg_status ggi_image_read_bundle(struct ggi_bytes bytes, struct gg_image *image)
{
    const uint64_t count = ggi_u64(bytes, 24);
    uint64_t at = 32;
    struct bundle_member member;
    if (ggi_bytes_start_with(bytes, "CCOB", 4)) /* compressed: only the driver can read it */
        return compressed_bundle_check(bytes);
    if (!count || count > bytes.size / 24)
        return ggi_image_damaged("the bundle declares %llu code objects", (unsigned long long)count);
    for (uint64_t i = 0; i < count; i++) {
        if (!bundle_next(bytes, &at, &member))
            return ggi_image_damaged("code object %llu of the bundle extends past its end",
                                     (unsigned long long)i);
        ggi_image_add_target(image, member.triple, "--gfx");
    }
    return bundle_read_kernels(bytes, count, image);
}
