/* dynlib.h: what the core asks of the dynamic loader, and why a library could not be opened. */
#ifndef GPUGLUE_DYNLIB_H
#define GPUGLUE_DYNLIB_H

#include "text.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum ggi_dynlib_mode {
    GGI_DYNLIB_VENDOR, /* lazy and private, for good */
    GGI_DYNLIB_PLUGIN, /* all symbols at once: ours must be whole */
    GGI_DYNLIB_MAPPED  /* only if the process has it already */
};

/* NULL with the loader's words in @p error. Nothing that was opened is ever closed. */
void *ggi_dynlib_open(const char *path, enum ggi_dynlib_mode mode, char *error, size_t size);
void *ggi_dynlib_symbol(void *handle, const char *name);

/* The true path of an open library. */
void ggi_dynlib_path(void *handle, char path[PATH_MAX]);

/* Whether @p address lies in that very library, not in one that it needs. */
bool ggi_dynlib_holds(void *handle, const void *address);

/* Paths of the mapped files called stem.* or stem-*.so*, which a wheel may have renamed. The first
 * @p room are given in @p paths, each to be freed; returns their number. */
size_t ggi_dynlib_mapped(const char *stem, char **paths, size_t room);

/* Why opening @p path failed with @p error, in words that a user can act on. True when there is such a
 * file and it (or one that it needs) is broken; false when there is none. */
bool ggi_dynlib_explain(const char *path, const char *error, struct ggi_text *why);

#endif
