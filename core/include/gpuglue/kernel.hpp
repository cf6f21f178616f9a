/* kernel.hpp: device code, kernels and their launches. See gpuglue.hpp. */
#ifndef GG_KERNEL_HPP
#define GG_KERNEL_HPP

#include <gpuglue/memory.hpp>

#include <initializer_list>
#include <string>
#include <tuple>
#include <vector>

namespace gg
{

/** Grid, block and dynamic shared memory of a launch. */
struct launch_config {
    struct dim3 {
        std::uint32_t x, y, z;
        dim3(std::uint32_t width = 1, std::uint32_t height = 1, std::uint32_t depth = 1) noexcept
            : x(width), y(height), z(depth)
        {
        }
    };
    dim3 grid, block;
    std::uint32_t shared = 0; // bytes per block
    std::uint32_t flags = 0;  // enum gg_launch_flag
};

namespace detail
{
/** What the kernel receives for an argument, and the memory behind it. */
template <class T> T value_of(const T &value) noexcept
{
    static_assert(std::is_trivially_copyable<T>::value, "a kernel argument is copied as bytes");
    return value;
}
template <class T> T *value_of(const device_span<T> &span) noexcept
{
    return span.data();
}
inline void *value_of(const memory &memory) noexcept
{
    return memory.pointer();
}
template <class T> gg_memory *memory_of(const T &) noexcept
{
    return nullptr;
}
template <class T> gg_memory *memory_of(const device_span<T> &span) noexcept
{
    return span.memory();
}
inline gg_memory *memory_of(const memory &memory) noexcept
{
    return memory.get();
}
} // namespace detail

class kernel : public detail::owner<gg_kernel, gg_kernel_retain, gg_kernel_release>
{
  public:
    using owner::owner;
    kernel share() const noexcept { return kernel(another()); }

    const char *name() const noexcept { return gg_kernel_name(get()); }
    gg::device device() const noexcept { return gg::device(gg_kernel_device(get())); }
    /** -1: unknown. */
    int parameter_count() const noexcept { return gg_kernel_parameter_count(get()); }
    std::int64_t attribute(gg_kernel_attribute name) const
    {
        std::int64_t value = 0;
        check(gg_kernel_attribute_get(get(), name, &value));
        return value;
    }
    struct block_size {
        std::uint32_t threads, blocks;
    };
    block_size suggest_block_size(std::size_t shared = 0, std::uint32_t limit = 0) const
    {
        block_size size = {};
        check(gg_kernel_suggest_block_size(get(), shared, limit, &size.threads, &size.blocks));
        return size;
    }
    /** Launch with arguments whose types are exactly the kernel's parameters. device_span and memory are
     *  passed as pointers; the memory is kept until the kernel is complete. */
    template <class... Arguments>
    void launch(const launch_config &config, stream_ref stream, const Arguments &...arguments) const
    {
        const auto values = std::make_tuple(detail::value_of(arguments)...);
        const std::initializer_list<gg_memory *> candidates = {detail::memory_of(arguments)...};
        gg_memory *memories[sizeof...(Arguments) + 1] = {};
        std::size_t count = 0;
        for (gg_memory *memory : candidates)
            if (memory)
                memories[count++] = memory;
        launch_values(config, stream, values, memories, count,
                      std::index_sequence_for<Arguments...>());
    }

  private:
    template <class Values, std::size_t... At>
    void launch_values(const launch_config &config, stream_ref stream, const Values &values,
                       gg_memory *const *memories, std::size_t count,
                       std::index_sequence<At...>) const
    {
        const void *const addresses[] = {&std::get<At>(values)..., nullptr};
        const std::size_t sizes[] = {sizeof(std::get<At>(values))..., 0};
        gg_launch launch = {};
        launch.struct_size = sizeof launch;
        launch.flags = config.flags;
        copy_dim(launch.grid, config.grid);
        copy_dim(launch.block, config.block);
        launch.shared = config.shared;
        launch.argument_count = sizeof...(At);
        launch.arguments = addresses;
        launch.sizes = sizes;
        launch.memories = memories;
        launch.memory_count = count;
        check(gg_kernel_launch(get(), &launch, stream.get()));
    }
    static void copy_dim(std::uint32_t to[3], const launch_config::dim3 &from) noexcept
    {
        to[0] = from.x;
        to[1] = from.y;
        to[2] = from.z;
    }
};

/** Device code on a device. (`module` is a keyword of C++20.) */
class device_module : public detail::owner<gg_module, gg_module_retain, gg_module_release>
{
  public:
    using owner::owner;
    /** Load an image: cubin, PTX, code object, SPIR-V, shared object, … */
    device_module(gg::device on, const void *bytes, std::size_t nbytes)
    {
        gg_module *made = nullptr;
        check(gg_module_load(on.get(), bytes, nbytes, &made));
        reset(made);
    }
    /** From a vector or a string_view of bytes. */
    template <class Bytes, class = decltype(std::data(std::declval<const Bytes &>()))>
    device_module(gg::device on, const Bytes &bytes)
        : device_module(on, std::data(bytes), std::size(bytes) * sizeof(*std::data(bytes)))
    {
    }
    device_module share() const noexcept { return device_module(another()); }

    gg::device device() const noexcept { return gg::device(gg_module_device(get())); }
    kernel get_kernel(const char *name) const
    {
        gg_kernel *found = nullptr;
        check(gg_module_kernel(get(), name, &found));
        return kernel(found);
    }
    /** The names of its kernels. */
    std::vector<std::string> kernel_names() const
    {
        std::size_t count = 0;
        check(gg_module_kernel_count(get(), &count));
        std::vector<std::string> names;
        for (std::size_t i = 0; i < count; i++)
            names.emplace_back(gg_module_kernel_name(get(), i));
        return names;
    }
    /** The memory of a global variable. */
    memory get_global(const char *name) const
    {
        gg_memory *found = nullptr;
        check(gg_module_global(get(), name, &found));
        return memory(found);
    }
};

} // namespace gg

#endif
