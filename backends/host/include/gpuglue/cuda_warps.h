/* cuda_warps.h: CUDA's functions on warps, for cuda_dialect.h. Their results are those of the CUDA C++ Programming Guide ("Warp
 * Vote Functions", "Warp Match Functions", "Warp Reduce Functions", "Warp Shuffle Functions"); what lies outside of a
 * segment is as the PTX ISA has it ("shfl.sync"). Where both leave a result undefined, since the lane that is read is not
 * in the mask or has ended, all its bits are 1: NaN, or -1. */
#ifndef GPUGLUE_CUDA_WARPS_H
#define GPUGLUE_CUDA_WARPS_H

static constexpr int warpSize = GG_HOST_WARP;

namespace gg_host
{
inline unsigned thread_rank()
{
    const gg_host_thread *self = current;
    return self->thread.x +
           self->block_dim.x * (self->thread.y + self->block_dim.y * self->thread.z);
}
inline unsigned lane()
{
    return thread_rank() % GG_HOST_WARP;
}

inline void together(unsigned mask, const gg_host_operation *operation, void *mine,
                     const void *site = nullptr)
{
    const gg_host_thread *self = current;
    self->warp(self, mask, operation, mine, site);
    current = self;
}

namespace
{
template <class Call> inline Call call(unsigned mask, Call mine)
{
    static constexpr gg_host_operation operation = {Call::name, Call::run};
    together(mask, &operation, &mine);
    return mine;
}

/* ---- shuffles ---- */

enum { index, up, down, flip };
constexpr const char *shuffles[] = {"__shfl_sync", "__shfl_up_sync", "__shfl_down_sync",
                                    "__shfl_xor_sync"};

template <class T, int mode> struct shuffle {
    T value;
    unsigned by;
    int width;
    alignas(T) unsigned char result[sizeof(T)];
    static constexpr const char *name = shuffles[mode];

    unsigned source(unsigned lane) const
    {
        const unsigned size = static_cast<unsigned>(width), begin = lane / size * size;
        if (mode == index)
            return begin + by % size;
        if (mode == up)
            return by > lane - begin ? lane : lane - by;
        if (mode == down)
            return by < begin + size - lane ? lane + by : lane;
        return ((lane ^ by) < begin + size) ? lane ^ by : lane;
    }
    static void run(void *const *lanes, std::uint32_t, char *failure, std::size_t size)
    {
        for (unsigned i = 0; i < GG_HOST_WARP; i++) {
            shuffle *mine = static_cast<shuffle *>(lanes[i]);
            if (!mine)
                continue;
            if (mine->width < 1 || mine->width > 32 || (mine->width & (mine->width - 1))) {
                std::snprintf(failure, size, "%s with a width of %d: expected 1, 2, 4, 8, 16 or 32",
                              name, mine->width);
                return;
            }
            const shuffle *other = static_cast<shuffle *>(lanes[mine->source(i)]);
            if (other)
                std::memcpy(mine->result, &other->value, sizeof(T));
            else
                std::memset(mine->result, 0xff, sizeof(T));
        }
    }
};

template <int mode, class T> inline T shuffled(unsigned mask, T value, unsigned by, int width)
{
    static_assert(std::is_trivially_copyable_v<T>, "a shuffle copies bytes");
    const auto done = call(mask, shuffle<T, mode>{value, by, width, {}});
    std::memcpy(static_cast<void *>(&value), done.result, sizeof(T));
    return value;
}

/* ---- votes ---- */

constexpr const char *votes[] = {"__ballot_sync", "__all_sync", "__any_sync"};
template <int which> struct vote {
    bool mine;
    unsigned yes, here;
    static constexpr const char *name = votes[which];

    static void run(void *const *lanes, std::uint32_t here, char *, std::size_t)
    {
        unsigned yes = 0;
        for (unsigned i = 0; i < GG_HOST_WARP; i++)
            if (lanes[i] && static_cast<vote *>(lanes[i])->mine)
                yes |= 1u << i;
        for (unsigned i = 0; i < GG_HOST_WARP; i++)
            if (lanes[i])
                *static_cast<vote *>(lanes[i]) = {false, yes, here};
    }
};

/* ---- matches ---- */

/* Of bits, also for floating-point numbers. */
template <bool all> struct match {
    std::uint64_t value;
    unsigned result;
    static constexpr const char *name = all ? "__match_all_sync" : "__match_any_sync";

    static void run(void *const *lanes, std::uint32_t here, char *, std::size_t)
    {
        for (unsigned i = 0; i < GG_HOST_WARP; i++) {
            match *mine = static_cast<match *>(lanes[i]);
            if (!mine)
                continue;
            unsigned same = 0;
            for (unsigned k = 0; k < GG_HOST_WARP; k++)
                if (lanes[k] && static_cast<match *>(lanes[k])->value == mine->value)
                    same |= 1u << k;
            mine->result = !all || same == here ? same : 0;
        }
    }
};

template <bool all, class T> inline unsigned matches(unsigned mask, T value)
{
    match<all> mine{};
    std::memcpy(&mine.value, &value, sizeof(T));
    return call(mask, mine).result;
}

/* ---- reductions ---- */

constexpr const char *reductions[] = {"__reduce_add_sync", "__reduce_min_sync",
                                      "__reduce_max_sync", "__reduce_and_sync",
                                      "__reduce_or_sync",  "__reduce_xor_sync"};
template <class T, int which> struct reduction {
    T value;
    static constexpr const char *name = reductions[which];

    static T of(T a, T b)
    {
        typedef unsigned bits; /* no overflow */
        const bits x = static_cast<bits>(a), y = static_cast<bits>(b);
        return which == 1   ? b < a ? b : a
               : which == 2 ? a < b ? b : a
                            : static_cast<T>(which == 0   ? x + y
                                             : which == 3 ? x & y
                                             : which == 4 ? x | y
                                                          : x ^ y);
    }
    static void run(void *const *lanes, std::uint32_t here, char *, std::size_t)
    {
        const unsigned first = static_cast<unsigned>(__builtin_ctz(here));
        T whole = static_cast<reduction *>(lanes[first])->value;
        for (unsigned i = first + 1; i < GG_HOST_WARP; i++)
            if (lanes[i])
                whole = of(whole, static_cast<reduction *>(lanes[i])->value);
        for (unsigned i = 0; i < GG_HOST_WARP; i++)
            if (lanes[i])
                static_cast<reduction *>(lanes[i])->value = whole;
    }
};

/* ---- lanes without a mask ---- */

struct only_wait {
    static constexpr const char *name = "__syncwarp";
    static constexpr decltype(gg_host_operation::run) run = nullptr;
};

/* The lanes that come to one place before all threads of the block wait for something. */
inline unsigned active(const void *site)
{
    typedef vote<0> present;
    static constexpr gg_host_operation operation = {"__activemask", present::run};
    present mine{};
    together(0, &operation, &mine, site);
    return mine.here;
}
} // namespace
} // namespace gg_host

#define GG_SHUFFLE(type, name, mode, by_type)                                                   \
    static inline type name(unsigned mask, type value, by_type by, int width = 32)              \
    {                                                                                           \
        return gg_host::shuffled<gg_host::mode>(mask, value, static_cast<unsigned>(by), width); \
    }
#define GG_SHUFFLES(type)                              \
    GG_SHUFFLE(type, __shfl_sync, index, int)          \
    GG_SHUFFLE(type, __shfl_up_sync, up, unsigned)     \
    GG_SHUFFLE(type, __shfl_down_sync, down, unsigned) \
    GG_SHUFFLE(type, __shfl_xor_sync, flip, int)
#define GG_WARP_TYPE(type)                                                       \
    GG_SHUFFLES(type)                                                            \
    static inline unsigned __match_any_sync(unsigned mask, type value)           \
    {                                                                            \
        return gg_host::matches<false>(mask, value);                             \
    }                                                                            \
    static inline unsigned __match_all_sync(unsigned mask, type value, int *all) \
    {                                                                            \
        const unsigned result = gg_host::matches<true>(mask, value);             \
        *all = result != 0;                                                      \
        return result;                                                           \
    }
GG_WARP_TYPE(int)
GG_WARP_TYPE(unsigned)
GG_WARP_TYPE(long)
GG_WARP_TYPE(unsigned long)
GG_WARP_TYPE(long long)
GG_WARP_TYPE(unsigned long long)
GG_WARP_TYPE(float)
GG_WARP_TYPE(double)
#undef GG_WARP_TYPE

static inline void __syncwarp(unsigned mask = 0xffffffff)
{
    gg_host::call(mask, gg_host::only_wait{});
}
static inline unsigned __ballot_sync(unsigned mask, int mine)
{
    return gg_host::call(mask, gg_host::vote<0>{mine != 0, 0, 0}).yes;
}
static inline int __all_sync(unsigned mask, int mine)
{
    const auto done = gg_host::call(mask, gg_host::vote<1>{mine != 0, 0, 0});
    return done.yes == done.here;
}
static inline int __any_sync(unsigned mask, int mine)
{
    return gg_host::call(mask, gg_host::vote<2>{mine != 0, 0, 0}).yes != 0;
}
__attribute__((noinline)) static unsigned __activemask()
{
    return gg_host::active(__builtin_return_address(0));
}

#define GG_REDUCE(type, name, which)                                              \
    static inline type name(unsigned mask, type value)                            \
    {                                                                             \
        return gg_host::call(mask, gg_host::reduction<type, which>{value}).value; \
    }
#define GG_REDUCE_BOTH(name, which)  \
    GG_REDUCE(unsigned, name, which) \
    GG_REDUCE(int, name, which)
GG_REDUCE_BOTH(__reduce_add_sync, 0)
GG_REDUCE_BOTH(__reduce_min_sync, 1)
GG_REDUCE_BOTH(__reduce_max_sync, 2)
GG_REDUCE(unsigned, __reduce_and_sync, 3)
GG_REDUCE(unsigned, __reduce_or_sync, 4)
GG_REDUCE(unsigned, __reduce_xor_sync, 5)
#undef GG_REDUCE
#undef GG_REDUCE_BOTH

#endif
