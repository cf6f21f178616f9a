/* memory.hpp: memory, typed spans of it, copies and fills. See gpuglue.hpp. */
#ifndef GG_MEMORY_HPP
#define GG_MEMORY_HPP

#include <gpuglue/stream.hpp>

#include <cstddef>
#include <iterator>
#include <type_traits>

namespace gg
{

/** @p size elements of type T in a block of device, pinned or managed memory. Owns nothing. */
template <class T> class device_span
{
    static_assert(std::is_trivially_copyable<T>::value, "the device copies bytes");

  public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;

    device_span() noexcept = default;
    device_span(gg_memory *memory, std::size_t byte_offset, std::size_t size) noexcept
        : memory_(memory), offset_(byte_offset), size_(size)
    {
    }
    /** From elements that may be written to elements that may not. */
    template <class U, class = std::enable_if_t<std::is_same<const U, T>::value>>
    device_span(device_span<U> other) noexcept
        : device_span(other.memory(), other.byte_offset(), other.size())
    {
    }

    /** The address, of the device unless the memory is pinned or managed. */
    T *data() const noexcept
    {
        char *base = memory_ ? static_cast<char *>(gg_memory_pointer(memory_)) : nullptr;
        return base ? reinterpret_cast<T *>(base + offset_) : nullptr;
    }
    std::size_t size() const noexcept { return size_; }
    std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
    bool empty() const noexcept { return size_ == 0; }
    gg_memory *memory() const noexcept { return memory_; }
    std::size_t byte_offset() const noexcept { return offset_; }

    /** @p count elements from element @p first on. Throws if they are not all in this span. */
    device_span subspan(std::size_t first, std::size_t count) const
    {
        if (first > size_ || count > size_ - first)
            throw invalid_argument_error(GG_ERR_INVALID_ARGUMENT,
                                         "subspan: the elements are not all in the span");
        return device_span(memory_, offset_ + first * sizeof(T), count);
    }
    device_span first(std::size_t count) const { return subspan(0, count); }
    device_span last(std::size_t count) const
    {
        return subspan(count > size_ ? size_ + 1 : size_ - count, count);
    }

  private:
    gg_memory *memory_ = nullptr;
    std::size_t offset_ = 0, size_ = 0;
};

class memory : public detail::owner<gg_memory, gg_memory_retain, gg_memory_release>
{
  public:
    using owner::owner;
    memory(gg::device on, std::size_t nbytes, gg_memory_kind kind = GG_MEMORY_DEVICE,
           stream_ref stream = nullptr)
    {
        gg_memory *made = nullptr;
        check(gg_memory_alloc(on.get(), kind, nbytes, stream.get(), &made));
        reset(made);
    }
    /** Memory of another library, which calls @p release(@p user) when gpuglue no longer needs it. */
    static memory wrap(gg::device on, gg_memory_kind kind, void *pointer, std::size_t nbytes,
                       void (*release)(void *) = nullptr, void *user = nullptr)
    {
        gg_memory *made = nullptr;
        check(gg_memory_wrap(on.get(), kind, pointer, nbytes, release, user, &made));
        return memory(made);
    }
    /** Pin memory of the host, which exists until @p release(@p user) is called. */
    static memory host_register(gg::device on, void *pointer, std::size_t nbytes,
                                void (*release)(void *) = detail::no_release, void *user = nullptr)
    {
        gg_memory *made = nullptr;
        check(gg_memory_host_register(on.get(), pointer, nbytes, release, user, &made));
        return memory(made);
    }
    memory share() const noexcept { return memory(another()); }

    void *pointer() const noexcept { return gg_memory_pointer(get()); }
    std::size_t size() const noexcept { return gg_memory_size(get()); } // bytes
    gg_memory_kind kind() const noexcept { return gg_memory_get_kind(get()); }
    std::int32_t numa_node() const noexcept { return gg_memory_numa_node(get()); }
    gg::device device() const noexcept { return gg::device(gg_memory_device(get())); }
    /** Work that gpuglue did not submit uses the memory: see gg_memory_record_use. */
    void record_use(stream_ref on) { check(gg_memory_record_use(get(), on.get())); }
    void wait() const { check(gg_memory_wait(get())); }
    bool query() const { return check_ready(gg_memory_query(get())); }

    /** As elements of type T; remaining bytes that are too few for one are left out. */
    template <class T> device_span<T> as() const noexcept
    {
        return device_span<T>(get(), 0, size() / sizeof(T));
    }
};

inline void stream_ref::wait_for(const memory &memory) const
{
    check(gg_stream_wait_memory(object_, memory.get()));
}

/** Memory for @p count elements of type T. */
template <class T>
memory allocate(device on, std::size_t count, gg_memory_kind kind = GG_MEMORY_DEVICE,
                stream_ref stream = nullptr)
{
    if (count > SIZE_MAX / sizeof(T))
        throw out_of_memory_error(GG_ERR_OUT_OF_MEMORY, "allocate: the size overflows");
    return memory(on, count * sizeof(T), kind, stream);
}

// ---- copies and fills ------------------------------------------------------------------------------

namespace detail
{
template <class T> struct is_device_span : std::false_type {
};
template <class T> struct is_device_span<device_span<T>> : std::true_type {
};
/** Host memory: an array, a vector, a span, anything with std::data() and std::size() of elements T. */
template <class Host>
using element_of = std::remove_pointer_t<decltype(std::data(std::declval<Host &>()))>;
template <class Host, class T>
using if_host =
    std::enable_if_t<!is_device_span<std::decay_t<Host>>::value &&
                     std::is_same<std::remove_cv_t<element_of<Host>>, std::remove_cv_t<T>>::value>;

template <class T> gg_copy_operand operand(device_span<T> span) noexcept
{
    gg_copy_operand side = {};
    side.memory = span.memory();
    side.offset = span.byte_offset();
    return side;
}
inline gg_copy_operand operand(const void *host) noexcept
{
    gg_copy_operand side = {};
    side.host = const_cast<void *>(host);
    return side;
}
inline void copy_bytes(const gg_copy_operand &to, std::size_t to_size, const gg_copy_operand &from,
                       std::size_t from_size, stream_ref stream, std::uint32_t flags)
{
    if (to_size != from_size)
        throw invalid_argument_error(GG_ERR_INVALID_ARGUMENT,
                                     "copy: source and destination have different sizes");
    if (to_size)
        check(gg_copy(&to, &from, to_size, stream.get(), flags));
}
} // namespace detail

/** Copy all elements; both sides have the same number. @p flags: GG_COPY_ASYNC and so on. */
template <class T, class U, class = std::enable_if_t<std::is_same<std::remove_const_t<U>, T>::value>>
void copy(device_span<T> to, device_span<U> from, stream_ref stream = nullptr,
          std::uint32_t flags = 0)
{
    detail::copy_bytes(detail::operand(to), to.size_bytes(), detail::operand(from),
                       from.size_bytes(), stream, flags);
}
/** From the host. With GG_COPY_ASYNC the host memory must stay unchanged until the stream is idle. */
template <class T, class Host, class = detail::if_host<const Host, T>>
void copy(device_span<T> to, const Host &from, stream_ref stream = nullptr, std::uint32_t flags = 0)
{
    static_assert(!std::is_const<T>::value, "the destination must not be const");
    detail::copy_bytes(detail::operand(to), to.size_bytes(), detail::operand(std::data(from)),
                       std::size(from) * sizeof(T), stream, flags);
}
/** To the host. */
template <class Host, class T, class = detail::if_host<Host, T>>
void copy(Host &&to, device_span<T> from, stream_ref stream = nullptr, std::uint32_t flags = 0)
{
    static_assert(!std::is_const<detail::element_of<Host>>::value,
                  "the destination must not be const");
    detail::copy_bytes(detail::operand(std::data(to)), std::size(to) * sizeof(T),
                       detail::operand(from), from.size_bytes(), stream, flags);
}

/** Set every element to @p value. */
template <class T>
void fill(device_span<T> to, const std::common_type_t<T> &value, stream_ref stream = nullptr)
{
    if (!to.empty())
        check(gg_fill(to.memory(), to.byte_offset(), &value, sizeof(T), to.size(), stream.get()));
}

} // namespace gg

#endif
