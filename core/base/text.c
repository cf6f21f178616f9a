/* text.c: texts built in buffers of a fixed size, and interned texts. */
#include "base/list.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ELLIPSIS "\xe2\x80\xa6"

struct ggi_text ggi_text_begin(char *data, size_t size)
{
    if (size)
        data[0] = 0;
    return (struct ggi_text){data, size, 0};
}

/* End the text in an ellipsis, without splitting a UTF-8 character. */
static void text_mark_cut(struct ggi_text *text)
{
    if (text->size <= sizeof ELLIPSIS)
        return;
    size_t at = text->size - sizeof ELLIPSIS;
    while (at > 0 && ((unsigned char)text->data[at] & 0xc0) == 0x80)
        at--;
    memcpy(text->data + at, ELLIPSIS, sizeof ELLIPSIS);
}

void ggi_text_addv(struct ggi_text *text, const char *format, va_list arguments)
{
    size_t room = text->size - text->used;
    if (room == 0)
        return;
    int length = vsnprintf(text->data + text->used, room, format, arguments);
    if (length < 0)
        return;
    if ((size_t)length < room) {
        text->used += (size_t)length;
        return;
    }
    text->used = text->size;
    text_mark_cut(text);
}

void ggi_text_add(struct ggi_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    ggi_text_addv(text, format, arguments);
    va_end(arguments);
}

void ggi_text_lower(char *text)
{
    for (; *text; text++)
        if (*text >= 'A' && *text <= 'Z')
            *text = (char)(*text - 'A' + 'a');
}

/* ---- similar names ---- */

static size_t text_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t ggi_text_distance(const char *a, const char *b)
{
    size_t cost[GGI_DISTANCE_MAX + 1][GGI_DISTANCE_MAX + 1];
    const size_t rows = strlen(a), columns = strlen(b);
    if (rows > GGI_DISTANCE_MAX || columns > GGI_DISTANCE_MAX)
        return SIZE_MAX;
    for (size_t i = 0; i <= rows; i++)
        for (size_t j = 0; j <= columns; j++) {
            cost[i][j] = i + j;
            if (!i || !j)
                continue;
            cost[i][j] = text_least(cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]),
                                    1 + text_least(cost[i - 1][j], cost[i][j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                cost[i][j] = text_least(cost[i][j], 1 + cost[i - 2][j - 2]);
        }
    return cost[rows][columns];
}

size_t ggi_text_tolerance(const char *name)
{
    return text_least(3, (strlen(name) + 2) / 3);
}

/* ---- sizes ---- */

const char *ggi_text_size(struct ggi_size *out, uint64_t bytes)
{
    const char *unit = bytes >> 30 ? "GiB" : "MiB";
    const double scaled = (double)bytes / (bytes >> 30 ? 1 << 30 : 1 << 20);
    if (bytes >> 20)
        snprintf(out->text, sizeof out->text, "%.1f %s (%" PRIu64 " bytes)", scaled, unit, bytes);
    else
        snprintf(out->text, sizeof out->text, "%" PRIu64 " bytes", bytes);
    return out->text;
}

/* ---- interned texts ---- */

struct interned {
    struct interned *next;
    char text[];
};
static _Atomic(struct interned *) all_interned;

/* Lock-free: plugins call this from any thread, and the process may fork at any time. */
const char *ggi_intern(const char *text)
{
    if (!text || !*text)
        return "";
    for (struct interned *i = atomic_load(&all_interned); i; i = i->next)
        if (!strcmp(i->text, text))
            return i->text;
    size_t size = strlen(text) + 1;
    struct interned *added = malloc(sizeof *added + size);
    if (!added)
        return "";
    memcpy(added->text, text, size);
    ggi_list_push(&all_interned, added);
    return added->text;
}
