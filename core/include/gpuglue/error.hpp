/* error.hpp: exceptions, and the base of all owners. See gpuglue.hpp. */
#ifndef GG_ERROR_HPP
#define GG_ERROR_HPP

#include <gpuglue/gpuglue.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <utility>

namespace gg
{

/** A failed call, with the fields of gg_error. what() is the message. */
class error : public std::exception
{
  public:
    /** The last failure of this thread, or the text of @p status if it is of another call. */
    explicit error(gg_status status) noexcept : record_()
    {
        record_.struct_size = sizeof record_;
        if (gg_last_error(&record_) || record_.status != status)
            describe(status, gg_status_message(status));
    }
    /** A failure that was found before a call. */
    error(gg_status status, const char *message) noexcept : record_() { describe(status, message); }

    const char *what() const noexcept override { return record_.message; }
    gg_status status() const noexcept { return record_.status; }
    const char *status_name() const noexcept { return gg_status_name(record_.status); }
    const char *backend() const noexcept { return record_.backend; }
    const char *operation() const noexcept { return record_.op; }
    int device() const noexcept { return record_.device; }
    std::int64_t vendor_code() const noexcept { return record_.vendor_code; }
    const char *vendor_name() const noexcept { return record_.vendor_name; }
    const char *vendor_text() const noexcept { return record_.vendor_text; }
    const char *library_path() const noexcept { return record_.library_path; }
    const char *library_version() const noexcept { return record_.library_version; }
    const gg_error &record() const noexcept { return record_; }

  private:
    void describe(gg_status status, const char *message) noexcept
    {
        record_ = gg_error();
        record_.struct_size = sizeof record_;
        record_.status = status;
        record_.device = -1;
        std::snprintf(record_.message, sizeof record_.message, "%s", message);
    }
    gg_error record_;
};

#define GG_CPP_ERROR(name)    \
    class name : public error \
    {                         \
      public:                 \
        using error::error;   \
    }
GG_CPP_ERROR(invalid_argument_error);
GG_CPP_ERROR(out_of_memory_error);
GG_CPP_ERROR(unsupported_error);
GG_CPP_ERROR(unavailable_error); // no such backend or device
GG_CPP_ERROR(device_lost_error);
#undef GG_CPP_ERROR

/** Throw the exception for a status that is an error. */
[[noreturn]] inline void raise(gg_status status)
{
    if (status == GG_ERR_INVALID_ARGUMENT)
        throw invalid_argument_error(status);
    if (status == GG_ERR_OUT_OF_MEMORY)
        throw out_of_memory_error(status);
    if (status == GG_ERR_UNSUPPORTED)
        throw unsupported_error(status);
    if (status == GG_ERR_UNAVAILABLE || status == GG_ERR_NO_SUCH_DEVICE)
        throw unavailable_error(status);
    if (status == GG_ERR_DEVICE_LOST)
        throw device_lost_error(status);
    throw error(status);
}

/** For the result of any function of gpuglue.h: throws unless it is GG_OK. */
inline void check(gg_status status)
{
    if (status != GG_OK)
        raise(status);
}

/** The same for functions that may return GG_NOT_READY: false then. */
inline bool check_ready(gg_status status)
{
    if (status == GG_NOT_READY)
        return false;
    check(status);
    return true;
}

/** A time limit that never expires. Negative limits are 0. */
constexpr std::chrono::nanoseconds forever = std::chrono::nanoseconds::max();

namespace detail
{
inline std::uint64_t timeout_of(std::chrono::nanoseconds limit) noexcept
{
    if (limit == forever)
        return GG_FOREVER;
    return limit.count() < 0 ? 0 : static_cast<std::uint64_t>(limit.count());
}

/** One reference to an object of gpuglue.h. */
template <class T, void (*Retain)(T *), void (*Release)(T *)> class owner
{
  public:
    owner() noexcept = default;
    explicit owner(T *taken) noexcept : object_(taken) {}
    owner(owner &&other) noexcept : object_(other.detach()) {}
    owner &operator=(owner &&other) noexcept
    {
        if (this != &other)
            reset(other.detach());
        return *this;
    }
    owner(const owner &) = delete;
    owner &operator=(const owner &) = delete;
    ~owner() { reset(); }

    T *get() const noexcept { return object_; }
    explicit operator bool() const noexcept { return object_ != nullptr; }
    /** Give the reference to the caller. */
    T *detach() noexcept { return std::exchange(object_, nullptr); }
    /** Release, and take the reference @p taken. */
    void reset(T *taken = nullptr) noexcept
    {
        if (T *old = std::exchange(object_, taken))
            Release(old);
    }

  protected:
    T *another() const noexcept
    {
        if (object_)
            Retain(object_);
        return object_;
    }

  private:
    T *object_ = nullptr;
};

inline void no_release(void *) noexcept {}
} // namespace detail

} // namespace gg

#endif
