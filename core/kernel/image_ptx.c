/* image_ptx.c: PTX: its target, its entries and the types of their parameters. */
#include "kernel/image.h"

#include <stdio.h>

struct ptx {
    const char *at, *end;
};

static bool ptx_is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '%' || c == '.';
}

/* Skips white space and comments. */
static void ptx_skip_blanks(struct ptx *text)
{
    while (text->at < text->end) {
        size_t left = (size_t)(text->end - text->at);
        const char *close;
        if (*text->at == ' ' || (*text->at >= '\t' && *text->at <= '\r')) {
            text->at++;
        } else if (left > 1 && !memcmp(text->at, "//", 2)) {
            close = memchr(text->at, '\n', left);
            text->at = close ? close : text->end;
        } else if (left > 1 && !memcmp(text->at, "/*", 2)) {
            close = memmem(text->at + 2, left - 2, "*/", 2);
            text->at = close ? close + 2 : text->end;
        } else {
            return;
        }
    }
}

/* The next word (letters, digits, _ $ % .) or a single other character; empty at the end. */
static struct ggi_bytes ptx_next(struct ptx *text)
{
    const char *from;
    ptx_skip_blanks(text);
    from = text->at;
    while (text->at < text->end && ptx_is_word(*text->at))
        text->at++;
    if (text->at == from && from < text->end)
        text->at++;
    return (struct ggi_bytes){(const unsigned char *)from, (size_t)(text->at - from)};
}

static uint32_t ptx_number(struct ggi_bytes token)
{
    uint32_t value = 0;
    for (size_t i = 0; i < token.size && token.at[i] >= '0' && token.at[i] <= '9'; i++)
        value = value > 100000000u ? value : value * 10 + (uint32_t)(token.at[i] - '0');
    return value;
}

/* ".f32": kind and size. False if the word is not a type. */
static bool ptx_parse_type(struct ggi_bytes token, struct gg_parameter *out)
{
    static const char letters[] = "fsub";
    /* compilers emit u for signed numbers too */
    static const uint32_t kinds[] = {GG_PARAMETER_FLOAT, GG_PARAMETER_INTEGER, GG_PARAMETER_INTEGER,
                                     GG_PARAMETER_UNKNOWN};
    const char *letter = token.size > 2 && token.at[0] == '.' ? strchr(letters, token.at[1]) : NULL;
    if (!letter || !*letter)
        return false;
    uint32_t bits = ptx_number((struct ggi_bytes){token.at + 2, token.size - 2});
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
        return false;
    out->kind = kinds[letter - letters];
    out->size = bits / 8;
    return true;
}

static uint32_t ptx_align(uint32_t offset, uint32_t to)
{
    return to ? (offset + to - 1) / to * to : offset;
}

/* What follows ".param", up to "," or ")", which is returned. */
static struct ggi_bytes ptx_read_parameter(struct ptx *text, struct gg_parameter *parameter)
{
    uint32_t align = 0;
    struct ggi_bytes token = ptx_next(text);
    bool pointer = false;
    for (; token.size && !ggi_bytes_equal(token, ",") && !ggi_bytes_equal(token, ")");
         token = ptx_next(text)) {
        if (ggi_bytes_equal(token, ".align") && pointer)
            ptx_next(text); /* of the memory that it points to */
        else if (ggi_bytes_equal(token, ".align"))
            align = ptx_number(ptx_next(text));
        else if (ggi_bytes_equal(token, ".ptr"))
            pointer = true;
        else if (ggi_bytes_equal(token, "[")) {
            uint64_t bytes = (uint64_t)ptx_number(ptx_next(text)) * parameter->size;
            parameter->kind = GG_PARAMETER_BYTES;
            parameter->size = bytes > 65536 ? 65536 : (uint32_t)bytes;
        } else
            ptx_parse_type(token, parameter);
    }
    if (pointer)
        parameter->kind = GG_PARAMETER_POINTER;
    parameter->reserved = align;
    return token;
}

static gg_status ptx_read_parameters(struct ptx *text, struct gg_image_kernel *kernel)
{
    uint32_t offset = 0;
    gg_status status = GG_OK;
    struct ggi_bytes token = ptx_next(text);
    while (!status && ggi_bytes_equal(token, ".param")) {
        struct gg_parameter parameter = {0};
        token = ptx_read_parameter(text, &parameter);
        parameter.offset =
            ptx_align(offset, parameter.reserved ? parameter.reserved : parameter.size);
        parameter.reserved = 0;
        offset = parameter.offset + parameter.size;
        status = ggi_image_add_parameter(kernel, &parameter);
        if (ggi_bytes_equal(token, ","))
            token = ptx_next(text);
    }
    if (!status && !ggi_bytes_equal(token, ")"))
        return ggi_image_damaged("the parameter list of %.100s has no end", kernel->name);
    return status;
}

static gg_status ptx_read_entry(struct ptx *text, struct gg_image *image)
{
    struct gg_image_kernel *kernel;
    struct ggi_bytes name = ptx_next(text);
    if (!name.size || !ptx_is_word((char)name.at[0]))
        return ggi_image_damaged("an entry has no name");
    gg_status status = ggi_image_add_kernel(image, name, &kernel);
    if (status)
        return status;
    kernel->parameter_count = 0;
    struct ptx before = *text;
    if (!ggi_bytes_equal(ptx_next(text), "(")) {
        *text = before;
        return GG_OK;
    }
    return ptx_read_parameters(text, kernel);
}

gg_status ggi_image_read_ptx(struct ggi_bytes bytes, struct gg_image *image)
{
    struct ptx text = {(const char *)bytes.at, (const char *)bytes.at + bytes.size};
    gg_status status = GG_OK;
    struct ggi_bytes token = ptx_next(&text);
    for (; !status && token.size; token = ptx_next(&text)) {
        if (ggi_bytes_equal(token, ".entry")) {
            status = ptx_read_entry(&text, image);
        } else if (ggi_bytes_equal(token, ".target") && !image->arch[0]) {
            token = ptx_next(&text);
            snprintf(image->arch, sizeof image->arch, "%.*s",
                     (int)(token.size < 31 ? token.size : 31), (const char *)token.at);
        }
    }
    if (!status && !image->arch[0])
        return ggi_image_damaged("the PTX has no .target");
    return status;
}
