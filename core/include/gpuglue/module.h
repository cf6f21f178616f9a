/** @file
 *  Device code loaded onto a device.
 *
 *  @par Ordering
 *  Launches of a module's kernels count as uses of its variables. A module is unloaded when its launches are complete.
 *  @par Threads
 *  Any thread. */
#ifndef GG_MODULE_H
#define GG_MODULE_H

#include <gpuglue/image.h>

GG_BEGIN_DECLS

/** Load an image onto a device.
 *
 *  @param device    any device
 *  @param bytes     the image; may be freed when the call returns
 *  @param nbytes    its size in bytes
 *  @param[out] out  one reference
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  damaged, or for another architecture (both are named)
 *  @retval GG_ERR_UNSUPPORTED       the backend has no modules, or the format must be linked first */
GG_API gg_status gg_module_load(gg_device *device, const void *bytes, size_t nbytes,
                                gg_module **out);

/** A value for a specialisation constant. The size never changes: arrays of it are indexed. */
struct gg_module_constant {
    uint32_t id;       /**< gg_image_constant::id */
    uint32_t reserved; /**< 0 */
    uint64_t value;    /**< in the low bytes, as many as the constant has */
};

/** Further SPIR-V of a module. The size never changes: arrays of it are indexed. */
struct gg_module_input {
    const void *bytes; /**< may be freed when the call returns */
    size_t nbytes;     /**< size in bytes */
};

/** How the driver compiles SPIR-V. Zero and NULL are defaults. */
struct gg_module_options {
    uint32_t struct_size;                       /**< sizeof, as compiled into the caller */
    uint32_t constant_count;                    /**< number of constants to replace */
    const struct gg_module_constant *constants; /**< in any order; the others keep their values */
    const char *flags;  /**< such as "-ze-opt-level=1", separated by spaces, or NULL */
    size_t input_count; /**< number of further inputs */
    const struct gg_module_input *inputs; /**< SPIR-V, linked with the image */
    const void *binary; /**< from gg_module_binary, of the same image with the same options; NULL: compile */
    size_t binary_size; /**< its size in bytes */
};

/** Load SPIR-V, which the driver compiles with options.
 *
 *  @param device    any device
 *  @param bytes     the image: SPIR-V, unless there are no options; may be freed when the call returns
 *  @param nbytes    its size in bytes
 *  @param options   NULL: as gg_module_load
 *  @param[out] out  one reference
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  an image is damaged or is not SPIR-V, it has no such constant, the driver's compiler
 *                                   refuses the code or the flags, or the driver refuses the binary
 *  @retval GG_ERR_UNSUPPORTED       the backend does not compile SPIR-V, or does not link it */
GG_API gg_status gg_module_load_with(gg_device *device, const void *bytes, size_t nbytes,
                                     const struct gg_module_options *options, gg_module **out);

/** The machine code of a module that the driver has compiled. gg_module_load_with can load it instead of compiling the same
 *  image again, on a device of the same architecture with the same version of the driver.
 *
 *  @param module          any module
 *  @param[out] binary     a buffer of @p nbytes; NULL: only store the size
 *  @param[in,out] nbytes  size of the buffer; set to the size of the code
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  the buffer is too small
 *  @retval GG_ERR_UNSUPPORTED       the backend does not compile, or the driver does not return the code */
GG_API gg_status gg_module_binary(gg_module *module, void *binary, size_t *nbytes);

/** Add a reference.
 *
 *  @param module  any module */
GG_API void gg_module_retain(gg_module *module);

/** Drop a reference. Never waits: the module is unloaded when its launches are complete.
 *
 *  @param module  may be NULL */
GG_API void gg_module_release(gg_module *module);

/** The device that the module was loaded onto.
 *
 *  @param module  any module
 *  @return the device, not a reference */
GG_API gg_device *gg_module_device(const gg_module *module);

/** Metadata of the image.
 *
 *  @param module  any module
 *  @return valid as long as the module */
GG_API const struct gg_image *gg_module_image(const gg_module *module);

/** Device memory of a global variable. The memory holds a reference to the module, and launches of the module's kernels
 *  count as uses of it.
 *
 *  @param module    any module
 *  @param name      of the variable, as in the image
 *  @param[out] out  one reference
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  no variable of that name */
GG_API gg_status gg_module_global(gg_module *module, const char *name, gg_memory **out);

/** A kernel of the module. It holds a reference to the module.
 *
 *  @param module    any module
 *  @param name      of the kernel, as in the image
 *  @param[out] out  one reference
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  no kernel of that name; the message names the nearest and lists the kernels */
GG_API gg_status gg_module_kernel(gg_module *module, const char *name, gg_kernel **out);

/** The number of the module's kernels. They are read from the image; if the image hides them, the driver is queried once.
 *
 *  @param module    any module
 *  @param[out] out  set on success
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_UNSUPPORTED  neither the image nor the driver lists them: a compressed image with an old driver */
GG_API gg_status gg_module_kernel_count(gg_module *module, size_t *out);

/** The name of a kernel, as gg_module_kernel expects it.
 *
 *  @param module  one for which gg_module_kernel_count has succeeded
 *  @param index   from 0
 *  @return valid as long as the module; NULL if index is not below the count */
GG_API const char *gg_module_kernel_name(gg_module *module, size_t index);

GG_END_DECLS
#endif
