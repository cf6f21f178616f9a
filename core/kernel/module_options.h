/* module_options.h: what SPIR-V is compiled with: constants, flags, further inputs. */
#ifndef GPUGLUE_MODULE_OPTIONS_H
#define GPUGLUE_MODULE_OPTIONS_H

#include "runtime/device.h"

/* The caller's options, which may be NULL or have the size of an older header, with all members of this header. */
gg_status ggi_module_options_copy(const struct gg_module_options *options,
                                  struct gg_module_options *out);
bool ggi_module_options_empty(const struct gg_module_options *options);
/* Reads the image and all inputs, and checks the options against them. */
gg_status ggi_module_options_read(struct gg_device *device, const struct gg_module_options *options,
                                  const void *bytes, size_t nbytes, struct gg_image **out);

#endif
