/* image_text.c: PTX, which is text: its target, its entries and the types of their parameters. */
#include "image.h"

#include <stdio.h>

struct text {
    const char *at, *end;
};

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '%' || c == '.';
}

/* Behind blanks and comments. */
static void skip_blanks(struct text *text)
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
static struct ggi_bytes next_token(struct text *text)
{
    const char *from;
    skip_blanks(text);
    from = text->at;
    while (text->at < text->end && is_word(*text->at))
        text->at++;
    if (text->at == from && from < text->end)
        text->at++;
    return (struct ggi_bytes){(const unsigned char *)from, (size_t)(text->at - from)};
}

static bool is(struct ggi_bytes token, const char *word)
{
    return token.size == strlen(word) && !memcmp(token.at, word, token.size);
}

static uint32_t number(struct ggi_bytes token)
{
    uint32_t value = 0;
    for (size_t i = 0; i < token.size && token.at[i] >= '0' && token.at[i] <= '9'; i++)
        value = value > 100000000u ? value : value * 10 + (uint32_t)(token.at[i] - '0');
    return value;
}

/* ".f32": kind and size; false for a word that is no type. */
static bool type_of(struct ggi_bytes token, struct gg_parameter *out)
{
    static const char letters[] = "fsub";
    /* compilers write u for signed numbers too */
    static const uint32_t kinds[] = {GG_PARAMETER_FLOAT, GG_PARAMETER_INTEGER, GG_PARAMETER_INTEGER,
                                     GG_PARAMETER_UNKNOWN};
    const char *letter = token.size > 2 && token.at[0] == '.' ? strchr(letters, token.at[1]) : NULL;
    if (!letter || !*letter)
        return false;
    uint32_t bits = number((struct ggi_bytes){token.at + 2, token.size - 2});
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
        return false;
    out->kind = kinds[letter - letters];
    out->size = bits / 8;
    return true;
}

static uint32_t align_up(uint32_t offset, uint32_t to)
{
    return to ? (offset + to - 1) / to * to : offset;
}

/* Behind ".param": up to "," or ")", which is returned. */
static struct ggi_bytes read_parameter(struct text *text, struct gg_parameter *parameter)
{
    uint32_t align = 0;
    struct ggi_bytes token = next_token(text);
    bool pointer = false;
    for (; token.size && !is(token, ",") && !is(token, ")"); token = next_token(text)) {
        if (is(token, ".align") && pointer)
            next_token(text); /* of what it points at */
        else if (is(token, ".align"))
            align = number(next_token(text));
        else if (is(token, ".ptr"))
            pointer = true;
        else if (is(token, "[")) {
            uint64_t bytes = (uint64_t)number(next_token(text)) * parameter->size;
            parameter->kind = GG_PARAMETER_BYTES;
            parameter->size = bytes > 65536 ? 65536 : (uint32_t)bytes;
        } else
            type_of(token, parameter);
    }
    if (pointer)
        parameter->kind = GG_PARAMETER_POINTER;
    parameter->reserved = align;
    return token;
}

static gg_status read_parameters(struct text *text, struct gg_image_kernel *kernel)
{
    uint32_t offset = 0;
    gg_status status = GG_OK;
    struct ggi_bytes token = next_token(text);
    while (!status && is(token, ".param")) {
        struct gg_parameter parameter = {0};
        token = read_parameter(text, &parameter);
        parameter.offset =
            align_up(offset, parameter.reserved ? parameter.reserved : parameter.size);
        parameter.reserved = 0;
        offset = parameter.offset + parameter.size;
        status = ggi_image_add_parameter(kernel, &parameter);
        if (is(token, ","))
            token = next_token(text);
    }
    if (!status && !is(token, ")"))
        return ggi_image_damaged("the parameters of %.100s do not end", kernel->name);
    return status;
}

static gg_status read_entry(struct text *text, struct gg_image *image)
{
    struct gg_image_kernel *kernel;
    struct ggi_bytes name = next_token(text);
    if (!name.size || !is_word((char)name.at[0]))
        return ggi_image_damaged("an entry without a name");
    gg_status status = ggi_image_add_kernel(image, name, &kernel);
    if (status)
        return status;
    kernel->parameter_count = 0;
    struct text before = *text;
    if (!is(next_token(text), "(")) {
        *text = before;
        return GG_OK;
    }
    return read_parameters(text, kernel);
}

gg_status ggi_image_read_text(struct ggi_bytes bytes, struct gg_image *image)
{
    struct text text = {(const char *)bytes.at, (const char *)bytes.at + bytes.size};
    gg_status status = GG_OK;
    struct ggi_bytes token = next_token(&text);
    for (; !status && token.size; token = next_token(&text)) {
        if (is(token, ".entry")) {
            status = read_entry(&text, image);
        } else if (is(token, ".target") && !image->arch[0]) {
            token = next_token(&text);
            snprintf(image->arch, sizeof image->arch, "%.*s",
                     (int)(token.size < 31 ? token.size : 31), (const char *)token.at);
        }
    }
    if (!status && !image->arch[0])
        return ggi_image_damaged("PTX without a .target");
    return status;
}
