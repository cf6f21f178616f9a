/* reduce.h: a typical existing library: templated C++ without any Python.
 *
 * It sums numbers in device memory. reduce.cu is the CUDA version, reduce.cpp the C++ version. */
#ifndef REDUCE_H
#define REDUCE_H

#include <cstddef>

namespace reduce
{

/* The sum of @p count numbers at the device address @p values. Throws std::runtime_error. */
template <typename T> T sum(const T *values, std::size_t count);

} // namespace reduce

#endif
