/* image_elf.c: ELF files: cubins, code objects, zebins, and shared objects for the host. */
#include "base/error.h"
#include "kernel/image.h"

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

static bool elf_section(const struct elf *elf, uint32_t index, Elf64_Shdr *out)
{
    const uint64_t at = elf->header.e_shoff + (uint64_t)index * sizeof *out;
    if (elf->header.e_shoff > elf->bytes.size || !ggi_bytes_contain(elf->bytes, at, sizeof *out))
        return false;
    memcpy(out, elf->bytes.at + at, sizeof *out);
    return true;
}

static struct ggi_bytes elf_contents(const struct elf *elf, const Elf64_Shdr *header)
{
    if (header->sh_type == SHT_NOBITS)
        return (struct ggi_bytes){NULL, 0};
    return ggi_bytes_slice(elf->bytes, header->sh_offset, header->sh_size);
}

/* The string at an offset of a string table, without its NUL; empty if it is not terminated. */
static struct ggi_bytes elf_text(struct ggi_bytes table, uint64_t offset)
{
    if (offset >= table.size)
        return (struct ggi_bytes){NULL, 0};
    const unsigned char *from = table.at + offset;
    const unsigned char *nul = memchr(from, 0, table.size - (size_t)offset);
    return (struct ggi_bytes){from, nul ? (size_t)(nul - from) : 0};
}

static gg_status elf_open(struct elf *elf)
{
    Elf64_Shdr last;
    if (elf->bytes.size < sizeof elf->header)
        return ggi_image_damaged("%zu bytes are too few for an ELF header", elf->bytes.size);
    memcpy(&elf->header, elf->bytes.at, sizeof elf->header);
    if (elf->header.e_ident[EI_CLASS] != ELFCLASS64 || elf->header.e_ident[EI_DATA] != ELFDATA2LSB)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "the image is an ELF file that is not 64-bit little-endian: build it for a "
                        "64-bit target");
    if (elf->header.e_shnum && elf->header.e_shentsize != sizeof last)
        return ggi_image_damaged("its section headers have an unexpected size, %u bytes",
                                 elf->header.e_shentsize);
    if (elf->header.e_shnum && !elf_section(elf, elf->header.e_shnum - 1u, &last))
        return ggi_image_damaged("its section headers extend past its end, at %llu of %zu bytes",
                                 (unsigned long long)elf->header.e_shoff, elf->bytes.size);
    if (elf->header.e_shnum && elf_section(elf, elf->header.e_shstrndx, &last))
        elf->names = elf_contents(elf, &last);
    return GG_OK;
}

/* Not every driver checks the section headers before it uses them. */
static gg_status elf_check_sections(const struct elf *elf)
{
    Elf64_Shdr header;
    for (uint32_t i = 0; i < elf->header.e_shnum && elf_section(elf, i, &header); i++)
        if (header.sh_type != SHT_NOBITS && header.sh_type != SHT_NULL &&
            !ggi_bytes_contain(elf->bytes, header.sh_offset, header.sh_size))
            return ggi_image_damaged("section %u extends past its end", i);
    return GG_OK;
}

static gg_status elf_check_segments(const struct elf *elf)
{
    for (uint32_t i = 0; i < elf->header.e_phnum; i++) {
        Elf64_Phdr header;
        const uint64_t at = elf->header.e_phoff + (uint64_t)i * sizeof header;
        if (elf->header.e_phentsize != sizeof header || elf->header.e_phoff > elf->bytes.size ||
            !ggi_bytes_contain(elf->bytes, at, sizeof header))
            return ggi_image_damaged("its program headers extend past its end");
        memcpy(&header, elf->bytes.at + at, sizeof header);
        if (header.p_type != PT_NULL &&
            !ggi_bytes_contain(elf->bytes, header.p_offset, header.p_filesz))
            return ggi_image_damaged("segment %u extends past its end", i);
    }
    return GG_OK;
}

bool ggi_cubin_lacks_a_byte(struct ggi_bytes bytes)
{
    Elf64_Ehdr header;
    if (bytes.size < sizeof header || memcmp(bytes.at, ELFMAG, SELFMAG))
        return false;
    memcpy(&header, bytes.at, sizeof header);
    const uint64_t end = header.e_phoff + (uint64_t)header.e_phnum * header.e_phentsize;
    return header.e_machine == MACHINE_CUBIN && end == (uint64_t)bytes.size + 1;
}

/* ---- a cubin has an info section for each kernel ---- */

struct cubin_parameter {
    struct gg_parameter parameter;
    bool found;
};

static gg_status cubin_add_parameters(struct gg_image_kernel *kernel,
                                      const struct cubin_parameter *by_ordinal, size_t count)
{
    gg_status status = GG_OK;
    for (size_t i = 0; i < count && !status; i++) {
        if (!by_ordinal[i].found)
            return ggi_image_damaged("%.100s has no parameter %zu", kernel->name, i);
        status = ggi_image_add_parameter(kernel, &by_ordinal[i].parameter);
    }
    return status;
}

/* An entry has the parameter's ordinal, offset and size; in the short form the size begins at bit 18. */
static struct cubin_parameter cubin_parse_parameter(struct ggi_bytes info, uint64_t at)
{
    const unsigned form = info.at[at], attribute = info.at[at + 1];
    struct cubin_parameter out = {.found = form == INFO_SIZED};
    if (attribute == INFO_PARAMETER) {
        out.parameter.offset = ggi_u16(info, at + 10);
        out.parameter.size = ggi_u32(info, at + 12) >> 18;
    } else if (attribute == INFO_FAR_PARAMETER) {
        out.parameter.offset = ggi_u32(info, at + 12);
        out.parameter.size = ggi_u32(info, at + 16);
    } else {
        out.found = false;
    }
    return out;
}

static gg_status cubin_read_info(struct ggi_bytes info, struct gg_image_kernel *kernel)
{
    struct cubin_parameter *by_ordinal = calloc(GGI_MAX_PARAMETERS, sizeof *by_ordinal);
    size_t count = 0;
    if (!by_ordinal)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a kernel's parameters");
    for (uint64_t at = 0; ggi_bytes_contain(info, at, 4);) {
        const struct cubin_parameter entry = cubin_parse_parameter(info, at);
        const size_t ordinal = ggi_u16(info, at + 8);
        if (entry.found && ordinal < GGI_MAX_PARAMETERS) {
            by_ordinal[ordinal] = entry;
            count = ordinal + 1 > count ? ordinal + 1 : count;
        }
        at += 4 + (info.at[at] == INFO_SIZED ? ggi_u16(info, at + 2) : 0u);
    }
    kernel->parameter_count = 0;
    gg_status status = cubin_add_parameters(kernel, by_ordinal, count);
    free(by_ordinal);
    return status;
}

static gg_status elf_read_cubin(const struct elf *elf, struct gg_image *image)
{
    static const char prefix[] = ".nv.info.";
    const uint32_t flags = elf->header.e_flags;
    const uint32_t number =
        elf->header.e_ident[EI_ABIVERSION] >= 8 ? flags >> 8 & 0xff : flags & 0xff;
    Elf64_Shdr header;
    gg_status status = GG_OK;
    snprintf(image->arch, sizeof image->arch, "sm_%u", number);
    for (uint32_t i = 0; i < elf->header.e_shnum && !status && elf_section(elf, i, &header); i++) {
        struct ggi_bytes name = elf_text(elf->names, header.sh_name);
        struct gg_image_kernel *kernel;
        if (!ggi_bytes_start_with(name, prefix, sizeof prefix - 1))
            continue;
        name.at += sizeof prefix - 1;
        name.size -= sizeof prefix - 1;
        status = ggi_image_add_kernel(image, name, &kernel);
        if (!status)
            status = cubin_read_info(elf_contents(elf, &header), kernel);
    }
    return status;
}

/* ---- a code object has a note about all kernels ---- */

static gg_status elf_read_notes(struct ggi_bytes notes, struct gg_image *image)
{
    gg_status status = GG_OK;
    for (uint64_t at = 0; ggi_bytes_contain(notes, at, 12) && !status;) {
        const uint64_t name = ggi_u32(notes, at), size = ggi_u32(notes, at + 4);
        const uint64_t pack = at + 12 + (name + 3) / 4 * 4;
        if (!ggi_bytes_contain(notes, pack, size))
            return ggi_image_damaged("a note extends past its end");
        if (ggi_u32(notes, at + 8) == NOTE_METADATA)
            status = ggi_image_read_msgpack(ggi_bytes_slice(notes, pack, size), image);
        at = pack + (size + 3) / 4 * 4;
    }
    return status;
}

static gg_status elf_read_code_object(const struct elf *elf, struct gg_image *image)
{
    Elf64_Shdr header;
    gg_status status = GG_OK;
    for (uint32_t i = 0; i < elf->header.e_shnum && !status && elf_section(elf, i, &header); i++)
        if (header.sh_type == SHT_NOTE)
            status = elf_read_notes(elf_contents(elf, &header), image);
    if (!status && !image->arch[0])
        return ggi_image_damaged("the code object has no metadata note for its target");
    return status;
}

static const char *elf_host_arch(unsigned machine)
{
    return machine == EM_X86_64    ? "x86_64"
           : machine == EM_AARCH64 ? "aarch64"
           : machine == EM_PPC64   ? "ppc64le"
           : machine == EM_RISCV   ? "riscv64"
                                   : NULL;
}

static gg_status elf_read_shared_object(const struct elf *elf, struct gg_image *image)
{
    const char *arch = elf_host_arch(elf->header.e_machine);
    if (!arch)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "the image is an ELF file for machine %u, which no backend supports",
                        elf->header.e_machine);
    if (elf->header.e_type != ET_DYN)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "the image is an ELF file for %s, but not a shared object: link it with "
                        "-shared",
                        arch);
    ggi_image_add_arch(image, arch);
    image->format = GG_IMAGE_SHARED_OBJECT;
    return GG_OK;
}

gg_status ggi_image_read_elf(struct ggi_bytes bytes, struct gg_image *image)
{
    struct elf elf = {.bytes = bytes};
    gg_status status = elf_open(&elf);
    if (!status)
        status = elf_check_sections(&elf);
    if (!status)
        status = elf_check_segments(&elf);
    if (status)
        return status;
    switch (elf.header.e_machine) {
    case MACHINE_CUBIN:
        image->format = GG_IMAGE_CUBIN;
        return elf_read_cubin(&elf, image);
    case MACHINE_CODE_OBJECT:
        image->format = GG_IMAGE_CODE_OBJECT;
        return elf_read_code_object(&elf, image);
    case MACHINE_ZEBIN:
        image->format = GG_IMAGE_ZEBIN;
        return GG_OK;
    default:
        return elf_read_shared_object(&elf, image);
    }
}
