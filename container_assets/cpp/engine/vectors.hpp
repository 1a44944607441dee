// Short vectors of doubles and the Walsh-Hadamard butterflies on them, for whatever instruction set is compiled for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels.hpp"

namespace maxcut {

#if defined(__AVX512F__)
inline constexpr std::size_t lanes = 8;
inline constexpr unsigned widest_pass = 4;
#elif defined(__AVX__)
inline constexpr std::size_t lanes = 4;
inline constexpr unsigned widest_pass = 3;
#else
inline constexpr std::size_t lanes = 2;
inline constexpr unsigned widest_pass = 3;
#endif

// Internal linkage: this header is compiled once for each instruction set, and the copies must not be merged.
namespace {

typedef double Vector __attribute__((vector_size(8 * lanes), aligned(8 * lanes)));
typedef double UnalignedVector __attribute__((vector_size(8 * lanes), aligned(8)));
typedef std::int64_t Integers __attribute__((vector_size(8 * lanes)));

MAXCUT_INLINE Vector load(const double* from) { return *reinterpret_cast<const Vector*>(from); }
MAXCUT_INLINE Vector load_unaligned(const double* from) { return *reinterpret_cast<const UnalignedVector*>(from); }
MAXCUT_INLINE void store(double* to, Vector value) { *reinterpret_cast<Vector*>(to) = value; }

MAXCUT_INLINE double sum_of(Vector value) {
    double total = 0;
    for (std::size_t lane = 0; lane < lanes; ++lane) total += value[lane];
    return total;
}

// Adds and subtracts the pairs of all `bits` index bits of 2^bits vectors.
template <unsigned bits>
MAXCUT_INLINE void butterflies(Vector (&x)[std::size_t{1} << bits]) {
#pragma GCC unroll 8
    for (unsigned bit = 0; bit < bits; ++bit) {
#pragma GCC unroll 64
        for (std::size_t index = 0; index < (std::size_t{1} << bits); ++index) {
            const std::size_t partner = index | (std::size_t{1} << bit);
            if (partner == index) continue;
            const Vector first = x[index], second = x[partner];
            x[index] = first + second;
            x[partner] = first - second;
        }
    }
}

template <std::size_t distance, std::size_t... lane>
MAXCUT_INLINE Vector exchange(Vector value, std::index_sequence<lane...>) {
    const Vector partner = __builtin_shufflevector(value, value, (lane ^ distance)...);
    const Vector sign = {((lane & distance) ? -1.0 : 1.0)...};
    return partner + sign * value;
}

// Adds and subtracts the pairs of all index bits that lie within one vector.
MAXCUT_INLINE Vector butterflies_within(Vector value) {
    constexpr auto all = std::make_index_sequence<lanes>{};
    value = exchange<1>(value, all);
    if constexpr (lanes > 2) value = exchange<2>(value, all);
    if constexpr (lanes > 4) value = exchange<4>(value, all);
    return value;
}

}  // namespace
}  // namespace maxcut
