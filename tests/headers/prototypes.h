// prototypes.h: whether a function pointer of ours may be called in place of a vendor's function: as many
// parameters, each of the same class and size, once pointers and 64-bit integers are one thing.
#ifndef GPUGLUE_TESTS_PROTOTYPES_H
#define GPUGLUE_TESTS_PROTOTYPES_H

#include <cstddef>
#include <type_traits>

template <typename T> constexpr int class_of()
{
    if (std::is_floating_point<T>::value)
        return -static_cast<int>(sizeof(T));
    // Bytes by value go the same way whatever they are called where they are too many for registers.
    if (std::is_class<T>::value)
        return 1000 * static_cast<int>(sizeof(T)) + static_cast<int>(alignof(T));
    static_assert(
        std::is_pointer<T>::value || std::is_integral<T>::value || std::is_enum<T>::value ||
            (std::is_class<T>::value && std::is_trivially_copyable<T>::value && sizeof(T) > 32),
        "only handles of many bytes are passed by value in these lists");
    return static_cast<int>(sizeof(T)); // a pointer is 8, as a 64-bit integer is
}

template <typename Ours, typename Theirs> struct same_shape : std::false_type {
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

// Stands for a function that the headers at hand are too old to have.
struct not_yet {
};
template <typename Ours> struct same_shape<Ours, const not_yet *> : std::true_type {
};

#endif
