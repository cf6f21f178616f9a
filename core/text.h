/* text.h: sentences for people, built in buffers of a fixed size, and texts that are kept. */
#ifndef GPUGLUE_TEXT_H
#define GPUGLUE_TEXT_H

#include <stdarg.h>
#include <stddef.h>

/* What does not fit is cut and ends in "…". */
struct ggi_text {
    char *data;
    size_t size, used;
};
void ggi_text_begin(struct ggi_text *text, char *data, size_t size);
void ggi_text_add(struct ggi_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void ggi_text_addv(struct ggi_text *text, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* The same text, to be read until the process ends. Equal texts are stored once, so that asking the
 * same question again and again does not grow the process. "" for NULL and where memory ran out. */
const char *ggi_keep(const char *text);

#endif
