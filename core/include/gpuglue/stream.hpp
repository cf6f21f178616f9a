/* stream.hpp: devices, streams, events and scopes. See gpuglue.hpp. */
#ifndef GG_STREAM_HPP
#define GG_STREAM_HPP

#include <gpuglue/error.hpp>

namespace gg
{

class stream_ref;

/** A device. Copies are the same device. */
class device
{
  public:
    device() noexcept = default;
    explicit device(gg_device *object) noexcept : object_(object) {}
    /** By name: "cuda:1", "1", "cuda", "pci:…", "uuid:…". */
    explicit device(const char *name) { check(gg_device_find(name, &object_)); }
    device(const char *backend, int ordinal) { check(gg_device_get(backend, ordinal, &object_)); }

    static device current()
    {
        gg_device *object = nullptr;
        check(gg_current_device(&object));
        return device(object);
    }
    static int count(const char *backend = nullptr)
    {
        std::int32_t number = 0;
        check(gg_device_count(backend, &number));
        return number;
    }

    gg_device *get() const noexcept { return object_; }
    explicit operator bool() const noexcept { return object_ != nullptr; }
    const char *backend() const noexcept { return gg_device_backend(object_); }
    int ordinal() const noexcept { return gg_device_ordinal(object_); }
    struct gg_device_info info() const
    {
        struct gg_device_info info = {};
        info.struct_size = sizeof info;
        check(gg_device_info(object_, &info));
        return info;
    }
    std::int64_t attribute(gg_attribute name) const
    {
        std::int64_t value = 0;
        check(gg_device_attribute(object_, name, &value));
        return value;
    }
    struct memory_info {
        std::uint64_t free, total; // bytes
    };
    memory_info memory() const
    {
        memory_info info = {};
        check(gg_device_memory_info(object_, &info.free, &info.total));
        return info;
    }
    /** Load, power and so on, see stats.h. @p processes: array of @p room entries. */
    struct gg_device_stats stats(gg_process_stats *processes = nullptr, std::uint32_t room = 0) const
    {
        struct gg_device_stats stats = {};
        stats.struct_size = sizeof stats;
        stats.processes = processes;
        stats.process_room = room;
        check(gg_device_stats(object_, &stats));
        return stats;
    }
    bool supports(gg_op operation) const noexcept
    {
        return gg_device_supports(object_, operation) != 0;
    }
    bool can_access(device peer) const
    {
        std::int32_t yes = 0;
        check(gg_device_can_access(object_, peer.object_, &yes));
        return yes != 0;
    }
    void synchronize() const { check(gg_device_synchronize(object_)); }
    void set_current() const { check(gg_device_set_current(object_)); }
    inline stream_ref default_stream() const;
    inline stream_ref current_stream() const;

    friend bool operator==(device a, device b) noexcept { return a.object_ == b.object_; }
    friend bool operator!=(device a, device b) noexcept { return a.object_ != b.object_; }

  private:
    gg_device *object_ = nullptr;
};

// ---- streams and events --------------------------------------------------------------------------

class event;
class memory;

/** A stream that something else owns; nullptr: the current stream, where a function documents it. */
class stream_ref
{
  public:
    stream_ref(std::nullptr_t = nullptr) noexcept {}
    stream_ref(gg_stream *object) noexcept : object_(object) {}

    gg_stream *get() const noexcept { return object_; }
    explicit operator bool() const noexcept { return object_ != nullptr; }
    gg::device device() const noexcept { return gg::device(gg_stream_device(object_)); }
    /** The vendor's handle, such as a cudaStream_t. */
    std::uint64_t native() const
    {
        std::uint64_t handles[4] = {};
        check(gg_stream_native(object_, handles));
        return handles[0];
    }
    bool query() const { return check_ready(gg_stream_query(object_)); }
    /** Whether all work is complete: false if the timeout has expired. */
    bool wait(std::chrono::nanoseconds limit = forever) const
    {
        return check_ready(gg_stream_wait(object_, detail::timeout_of(limit)));
    }
    /** Later work waits, on the device. */
    inline void wait_for(const event &event) const;
    inline void wait_for(const memory &memory) const;
    void wait_for(stream_ref other) const { check(gg_stream_wait_stream(object_, other.object_)); }
    /** See gg_stream_host_func for what the function must not do. */
    void host_func(void (*function)(void *), void *argument) const
    {
        check(gg_stream_host_func(object_, function, argument));
    }

  private:
    gg_stream *object_ = nullptr;
};

inline stream_ref device::default_stream() const
{
    gg_stream *stream = nullptr;
    check(gg_device_default_stream(object_, &stream));
    return stream_ref(stream);
}

inline stream_ref device::current_stream() const
{
    gg_stream *stream = nullptr;
    check(gg_current_stream(object_, &stream));
    return stream_ref(stream);
}

/** A stream. Converts to stream_ref. */
class stream : public detail::owner<gg_stream, gg_stream_retain, gg_stream_release>
{
  public:
    using owner::owner;
    explicit stream(gg::device on, std::uint32_t flags = 0, int priority = 0)
    {
        gg_stream *made = nullptr;
        check(gg_stream_create(on.get(), flags, priority, &made));
        reset(made);
    }
    /** A stream of another library, which stays alive during each call that uses it. */
    static stream borrow(gg::device on, std::uint64_t native)
    {
        gg_stream *made = nullptr;
        check(gg_stream_borrow(on.get(), native, nullptr, nullptr, &made));
        return stream(made);
    }
    stream share() const noexcept { return stream(another()); }

    operator stream_ref() const noexcept { return stream_ref(get()); }
    gg::device device() const noexcept { return ref().device(); }
    std::uint64_t native() const { return ref().native(); }
    bool query() const { return ref().query(); }
    bool wait(std::chrono::nanoseconds limit = forever) const { return ref().wait(limit); }
    template <class What> void wait_for(const What &what) const { ref().wait_for(what); }
    void host_func(void (*function)(void *), void *argument) const
    {
        ref().host_func(function, argument);
    }

  private:
    stream_ref ref() const noexcept { return stream_ref(get()); }
};

class event : public detail::owner<gg_event, gg_event_retain, gg_event_release>
{
  public:
    using owner::owner;
    explicit event(gg::device on, std::uint32_t flags = 0)
    {
        gg_event *made = nullptr;
        check(gg_event_create(on.get(), flags, &made));
        reset(made);
    }
    event share() const noexcept { return event(another()); }

    gg::device device() const noexcept { return gg::device(gg_event_device(get())); }
    void record(stream_ref on) { check(gg_event_record(get(), on.get())); }
    bool query() const { return check_ready(gg_event_query(get())); }
    bool wait(std::chrono::nanoseconds limit = forever) const
    {
        return check_ready(gg_event_wait(get(), detail::timeout_of(limit)));
    }
    /** Time from @p start to this event; both have GG_EVENT_TIMING and are complete. */
    std::chrono::duration<double, std::milli> since(const event &start) const
    {
        double milliseconds = 0;
        check(gg_event_elapsed(start.get(), get(), &milliseconds));
        return std::chrono::duration<double, std::milli>(milliseconds);
    }
};

inline void stream_ref::wait_for(const event &event) const
{
    check(gg_stream_wait_event(object_, event.get()));
}

/** The current device, and stream, of this thread until the scope ends. Leave it on the same thread. */
class scope
{
  public:
    explicit scope(device on) { check(gg_scope_enter(on.get(), nullptr, &object_)); }
    explicit scope(stream_ref on) { check(gg_scope_enter(on.device().get(), on.get(), &object_)); }
    explicit scope(const stream &on) : scope(stream_ref(on)) {}
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;
    ~scope() { gg_scope_leave(object_); }

  private:
    gg_scope *object_ = nullptr;
};

} // namespace gg

#endif
