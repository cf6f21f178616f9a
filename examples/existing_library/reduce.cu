/* reduce.cu: the sum on a CUDA device. Each warp adds by shuffles, the first warp of each block adds the sums of the
 * warps, and the blocks add their sums by an atomic addition. */
#include "reduce.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace
{

constexpr int threads_per_block = 256;
constexpr int lanes = 32;
constexpr std::size_t most_blocks = 1024;

void check(cudaError_t code, const char *what)
{
    if (code != cudaSuccess)
        throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(code));
}

/* The sum over the warp; valid in lane 0 only. */
template <typename T> __device__ T warp_sum(T value)
{
    for (int distance = lanes / 2; distance; distance /= 2)
        value += __shfl_down_sync(0xffffffffu, value, distance);
    return value;
}

template <typename T> __global__ void add_up(const T *values, std::size_t count, T *total)
{
    __shared__ T of_warp[threads_per_block / lanes];
    const std::size_t step = std::size_t(gridDim.x) * blockDim.x;
    const unsigned lane = threadIdx.x % lanes, warp = threadIdx.x / lanes;
    T mine = 0;
    for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
        mine += values[i];
    mine = warp_sum(mine);
    if (lane == 0)
        of_warp[warp] = mine;
    __syncthreads();
    if (warp != 0)
        return;
    mine = warp_sum(lane < threads_per_block / lanes ? of_warp[lane] : T(0));
    if (lane == 0)
        atomicAdd(total, mine);
}

/* One number on the device. */
template <typename T> struct device_number {
    T *address = nullptr;
    device_number()
    {
        check(cudaMalloc(&address, sizeof(T)), "cudaMalloc");
    }
    ~device_number()
    {
        cudaFree(address);
    }
};

} // namespace

namespace reduce
{

template <typename T> T sum(const T *values, std::size_t count)
{
    const std::size_t wanted = (count + threads_per_block - 1) / threads_per_block;
    const unsigned blocks = unsigned(std::clamp<std::size_t>(wanted, 1, most_blocks));
    device_number<T> total;
    T result = 0;
    check(cudaMemset(total.address, 0, sizeof(T)), "cudaMemset");
    add_up<<<blocks, threads_per_block>>>(values, count, total.address);
    check(cudaGetLastError(), "launch");
    check(cudaMemcpy(&result, total.address, sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return result;
}

template float sum<float>(const float *, std::size_t);
template double sum<double>(const double *, std::size_t);

} // namespace reduce
