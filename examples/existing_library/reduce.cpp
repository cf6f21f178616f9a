/* reduce.cpp: the same sum in C++, for gpuglue's host backend, whose device memory is host memory.
 * It adds in the same order as the CUDA version: 32 lanes in parallel, then a tree over the lanes. */
#include "reduce.h"

namespace
{

constexpr std::size_t lanes = 32;

template <typename T> T warp_sum(T (&value)[lanes])
{
    for (std::size_t distance = lanes / 2; distance; distance /= 2)
        for (std::size_t lane = 0; lane < distance; lane++)
            value[lane] += value[lane + distance];
    return value[0];
}

} // namespace

namespace reduce
{

template <typename T> T sum(const T *values, std::size_t count)
{
    T of_lane[lanes] = {};
    for (std::size_t i = 0; i < count; i++)
        of_lane[i % lanes] += values[i];
    return warp_sum(of_lane);
}

template float sum<float>(const float *, std::size_t);
template double sum<double>(const double *, std::size_t);

} // namespace reduce
