/* cooperative_groups.h: groups of threads on the host, as the CUDA C++ Programming Guide has them ("Cooperative Groups"):
 * blocks, tiles of a warp, lanes that run together. A grid cannot synchronize: the backend has no cooperative launches. */
#ifndef GPUGLUE_COOPERATIVE_GROUPS_H
#define GPUGLUE_COOPERATIVE_GROUPS_H

namespace cooperative_groups
{
class thread_block
{
  public:
    static void sync() { __syncthreads(); }
    static unsigned thread_rank() { return gg_host::thread_rank(); }
    static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned size() { return num_threads(); }
    static dim3 group_index() { return blockIdx; }
    static dim3 thread_index() { return threadIdx; }
    static dim3 dim_threads() { return blockDim; }
    static dim3 group_dim() { return blockDim; }
};
inline thread_block this_thread_block()
{
    return {};
}

class grid_group
{
  public:
    static bool is_valid() { return false; }
    template <bool never = false> static void sync()
    {
        static_assert(never, "a grid cannot synchronize on host, which has no cooperative "
                             "launches: use two kernels");
    }
    static unsigned long long num_blocks() { return 1ull * gridDim.x * gridDim.y * gridDim.z; }
    static unsigned long long num_threads() { return num_blocks() * thread_block::size(); }
    static unsigned long long size() { return num_threads(); }
    static unsigned long long block_rank()
    {
        return blockIdx.x + 1ull * gridDim.x * (blockIdx.y + 1ull * gridDim.y * blockIdx.z);
    }
    static unsigned long long thread_rank()
    {
        return block_rank() * thread_block::size() + thread_block::thread_rank();
    }
    static dim3 block_index() { return blockIdx; }
    static dim3 dim_blocks() { return gridDim; }
    static dim3 group_dim() { return gridDim; }
};
inline grid_group this_grid()
{
    return {};
}

inline unsigned gg_rank_in(unsigned mask)
{
    return static_cast<unsigned>(__popc(mask & ((1u << gg_host::lane()) - 1)));
}

/* Lanes of a warp; a lane's rank is the number of those before it. */
class gg_lanes
{
  protected:
    unsigned mask, meta_rank = 0, meta_size = 1;
    explicit gg_lanes(unsigned mask) : mask(mask) {}
    unsigned ranks(unsigned lanes) const
    {
        unsigned result = 0, rank = 0;
        for (unsigned rest = mask; rest; rest &= rest - 1, rank++)
            result |= (lanes & rest & -rest) ? 1u << rank : 0;
        return result;
    }
    int lane_of(unsigned rank) const
    {
        unsigned rest = mask;
        while (rank--)
            rest &= rest - 1;
        return __ffs(static_cast<int>(rest)) - 1;
    }
    template <class T> T from(T value, unsigned rank) const
    {
        return gg_host::shuffled<gg_host::index>(mask, value, static_cast<unsigned>(lane_of(rank)),
                                                 32);
    }

  public:
    void sync() const { __syncwarp(mask); }
    unsigned num_threads() const { return static_cast<unsigned>(__popc(mask)); }
    unsigned size() const { return num_threads(); }
    unsigned thread_rank() const { return gg_rank_in(mask); }
    unsigned meta_group_rank() const { return meta_rank; }
    unsigned meta_group_size() const { return meta_size; }

    template <class T> T shfl(T value, int rank) const
    {
        return from(value, static_cast<unsigned>(rank) % size());
    }
    template <class T> T shfl_up(T value, unsigned by) const
    {
        const unsigned rank = thread_rank();
        return from(value, by > rank ? rank : rank - by);
    }
    template <class T> T shfl_down(T value, unsigned by) const
    {
        const unsigned rank = thread_rank();
        return from(value, by < size() - rank ? rank + by : rank);
    }
    int any(int mine) const { return __any_sync(mask, mine); }
    int all(int mine) const { return __all_sync(mask, mine); }
    unsigned ballot(int mine) const { return ranks(__ballot_sync(mask, mine)); }
    template <class T> unsigned match_any(T value) const
    {
        return ranks(__match_any_sync(mask, value));
    }
    template <class T> unsigned match_all(T value, int &all) const
    {
        return ranks(__match_all_sync(mask, value, &all));
    }
    friend class thread_group;
};

template <unsigned count, class parent = void> class thread_block_tile : public gg_lanes
{
    static_assert(count >= 1 && count <= 32 && !(count & (count - 1)),
                  "the size of a tile must be 1, 2, 4, 8, 16 or 32");

  public:
    /* Of a parent with that rank of the thread and that many threads. */
    thread_block_tile(unsigned rank, unsigned threads)
        : gg_lanes((count == 32 ? ~0u : (1u << count % 32) - 1) << gg_host::lane() / count * count)
    {
        meta_rank = rank / count;
        meta_size = (threads + count - 1) / count;
    }
    template <class other>
    thread_block_tile(const thread_block_tile<count, other> &tile) : gg_lanes(tile)
    {
    }
    static constexpr unsigned num_threads() { return count; }
    static constexpr unsigned size() { return count; }
    template <class T> T shfl_xor(T value, int by) const
    {
        return gg_host::shuffled<gg_host::flip>(mask, value, static_cast<unsigned>(by), count);
    }
};
template <unsigned count, class parent>
inline thread_block_tile<count, parent> tiled_partition(const parent &group)
{
    return {group.thread_rank(), group.size()};
}

/* The lanes that come to this call before all threads of the block wait for something. */
class coalesced_group : public gg_lanes
{
  public:
    explicit coalesced_group(unsigned mask) : gg_lanes(mask) {}
};
__attribute__((noinline)) static coalesced_group coalesced_threads()
{
    return coalesced_group(gg_host::active(__builtin_return_address(0)));
}

/* Any of them. */
class thread_group
{
    unsigned mask = 0; /* 0: a block */

  public:
    thread_group(const thread_block &) {}
    thread_group(const gg_lanes &lanes) : mask(lanes.mask) {}
    void sync() const { mask ? __syncwarp(mask) : __syncthreads(); }
    unsigned size() const
    {
        return mask ? static_cast<unsigned>(__popc(mask)) : thread_block::size();
    }
    unsigned num_threads() const { return size(); }
    unsigned thread_rank() const { return mask ? gg_rank_in(mask) : thread_block::thread_rank(); }
};

template <class group> inline void sync(const group &threads)
{
    threads.sync();
}
} // namespace cooperative_groups

#endif
