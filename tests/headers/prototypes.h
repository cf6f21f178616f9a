// prototypes.h: checks that a vendor's function can be called through gpuglue's function pointer.
// Both need the same number of parameters, of the same class and size. Pointers and 64-bit integers
// are of one class.
#ifndef GPUGLUE_TESTS_PROTOTYPES_H
#define GPUGLUE_TESTS_PROTOTYPES_H

#include <cstddef>
#include <type_traits>

template <typename T> constexpr int class_of()
{
    if (std::is_floating_point<T>::value)
        return -static_cast<int>(sizeof(T));
    // A struct that is too large for registers is passed the same way whatever its type, and so is one of bytes.
    if (std::is_class<T>::value)
        return 1000 * static_cast<int>(sizeof(T)) + static_cast<int>(alignof(T));
    static_assert(std::is_pointer<T>::value || std::is_integral<T>::value || std::is_enum<T>::value ||
                      (std::is_class<T>::value && std::is_trivially_copyable<T>::value &&
                       (sizeof(T) > 32 || alignof(T) == 1)),
                  "only large handles and UUIDs are passed by value in these lists");
    return static_cast<int>(sizeof(T)); // 8 for a pointer and for a 64-bit integer
}

template <typename Own, typename Vendor> struct same_shape : std::false_type {
};
template <typename R, typename S, typename... A, typename... B>
struct same_shape<R (*)(A...), S (*)(B...)> {
    static constexpr bool compare()
    {
        if constexpr (sizeof...(A) == sizeof...(B))
            return class_of<R>() == class_of<S>() && ((class_of<A>() == class_of<B>()) && ...);
        else
            return false;
    }
    static constexpr bool value = compare();
};

// The type of a function that these headers are too old to have.
struct not_yet {
};
template <typename Own> struct same_shape<Own, const not_yet *> : std::true_type {
};

#endif
