/* image_elf.c: ELF files: cubins, code objects, zebins, and shared objects for the host. */
#include "image.h"

#include <elf.h>
#include <stdio.h>

#define MACHINE_CUBIN 190
#define MACHINE_CODE_OBJECT 224
#define MACHINE_ZEBIN 205
#define NOTE_METADATA 32 /* of a code object */
#define INFO_SIZED 4     /* entries of .nv.info: 4 has a size, all others are 4 bytes */
#define INFO_PARAMETER 0x17
#define INFO_FAR_PARAMETER 0x45 /* the same with 32-bit offset and size */

struct elf {
    struct ggi_bytes bytes;
    Elf64_Ehdr header;
    struct ggi_bytes names; /* of sections */
};

static bool section(const struct elf *elf, uint32_t index, Elf64_Shdr *out)
{
    const uint64_t at = elf->header.e_shoff + (uint64_t)index * sizeof *out;
    if (elf->header.e_shoff > elf->bytes.size || !ggi_inside(elf->bytes, at, sizeof *out))
        return false;
    memcpy(out, elf->bytes.at + at, sizeof *out);
    return true;
}

static struct ggi_bytes contents(const struct elf *elf, const Elf64_Shdr *header)
{
    if (header->sh_type == SHT_NOBITS)
        return (struct ggi_bytes){NULL, 0};
    return ggi_part(elf->bytes, header->sh_offset, header->sh_size);
}

/* The text at an offset of a table of strings, without its NUL; empty where it does not end. */
static struct ggi_bytes text_at(struct ggi_bytes table, uint64_t offset)
{
    if (offset >= table.size)
        return (struct ggi_bytes){NULL, 0};
    const unsigned char *from = table.at + offset;
    const unsigned char *nul = memchr(from, 0, table.size - (size_t)offset);
    return (struct ggi_bytes){from, nul ? (size_t)(nul - from) : 0};
}

static gg_status open_elf(struct elf *elf)
{
    Elf64_Shdr last;
    if (elf->bytes.size < sizeof elf->header)
        return ggi_image_damaged("%zu bytes are no whole ELF header", elf->bytes.size);
    memcpy(&elf->header, elf->bytes.at, sizeof elf->header);
    if (elf->header.e_ident[EI_CLASS] != ELFCLASS64 || elf->header.e_ident[EI_DATA] != ELFDATA2LSB)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "the image is an ELF file that is not 64-bit little-endian: build it for a "
                        "64-bit target");
    if (elf->header.e_shnum && elf->header.e_shentsize != sizeof last)
        return ggi_image_damaged("section headers of %u bytes", elf->header.e_shentsize);
    if (elf->header.e_shnum && !section(elf, elf->header.e_shnum - 1u, &last))
        return ggi_image_damaged("its section headers lie past its end, at %llu of %zu bytes",
                                 (unsigned long long)elf->header.e_shoff, elf->bytes.size);
    if (elf->header.e_shnum && section(elf, elf->header.e_shstrndx, &last))
        elf->names = contents(elf, &last);
    return GG_OK;
}

/* Drivers read sections by their headers and do not always check them. */
static gg_status check_sections(const struct elf *elf)
{
    Elf64_Shdr header;
    for (uint32_t i = 0; i < elf->header.e_shnum && section(elf, i, &header); i++)
        if (header.sh_type != SHT_NOBITS && header.sh_type != SHT_NULL &&
            !ggi_inside(elf->bytes, header.sh_offset, header.sh_size))
            return ggi_image_damaged("section %u lies past its end", i);
    return GG_OK;
}

static gg_status check_segments(const struct elf *elf)
{
    for (uint32_t i = 0; i < elf->header.e_phnum; i++) {
        Elf64_Phdr header;
        const uint64_t at = elf->header.e_phoff + (uint64_t)i * sizeof header;
        if (elf->header.e_phentsize != sizeof header || elf->header.e_phoff > elf->bytes.size ||
            !ggi_inside(elf->bytes, at, sizeof header))
            return ggi_image_damaged("its program headers lie past its end");
        memcpy(&header, elf->bytes.at + at, sizeof header);
        if (header.p_type != PT_NULL && !ggi_inside(elf->bytes, header.p_offset, header.p_filesz))
            return ggi_image_damaged("segment %u lies past its end", i);
    }
    return GG_OK;
}

/* ---- a cubin: one section of facts for each kernel ---- */

static gg_status add_in_order(struct gg_image_kernel *kernel, struct gg_parameter *found,
                              const bool *seen, size_t count)
{
    gg_status status = GG_OK;
    for (size_t i = 0; i < count && !status; i++) {
        if (!seen[i])
            return ggi_image_damaged("%.100s has no parameter %zu", kernel->name, i);
        status = ggi_image_add_parameter(kernel, &found[i]);
    }
    return status;
}

/* index, ordinal, offset and, from bit 18 on, the size. */
static bool parameter_entry(struct ggi_bytes info, uint64_t at, unsigned attribute,
                            uint32_t *ordinal, struct gg_parameter *out)
{
    if (attribute == INFO_PARAMETER) {
        *ordinal = ggi_u16(info, at + 8);
        out->offset = ggi_u16(info, at + 10);
        out->size = ggi_u32(info, at + 12) >> 18;
        return true;
    }
    if (attribute == INFO_FAR_PARAMETER) {
        *ordinal = ggi_u16(info, at + 8);
        out->offset = ggi_u32(info, at + 12);
        out->size = ggi_u32(info, at + 16);
        return true;
    }
    return false;
}

static gg_status read_info(struct ggi_bytes info, struct gg_image_kernel *kernel)
{
    struct gg_parameter *found = calloc(GGI_MAX_PARAMETERS, sizeof *found);
    bool *seen = calloc(GGI_MAX_PARAMETERS, sizeof *seen);
    size_t count = 0;
    gg_status status = GG_OK;
    if (!found || !seen) {
        status = ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a kernel's parameters");
        goto release;
    }
    for (uint64_t at = 0; ggi_inside(info, at, 4);) {
        const unsigned form = info.at[at], attribute = info.at[at + 1];
        struct gg_parameter parameter = {0};
        uint32_t ordinal = 0;
        if (form == INFO_SIZED && parameter_entry(info, at, attribute, &ordinal, &parameter) &&
            ordinal < GGI_MAX_PARAMETERS) {
            found[ordinal] = parameter;
            seen[ordinal] = true;
            count = ordinal + 1 > count ? ordinal + 1 : count;
        }
        at += 4 + (form == INFO_SIZED ? ggi_u16(info, at + 2) : 0u);
    }
    kernel->parameter_count = 0;
    status = add_in_order(kernel, found, seen, count);

release:
    free(found);
    free(seen);
    return status;
}

static gg_status read_cubin(const struct elf *elf, struct gg_image *image)
{
    static const char prefix[] = ".nv.info.";
    const uint32_t flags = elf->header.e_flags;
    const uint32_t number =
        elf->header.e_ident[EI_ABIVERSION] >= 8 ? flags >> 8 & 0xff : flags & 0xff;
    Elf64_Shdr header;
    gg_status status = GG_OK;
    snprintf(image->arch, sizeof image->arch, "sm_%u", number);
    for (uint32_t i = 0; i < elf->header.e_shnum && !status && section(elf, i, &header); i++) {
        struct ggi_bytes name = text_at(elf->names, header.sh_name);
        struct gg_image_kernel *kernel;
        if (!ggi_begins(name, prefix, sizeof prefix - 1))
            continue;
        name.at += sizeof prefix - 1;
        name.size -= sizeof prefix - 1;
        status = ggi_image_add_kernel(image, name, &kernel);
        if (!status)
            status = read_info(contents(elf, &header), kernel);
    }
    return status;
}

/* ---- a code object: its note has it all ---- */

static gg_status read_notes(struct ggi_bytes notes, struct gg_image *image)
{
    gg_status status = GG_OK;
    for (uint64_t at = 0; ggi_inside(notes, at, 12) && !status;) {
        const uint64_t name = ggi_u32(notes, at), size = ggi_u32(notes, at + 4);
        const uint64_t pack = at + 12 + (name + 3) / 4 * 4;
        if (!ggi_inside(notes, pack, size))
            return ggi_image_damaged("a note lies past its end");
        if (ggi_u32(notes, at + 8) == NOTE_METADATA)
            status = ggi_image_read_note(ggi_part(notes, pack, size), image);
        at = pack + (size + 3) / 4 * 4;
    }
    return status;
}

static gg_status read_code_object(const struct elf *elf, struct gg_image *image)
{
    Elf64_Shdr header;
    gg_status status = GG_OK;
    for (uint32_t i = 0; i < elf->header.e_shnum && !status && section(elf, i, &header); i++)
        if (header.sh_type == SHT_NOTE)
            status = read_notes(contents(elf, &header), image);
    if (!status && !image->arch[0])
        return ggi_image_damaged("a code object without a metadata note of its target");
    return status;
}

/* ---- the format ---- */

static const char *host_arch(unsigned machine)
{
    switch (machine) {
    case EM_X86_64:
        return "x86_64";
    case EM_AARCH64:
        return "aarch64";
    case EM_PPC64:
        return "ppc64le";
    case EM_RISCV:
        return "riscv64";
    default:
        return NULL;
    }
}

static gg_status read_host(const struct elf *elf, struct gg_image *image)
{
    const char *arch = host_arch(elf->header.e_machine);
    if (!arch)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "the image is an ELF file for machine %u, which no backend knows",
                        elf->header.e_machine);
    if (elf->header.e_type != ET_DYN)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "the image is an ELF file for %s that is no shared object: link it with "
                        "-shared",
                        arch);
    ggi_image_add_arch(image, arch);
    image->format = GG_IMAGE_SHARED_OBJECT;
    return GG_OK;
}

gg_status ggi_image_read_elf(struct ggi_bytes bytes, struct gg_image *image)
{
    struct elf elf = {.bytes = bytes};
    gg_status status = open_elf(&elf);
    if (!status)
        status = check_sections(&elf);
    if (!status)
        status = check_segments(&elf);
    if (status)
        return status;
    switch (elf.header.e_machine) {
    case MACHINE_CUBIN:
        image->format = GG_IMAGE_CUBIN;
        return read_cubin(&elf, image);
    case MACHINE_CODE_OBJECT:
        image->format = GG_IMAGE_CODE_OBJECT;
        return read_code_object(&elf, image);
    case MACHINE_ZEBIN:
        image->format = GG_IMAGE_ZEBIN;
        return GG_OK;
    default:
        return read_host(&elf, image);
    }
}
