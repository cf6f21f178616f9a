/* image_note.c: the metadata of a code object, a MessagePack map in a note: kernels and arguments. */
#include "image.h"

#define MAX_DEPTH 32

struct pack {
    struct ggi_bytes bytes;
    uint64_t at;
    bool bad;
};

enum pack_type { PACK_NUMBER, PACK_TEXT, PACK_ARRAY, PACK_MAP, PACK_OTHER };

struct item {
    enum pack_type type;
    uint64_t value; /* a number; how many items follow */
    struct ggi_bytes text;
};

static uint64_t take(struct pack *pack, unsigned size)
{
    uint64_t value = 0;
    if (!ggi_inside(pack->bytes, pack->at, size)) {
        pack->bad = true;
        return 0;
    }
    for (unsigned i = 0; i < size; i++) /* big-endian */
        value = value << 8 | pack->bytes.at[pack->at + i];
    pack->at += size;
    return value;
}

static struct item text_item(struct pack *pack, uint64_t size, enum pack_type type)
{
    struct item item = {.type = type};
    if (pack->bad || !ggi_inside(pack->bytes, pack->at, size)) {
        pack->bad = true;
        return item;
    }
    item.text = ggi_part(pack->bytes, pack->at, size);
    pack->at += size;
    return item;
}

static struct item number_item(enum pack_type type, uint64_t value)
{
    return (struct item){.type = type, .value = value};
}

/* The codes from 0xc0 to 0xdf. */
static struct item long_item(struct pack *pack, unsigned code)
{
    static const unsigned extension[] = {1, 2, 4, 8, 16};
    if (code >= 0xcc && code <= 0xcf)
        return number_item(PACK_NUMBER, take(pack, 1u << (code - 0xcc)));
    if (code >= 0xd0 && code <= 0xd3)
        return number_item(PACK_NUMBER, take(pack, 1u << (code - 0xd0)));
    if (code >= 0xd9 && code <= 0xdb)
        return text_item(pack, take(pack, 1u << (code - 0xd9)), PACK_TEXT);
    if (code == 0xdc || code == 0xdd)
        return number_item(PACK_ARRAY, take(pack, code == 0xdc ? 2 : 4));
    if (code == 0xde || code == 0xdf)
        return number_item(PACK_MAP, take(pack, code == 0xde ? 2 : 4));
    if (code >= 0xc4 && code <= 0xc6)
        return text_item(pack, take(pack, 1u << (code - 0xc4)), PACK_OTHER);
    if (code >= 0xc7 && code <= 0xc9)
        return text_item(pack, take(pack, 1u << (code - 0xc7)) + 1, PACK_OTHER);
    if (code >= 0xd4 && code <= 0xd8)
        return text_item(pack, extension[code - 0xd4] + 1, PACK_OTHER);
    if (code == 0xca || code == 0xcb)
        return number_item(PACK_OTHER, take(pack, code == 0xca ? 4 : 8));
    return number_item(PACK_OTHER, 0); /* nil, booleans */
}

static struct item next_item(struct pack *pack)
{
    unsigned code = (unsigned)take(pack, 1);
    if (pack->bad)
        return number_item(PACK_OTHER, 0);
    if (code < 0x80 || code >= 0xe0)
        return number_item(PACK_NUMBER, code);
    if (code < 0x90)
        return number_item(PACK_MAP, code & 15);
    if (code < 0xa0)
        return number_item(PACK_ARRAY, code & 15);
    if (code < 0xc0)
        return text_item(pack, code & 31, PACK_TEXT);
    return long_item(pack, code);
}

/* Each item takes a byte at least, so that false counts end at the end of the bytes. */
static void skip_item(struct pack *pack, int depth)
{
    struct item item = next_item(pack);
    uint64_t count = item.type == PACK_MAP     ? 2 * item.value
                     : item.type == PACK_ARRAY ? item.value
                                               : 0;
    if (depth > MAX_DEPTH)
        pack->bad = true;
    for (uint64_t i = 0; i < count && !pack->bad; i++)
        skip_item(pack, depth + 1);
}

static bool is(struct ggi_bytes text, const char *word)
{
    return text.size == strlen(word) && !memcmp(text.at, word, text.size);
}

static bool begins(struct ggi_bytes text, const char *word)
{
    return ggi_begins(text, word, strlen(word));
}

/* ---- arguments ---- */

/* OpenCL's names of types; other languages leave them out. */
static uint32_t kind_of_type(struct ggi_bytes name, uint32_t size)
{
    static const struct {
        const char *word;
        uint32_t kind;
    } types[] = {
        {"float", GG_PARAMETER_FLOAT},     {"double", GG_PARAMETER_FLOAT},
        {"half", GG_PARAMETER_FLOAT},      {"char", GG_PARAMETER_SIGNED},
        {"short", GG_PARAMETER_SIGNED},    {"int", GG_PARAMETER_SIGNED},
        {"long", GG_PARAMETER_SIGNED},     {"uchar", GG_PARAMETER_UNSIGNED},
        {"ushort", GG_PARAMETER_UNSIGNED}, {"uint", GG_PARAMETER_UNSIGNED},
        {"ulong", GG_PARAMETER_UNSIGNED},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (is(name, types[i].word))
            return types[i].kind;
    return size > 8 ? GG_PARAMETER_BYTES : GG_PARAMETER_UNKNOWN;
}

/* A map of one argument. Hidden ones are the driver's own to set. */
static gg_status read_argument(struct pack *pack, uint64_t count, struct gg_image_kernel *kernel)
{
    struct gg_parameter parameter = {0};
    struct ggi_bytes type = {NULL, 0}, kind = {NULL, 0};
    for (uint64_t i = 0; i < count && !pack->bad; i++) {
        struct ggi_bytes key = next_item(pack).text;
        if (is(key, ".offset"))
            parameter.offset = (uint32_t)next_item(pack).value;
        else if (is(key, ".size"))
            parameter.size = (uint32_t)next_item(pack).value;
        else if (is(key, ".type_name"))
            type = next_item(pack).text;
        else if (is(key, ".value_kind"))
            kind = next_item(pack).text;
        else
            skip_item(pack, 0);
    }
    if (pack->bad || begins(kind, "hidden_"))
        return GG_OK;
    parameter.kind =
        is(kind, "by_value") ? kind_of_type(type, parameter.size) : GG_PARAMETER_POINTER;
    return ggi_image_add_parameter(kernel, &parameter);
}

static gg_status read_arguments(struct pack *pack, struct gg_image_kernel *kernel)
{
    struct item list = next_item(pack);
    gg_status status = GG_OK;
    if (list.type != PACK_ARRAY)
        pack->bad = true;
    for (uint64_t i = 0; i < list.value && !pack->bad && !status; i++) {
        struct item map = next_item(pack);
        pack->bad = pack->bad || map.type != PACK_MAP;
        status = read_argument(pack, map.value, kernel);
    }
    return status;
}

/* ---- kernels ---- */

/* The names stand behind the arguments, so look for the name first. */
static gg_status read_kernel(struct pack *pack, struct gg_image *image)
{
    struct item map = next_item(pack);
    struct ggi_bytes name = {NULL, 0};
    uint64_t arguments = 0;
    struct gg_image_kernel *kernel;
    if (map.type != PACK_MAP)
        pack->bad = true;
    for (uint64_t i = 0; i < map.value && !pack->bad; i++) {
        struct ggi_bytes key = next_item(pack).text;
        if (is(key, ".name")) {
            name = next_item(pack).text;
            continue;
        }
        if (is(key, ".args"))
            arguments = pack->at;
        skip_item(pack, 0);
    }
    if (pack->bad || !name.size)
        return GG_OK;
    gg_status status = ggi_image_add_kernel(image, name, &kernel);
    if (status)
        return status;
    kernel->parameter_count = 0;
    struct pack inner = {pack->bytes, arguments, false};
    return arguments ? read_arguments(&inner, kernel) : GG_OK;
}

static gg_status read_kernels(struct pack *pack, struct gg_image *image)
{
    struct item list = next_item(pack);
    gg_status status = GG_OK;
    if (list.type != PACK_ARRAY)
        pack->bad = true;
    for (uint64_t i = 0; i < list.value && !pack->bad && !status; i++)
        status = read_kernel(pack, image);
    return status;
}

/* "…--gfx90a:xnack+": what is behind the "--". */
static void read_target(struct ggi_bytes text, struct gg_image *image)
{
    char word[64];
    const unsigned char *dashes = text.size ? memmem(text.at, text.size, "--", 2) : NULL;
    size_t size = dashes ? (size_t)(text.at + text.size - (dashes + 2)) : 0;
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

gg_status ggi_image_read_note(struct ggi_bytes bytes, struct gg_image *image)
{
    static const char kernels[] = ".kernels", target[] = ".target";
    struct pack pack = {bytes, 0, false};
    struct item map = next_item(&pack);
    gg_status status = GG_OK;
    if (map.type != PACK_MAP)
        pack.bad = true;
    for (uint64_t i = 0; i < map.value && !pack.bad && !status; i++) {
        struct ggi_bytes key = next_item(&pack).text;
        const char *dot = key.size ? memchr(key.at, '.', key.size) : NULL;
        struct ggi_bytes rest = {(const unsigned char *)dot,
                                 dot ? (size_t)(key.at + key.size - (const unsigned char *)dot) : 0};
        if (is(rest, kernels))
            status = read_kernels(&pack, image);
        else if (is(rest, target))
            read_target(next_item(&pack).text, image);
        else
            skip_item(&pack, 0);
    }
    if (!status && pack.bad)
        return ggi_image_damaged("its metadata note is no map of kernels");
    return status;
}
