/* reduce.h: a library as its users have it: C++, templated, older than any thought of Python.
 *
 * Sums numbers that lie on the device. reduce.cu is the CUDA build of it, reduce.cpp the plain one. */
#ifndef REDUCE_H
#define REDUCE_H

#include <cstddef>

namespace reduce
{

/* The sum of @p count numbers at the device address @p values. Throws std::runtime_error. */
template <typename T> T sum(const T *values, std::size_t count);

} // namespace reduce

#endif
