/* image_msgpack.c: the metadata of a code object, a MessagePack map in a note: kernels and arguments. */
#include "kernel/image.h"

#define MAX_DEPTH 32

struct msgpack {
    struct ggi_bytes bytes;
    uint64_t at;
    bool bad;
};

enum msgpack_type { MSGPACK_NUMBER, MSGPACK_TEXT, MSGPACK_ARRAY, MSGPACK_MAP, MSGPACK_OTHER };

struct msgpack_item {
    enum msgpack_type type;
    uint64_t value; /* the number, or how many items follow */
    struct ggi_bytes text;
};

static uint64_t msgpack_uint(struct msgpack *pack, unsigned size)
{
    uint64_t value = 0;
    if (!ggi_bytes_contain(pack->bytes, pack->at, size)) {
        pack->bad = true;
        return 0;
    }
    for (unsigned i = 0; i < size; i++) /* big-endian */
        value = value << 8 | pack->bytes.at[pack->at + i];
    pack->at += size;
    return value;
}

static struct msgpack_item msgpack_text(struct msgpack *pack, uint64_t size, enum msgpack_type type)
{
    struct msgpack_item item = {.type = type};
    if (pack->bad || !ggi_bytes_contain(pack->bytes, pack->at, size)) {
        pack->bad = true;
        return item;
    }
    item.text = ggi_bytes_slice(pack->bytes, pack->at, size);
    pack->at += size;
    return item;
}

static struct msgpack_item msgpack_number(enum msgpack_type type, uint64_t value)
{
    return (struct msgpack_item){.type = type, .value = value};
}

/* The codes from 0xc0 to 0xdf. */
static struct msgpack_item msgpack_long_item(struct msgpack *pack, unsigned code)
{
    if (code >= 0xcc && code <= 0xd3) /* four unsigned, then four signed numbers */
        return msgpack_number(MSGPACK_NUMBER, msgpack_uint(pack, 1u << (code & 3)));
    if (code >= 0xd9 && code <= 0xdb)
        return msgpack_text(pack, msgpack_uint(pack, 1u << (code - 0xd9)), MSGPACK_TEXT);
    if (code == 0xdc || code == 0xdd)
        return msgpack_number(MSGPACK_ARRAY, msgpack_uint(pack, code == 0xdc ? 2 : 4));
    if (code == 0xde || code == 0xdf)
        return msgpack_number(MSGPACK_MAP, msgpack_uint(pack, code == 0xde ? 2 : 4));
    if (code >= 0xc4 && code <= 0xc6)
        return msgpack_text(pack, msgpack_uint(pack, 1u << (code - 0xc4)), MSGPACK_OTHER);
    if (code >= 0xc7 && code <= 0xc9)
        return msgpack_text(pack, msgpack_uint(pack, 1u << (code - 0xc7)) + 1, MSGPACK_OTHER);
    if (code >= 0xd4 && code <= 0xd8)
        return msgpack_text(pack, (1u << (code - 0xd4)) + 1, MSGPACK_OTHER);
    if (code == 0xca || code == 0xcb)
        return msgpack_number(MSGPACK_OTHER, msgpack_uint(pack, code == 0xca ? 4 : 8));
    return msgpack_number(MSGPACK_OTHER, 0); /* nil, booleans */
}

static struct msgpack_item msgpack_next(struct msgpack *pack)
{
    unsigned code = (unsigned)msgpack_uint(pack, 1);
    if (pack->bad)
        return msgpack_number(MSGPACK_OTHER, 0);
    if (code < 0x80 || code >= 0xe0)
        return msgpack_number(MSGPACK_NUMBER, code);
    if (code < 0x90)
        return msgpack_number(MSGPACK_MAP, code & 15);
    if (code < 0xa0)
        return msgpack_number(MSGPACK_ARRAY, code & 15);
    if (code < 0xc0)
        return msgpack_text(pack, code & 31, MSGPACK_TEXT);
    return msgpack_long_item(pack, code);
}

/* Each item takes at least a byte, so a wrong count ends at the end of the bytes. */
static void msgpack_skip(struct msgpack *pack, int depth)
{
    struct msgpack_item item = msgpack_next(pack);
    uint64_t count = item.type == MSGPACK_MAP     ? 2 * item.value
                     : item.type == MSGPACK_ARRAY ? item.value
                                                  : 0;
    if (depth > MAX_DEPTH)
        pack->bad = true;
    for (uint64_t i = 0; i < count && !pack->bad; i++)
        msgpack_skip(pack, depth + 1);
}

/* The next item is an array or a map: how many elements or pairs it has. */
static uint64_t msgpack_count(struct msgpack *pack, enum msgpack_type type)
{
    struct msgpack_item item = msgpack_next(pack);
    pack->bad = pack->bad || item.type != type;
    return item.value;
}

/* The type names of OpenCL; other languages omit them. */
static uint32_t msgpack_parameter_kind(struct ggi_bytes name, uint32_t size)
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
        if (ggi_bytes_equal(name, types[i].word))
            return types[i].kind;
    return size > 8 ? GG_PARAMETER_BYTES : GG_PARAMETER_UNKNOWN;
}

/* A map of one argument. The driver sets hidden arguments itself. */
static gg_status msgpack_read_argument(struct msgpack *pack, struct gg_image_kernel *kernel)
{
    const uint64_t count = msgpack_count(pack, MSGPACK_MAP);
    struct gg_parameter parameter = {0};
    struct ggi_bytes type = {NULL, 0}, kind = {NULL, 0};
    for (uint64_t i = 0; i < count && !pack->bad; i++) {
        struct ggi_bytes key = msgpack_next(pack).text;
        if (ggi_bytes_equal(key, ".offset"))
            parameter.offset = (uint32_t)msgpack_next(pack).value;
        else if (ggi_bytes_equal(key, ".size"))
            parameter.size = (uint32_t)msgpack_next(pack).value;
        else if (ggi_bytes_equal(key, ".type_name"))
            type = msgpack_next(pack).text;
        else if (ggi_bytes_equal(key, ".value_kind"))
            kind = msgpack_next(pack).text;
        else
            msgpack_skip(pack, 0);
    }
    if (pack->bad || ggi_bytes_start_with(kind, "hidden_", 7))
        return GG_OK;
    parameter.kind = ggi_bytes_equal(kind, "by_value") ? msgpack_parameter_kind(type, parameter.size)
                                                       : GG_PARAMETER_POINTER;
    return ggi_image_add_parameter(kernel, &parameter);
}

static gg_status msgpack_read_arguments(struct msgpack *pack, struct gg_image_kernel *kernel)
{
    const uint64_t count = msgpack_count(pack, MSGPACK_ARRAY);
    gg_status status = GG_OK;
    for (uint64_t i = 0; i < count && !pack->bad && !status; i++)
        status = msgpack_read_argument(pack, kernel);
    return status;
}

/* The name may follow the arguments, so it is read first. */
static gg_status msgpack_read_kernel(struct msgpack *pack, struct gg_image *image)
{
    const uint64_t count = msgpack_count(pack, MSGPACK_MAP);
    struct ggi_bytes name = {NULL, 0};
    uint64_t arguments = 0;
    struct gg_image_kernel *kernel;
    for (uint64_t i = 0; i < count && !pack->bad; i++) {
        struct ggi_bytes key = msgpack_next(pack).text;
        if (ggi_bytes_equal(key, ".name")) {
            name = msgpack_next(pack).text;
            continue;
        }
        if (ggi_bytes_equal(key, ".args"))
            arguments = pack->at;
        msgpack_skip(pack, 0);
    }
    if (pack->bad || !name.size)
        return GG_OK;
    gg_status status = ggi_image_add_kernel(image, name, &kernel);
    if (status)
        return status;
    kernel->parameter_count = 0;
    struct msgpack inner = {pack->bytes, arguments, false};
    if (arguments)
        status = msgpack_read_arguments(&inner, kernel);
    pack->bad = inner.bad;
    return status;
}

static gg_status msgpack_read_kernels(struct msgpack *pack, struct gg_image *image)
{
    const uint64_t count = msgpack_count(pack, MSGPACK_ARRAY);
    gg_status status = GG_OK;
    for (uint64_t i = 0; i < count && !pack->bad && !status; i++)
        status = msgpack_read_kernel(pack, image);
    return status;
}

gg_status ggi_image_read_msgpack(struct ggi_bytes bytes, struct gg_image *image)
{
    struct msgpack pack = {bytes, 0, false};
    const uint64_t count = msgpack_count(&pack, MSGPACK_MAP);
    gg_status status = GG_OK;
    for (uint64_t i = 0; i < count && !pack.bad && !status; i++) {
        struct ggi_bytes key = msgpack_next(&pack).text;
        while (key.size && key.at[0] != '.') /* the vendor's prefix */
            key = ggi_bytes_slice(key, 1, key.size - 1);
        if (ggi_bytes_equal(key, ".kernels"))
            status = msgpack_read_kernels(&pack, image);
        else if (ggi_bytes_equal(key, ".target"))
            ggi_image_add_target(image, msgpack_next(&pack).text, "--"); /* "…--gfx90a:xnack+" */
        else
            msgpack_skip(&pack, 0);
    }
    if (!status && pack.bad)
        return ggi_image_damaged("its metadata note is not a map of kernels");
    return status;
}
