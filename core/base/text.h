/* text.h: texts built in buffers of a fixed size, and interned texts. */
#ifndef GPUGLUE_TEXT_H
#define GPUGLUE_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* A text in a buffer. One that does not fit is cut and ends in "…". */
struct ggi_text {
    char *data;
    size_t size, used;
};
/* An empty text with its own buffer: struct ggi_text why = GGI_TEXT(512). */
#define GGI_TEXT(bytes)              \
    {                                \
        (char[bytes]){0}, (bytes), 0 \
    }
struct ggi_text ggi_text_begin(char *data, size_t size); /* an empty text in a given buffer */
void ggi_text_add(struct ggi_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void ggi_text_addv(struct ggi_text *text, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* ASCII letters to lower case, in place. */
void ggi_text_lower(char *text);
/* The edit distance: letters inserted, deleted or replaced, or two adjacent ones swapped. SIZE_MAX if a text is
 * longer than GGI_DISTANCE_MAX. */
#define GGI_DISTANCE_MAX 63
size_t ggi_text_distance(const char *a, const char *b);
/* The largest distance at which a known name may be what the user meant by @p name. */
size_t ggi_text_tolerance(const char *name);

/* A size as text: "1.5 GiB (1610612736 bytes)"; below a MiB the bytes alone. */
struct ggi_size {
    char text[48];
};
const char *ggi_text_size(struct ggi_size *out, uint64_t bytes);

/* A copy that is never freed. Equal texts share one copy. "" for NULL and when memory runs out. */
const char *ggi_intern(const char *text);

#endif
