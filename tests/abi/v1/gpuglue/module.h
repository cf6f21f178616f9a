/* module.h: device code loaded onto a device. */
#ifndef GG_MODULE_H
#define GG_MODULE_H

#include <gpuglue/image.h>

GG_BEGIN_DECLS

/** Load an image onto @p device. The bytes may be freed when the call returns.
 *  Errors  GG_ERR_INVALID_ARGUMENT: damaged, or for another architecture (both are named);
 *          GG_ERR_UNSUPPORTED: the backend has no modules, or the format must be linked first. */
GG_API gg_status gg_module_load(gg_device *device, const void *bytes, size_t nbytes,
                                gg_module **out);

/** Add a reference; drop one. The module is unloaded when its launches are complete. */
GG_API void gg_module_retain(gg_module *module);
GG_API void gg_module_release(gg_module *module);

/** The device that the module was loaded onto. */
GG_API gg_device *gg_module_device(const gg_module *module);

/** Metadata of the image, valid as long as the module. */
GG_API const struct gg_image *gg_module_image(const gg_module *module);

/** Device memory of a global variable. The memory holds a reference to the module, and launches of the
 *  module's kernels count as uses of it.
 *  Errors  GG_ERR_INVALID_ARGUMENT: no variable of that name. */
GG_API gg_status gg_module_global(gg_module *module, const char *name, gg_memory **out);

/** A kernel by its name in the image. It holds a reference to the module.
 *  Errors  GG_ERR_INVALID_ARGUMENT: no kernel of that name; the message lists the kernels. */
GG_API gg_status gg_module_kernel(gg_module *module, const char *name, gg_kernel **out);

GG_END_DECLS
#endif
