/* image_spirv.c: SPIR-V: its kernels and the types of their parameters, and its specialisation constants. */
#include "base/error.h"
#include "kernel/image.h"

enum {
    OP_ENTRY_POINT = 15,
    OP_TYPE_INT = 21,
    OP_TYPE_FLOAT = 22,
    OP_TYPE_VECTOR = 23,
    OP_TYPE_ARRAY = 28,
    OP_TYPE_STRUCT = 30,
    OP_TYPE_POINTER = 32,
    OP_TYPE_FUNCTION = 33,
    OP_SPEC_TRUE = 48,
    OP_SPEC_FALSE = 49,
    OP_SPEC_CONSTANT = 50,
    OP_FUNCTION = 54,
    OP_FUNCTION_PARAMETER = 55,
    OP_FUNCTION_END = 56,
    OP_DECORATE = 71,
    SPEC_ID = 1, /* decoration */
    KERNEL = 6,  /* execution model */
    WORKGROUP_STORAGE = 4,
    FUNCTION_STORAGE = 7,
    HEADER_WORDS = 5,
    MAX_IDS = 1 << 22
};

struct spirv {
    struct ggi_bytes bytes;
    bool swapped;
    uint32_t bound;
    struct gg_parameter *types; /* by id: size and kind, if the id is a type */
    uint32_t *entries;          /* by id: 1 + index of the kernel, if the id is its function */
    uint64_t *numbers; /* by id: 1 + number of the specialisation constant, if the id is one */
    uint32_t input;
    struct gg_image *image;
};

static uint32_t spirv_word(const struct spirv *spirv, uint64_t index)
{
    uint32_t value = ggi_u32(spirv->bytes, index * 4);
    return spirv->swapped ? __builtin_bswap32(value) : value;
}

static gg_status spirv_add_entry(struct spirv *spirv, uint64_t at, uint32_t count)
{
    struct gg_image_kernel *kernel;
    const uint32_t id = spirv_word(spirv, at + 2);
    struct ggi_bytes name = ggi_bytes_slice(spirv->bytes, (at + 3) * 4, (count - 3) * 4ull);
    char swapped[256];
    if (spirv_word(spirv, at + 1) != KERNEL || id >= spirv->bound)
        return GG_OK;
    for (size_t i = 0; spirv->swapped && i < name.size && i < sizeof swapped; i++)
        swapped[i] = (char)name.at[i ^ 3];
    if (spirv->swapped)
        name = (struct ggi_bytes){(unsigned char *)swapped,
                                  name.size < sizeof swapped ? name.size : sizeof swapped};
    if (!name.size || !memchr(name.at, 0, name.size))
        return ggi_image_damaged("the name of an entry point has no end");
    gg_status status = ggi_image_add_kernel(spirv->image, name, &kernel);
    if (!status) {
        kernel->parameter_count = 0;
        spirv->entries[id] = (uint32_t)spirv->image->kernel_count;
    }
    return status;
}

/* In OpenCL a vector of three components has the size of one of four. */
static uint32_t spirv_vector_size(const struct spirv *spirv, uint32_t component, uint32_t count)
{
    const uint32_t each = component < spirv->bound ? spirv->types[component].size : 0;
    return count <= 16 && each <= 8 ? each * (count == 3 ? 4 : count) : 0;
}

/* An instruction that declares a type. A size that depends on alignment rules stays 0: unknown. */
static void spirv_note_type(struct spirv *spirv, unsigned op, uint64_t at, uint32_t count)
{
    const uint32_t id = spirv_word(spirv, at + 1);
    const uint32_t operand = count > 2 ? spirv_word(spirv, at + 2) : 0;
    uint32_t kind = GG_PARAMETER_BYTES, size = 0;
    switch (op) {
    case OP_TYPE_INT:
    case OP_TYPE_FLOAT:
        kind = op == OP_TYPE_INT ? GG_PARAMETER_INTEGER : GG_PARAMETER_FLOAT;
        size = operand <= 512 ? operand / 8 : 0;
        break;
    case OP_TYPE_POINTER: /* to function storage: a struct by value */
        kind = operand == WORKGROUP_STORAGE  ? GG_PARAMETER_LOCAL
               : operand == FUNCTION_STORAGE ? GG_PARAMETER_BYTES
                                             : GG_PARAMETER_POINTER;
        size = kind == GG_PARAMETER_POINTER ? 8 : 0;
        break;
    case OP_TYPE_VECTOR:
        size = count > 3 ? spirv_vector_size(spirv, operand, spirv_word(spirv, at + 3)) : 0;
        break;
    case OP_TYPE_ARRAY:
    case OP_TYPE_STRUCT:
        break;
    default:
        return;
    }
    if (id < spirv->bound)
        spirv->types[id] = (struct gg_parameter){.kind = kind, .size = size};
}

static gg_status spirv_note_parameter(struct spirv *spirv, uint32_t entry, uint32_t type)
{
    struct gg_parameter parameter = {0};
    if (type < spirv->bound)
        parameter = spirv->types[type];
    return ggi_image_add_parameter(
        (struct gg_image_kernel *)(uintptr_t)&spirv->image->kernels[entry - 1], &parameter);
}

/* A constant that a decoration gave a number before. */
static gg_status spirv_note_constant(struct spirv *spirv, unsigned op, uint64_t at, uint32_t count)
{
    const uint32_t type = spirv_word(spirv, at + 1), id = spirv_word(spirv, at + 2);
    struct gg_image_constant constant = {
        .kind = GG_PARAMETER_UNSIGNED, .size = 1, .input = spirv->input, .value = op == OP_SPEC_TRUE};
    if (id >= spirv->bound || !spirv->numbers[id])
        return GG_OK;
    constant.id = (uint32_t)(spirv->numbers[id] - 1);
    if (op == OP_SPEC_CONSTANT) {
        const struct gg_parameter of =
            type < spirv->bound ? spirv->types[type] : (struct gg_parameter){0};
        if (count < 4 || (of.size == 8 && count < 5) ||
            (of.size != 8 && of.size != 4 && of.size != 2 && of.size != 1))
            return ggi_image_damaged("the type of specialisation constant %u is no number",
                                     constant.id);
        constant.kind = of.kind;
        constant.size = of.size;
        constant.value = spirv_word(spirv, at + 3);
        if (of.size == 8)
            constant.value |= (uint64_t)spirv_word(spirv, at + 4) << 32;
        else
            constant.value &= (UINT64_C(1) << 8 * of.size) - 1;
    }
    return ggi_image_add_constant(spirv->image, &constant);
}

/* An instruction before the functions. */
static gg_status spirv_read_declaration(struct spirv *spirv, unsigned op, uint64_t at,
                                        uint32_t count)
{
    if (op == OP_ENTRY_POINT && count > 3)
        return spirv_add_entry(spirv, at, count);
    if (op >= OP_SPEC_TRUE && op <= OP_SPEC_CONSTANT && count > 2)
        return spirv_note_constant(spirv, op, at, count);
    if (op >= OP_TYPE_INT && op < OP_TYPE_FUNCTION && count > 1)
        spirv_note_type(spirv, op, at, count);
    else if (op == OP_DECORATE && count > 3 && spirv_word(spirv, at + 2) == SPEC_ID &&
             spirv_word(spirv, at + 1) < spirv->bound)
        spirv->numbers[spirv_word(spirv, at + 1)] = 1 + (uint64_t)spirv_word(spirv, at + 3);
    return GG_OK;
}

static gg_status spirv_read_instructions(struct spirv *spirv)
{
    const uint64_t words = spirv->bytes.size / 4;
    uint32_t entry = 0; /* of the function that the instruction is in; 0: of none */
    gg_status status = GG_OK;
    for (uint64_t at = HEADER_WORDS; at < words && !status;) {
        const uint32_t first = spirv_word(spirv, at), count = first >> 16, op = first & 0xffff;
        if (!count || count > words - at)
            return ggi_image_damaged("the instruction at word %llu extends past its end",
                                     (unsigned long long)at);
        if (op == OP_FUNCTION && count > 2)
            entry = spirv_word(spirv, at + 2) < spirv->bound
                        ? spirv->entries[spirv_word(spirv, at + 2)]
                        : 0;
        else if (op == OP_FUNCTION_PARAMETER && count > 2 && entry)
            status = spirv_note_parameter(spirv, entry, spirv_word(spirv, at + 1));
        else if (op == OP_FUNCTION_END)
            entry = 0;
        else
            status = spirv_read_declaration(spirv, op, at, count);
        at += count;
    }
    return status;
}

gg_status ggi_image_read_spirv(struct ggi_bytes bytes, struct gg_image *image)
{
    return ggi_image_add_spirv(bytes, image, 0);
}

gg_status ggi_image_add_spirv(struct ggi_bytes bytes, struct gg_image *image, uint32_t input)
{
    struct spirv spirv = {
        .bytes = bytes, .image = image, .input = input, .swapped = ggi_u32(bytes, 0) == 0x03022307u};
    gg_status status;
    spirv.bound = spirv_word(&spirv, 3);
    ggi_image_add_arch(image, "spirv");
    if (bytes.size < 4 * HEADER_WORDS || bytes.size % 4)
        return ggi_image_damaged("its size, %zu bytes, is not a multiple of SPIR-V's word size",
                                 bytes.size);
    if ((spirv_word(&spirv, 1) & 0xff0000ff) || spirv_word(&spirv, 1) >> 16 != 1)
        return ggi_image_damaged("0x%x is not a version of SPIR-V", spirv_word(&spirv, 1));
    if (!spirv.bound || spirv.bound > MAX_IDS)
        return ggi_image_damaged("its header declares %u ids", spirv.bound);
    spirv.types = calloc(spirv.bound, sizeof *spirv.types);
    spirv.entries = calloc(spirv.bound, sizeof *spirv.entries);
    spirv.numbers = calloc(spirv.bound, sizeof *spirv.numbers);
    if (spirv.types && spirv.entries && spirv.numbers)
        status = spirv_read_instructions(&spirv);
    else
        status = ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory to read SPIR-V");
    free(spirv.types);
    free(spirv.entries);
    free(spirv.numbers);
    return status;
}
