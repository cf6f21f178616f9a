/* text.c: sentences for people, built in buffers of a fixed size, and texts that are kept. */
#include "text.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ELLIPSIS "\xe2\x80\xa6"

void ggi_text_begin(struct ggi_text *text, char *data, size_t size)
{
    *text = (struct ggi_text){data, size, 0};
    if (size)
        data[0] = 0;
}

/* Put the mark of a cut at the end, not inside a character of several bytes. */
static void mark_cut(struct ggi_text *text)
{
    size_t at = text->size - 1;
    if (text->size <= sizeof ELLIPSIS)
        return;
    at = text->size - sizeof ELLIPSIS;
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
    mark_cut(text);
}

void ggi_text_add(struct ggi_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    ggi_text_addv(text, format, arguments);
    va_end(arguments);
}

struct kept {
    struct kept *next;
    char text[];
};
static _Atomic(struct kept *) all_kept;

static const char *find_kept(const char *text)
{
    for (struct kept *k = atomic_load(&all_kept); k; k = k->next)
        if (!strcmp(k->text, text))
            return k->text;
    return NULL;
}

/* No lock: a plugin asks for this in the middle of anything, and a fork may happen then. */
const char *ggi_keep(const char *text)
{
    if (!text || !*text)
        return "";
    const char *same = find_kept(text);
    if (same)
        return same;
    size_t size = strlen(text) + 1;
    struct kept *k = malloc(sizeof *k + size);
    if (!k)
        return "";
    memcpy(k->text, text, size);
    k->next = atomic_load(&all_kept);
    while (!atomic_compare_exchange_weak(&all_kept, &k->next, k)) {
    }
    return k->text;
}
