// The Walsh-Hadamard transform of rows, in cache-sized steps, with the innermost bits in registers.
#pragma once

#include "kernels.hpp"
#include "vectors.hpp"

namespace maxcut {
namespace {

constexpr unsigned log2_of(std::size_t value) { return value > 1 ? 1 + log2_of(value / 2) : 0; }

constexpr std::size_t vectors_per_group = group_size / lanes;
constexpr unsigned leaf_log = least_bits - log2_of(lanes);
constexpr std::size_t leaf_vectors = std::size_t{1} << leaf_log;
constexpr std::size_t leaf_doubles = std::size_t{2} << least_bits;

// Transforms `bits` index bits whose lowest has the distance `stride`, for `width` doubles beside each other.
template <unsigned bits>
void pass(double* base, std::size_t stride, std::size_t width) {
    constexpr std::size_t count = std::size_t{1} << bits;
    for (std::size_t at = 0; at < width; at += lanes) {
        Vector x[count];
#pragma GCC unroll 16
        for (std::size_t index = 0; index < count; ++index) x[index] = load(base + at + index * stride);
        butterflies<bits>(x);
#pragma GCC unroll 16
        for (std::size_t index = 0; index < count; ++index) store(base + at + index * stride, x[index]);
    }
}

void pass(unsigned bits, double* base, std::size_t stride, std::size_t width) {
    switch (bits) {
        case 1:
            return pass<1>(base, stride, width);
        case 2:
            return pass<2>(base, stride, width);
        case 3:
            return pass<3>(base, stride, width);
        default:
            return pass<4>(base, stride, width);
    }
}

// How many of `bits` the next pass takes, so that all passes are about equally wide.
unsigned next_pass(unsigned bits) {
    const unsigned passes = (bits + widest_pass - 1) / widest_pass;
    return (bits + passes - 1) / passes;
}

// 64 amplitudes in registers.
struct Leaf {
    Vector real[leaf_vectors], imaginary[leaf_vectors];

    MAXCUT_INLINE void load_from(const double* from) {
#pragma GCC unroll 32
        for (std::size_t index = 0; index < leaf_vectors; ++index) {
            real[index] = load(from + place(index));
            imaginary[index] = load(from + place(index) + group_size);
        }
    }
    MAXCUT_INLINE void store_to(double* to) const {
#pragma GCC unroll 32
        for (std::size_t index = 0; index < leaf_vectors; ++index) {
            store(to + place(index), real[index]);
            store(to + place(index) + group_size, imaginary[index]);
        }
    }
    MAXCUT_INLINE void transform() {
        transform(real);
        transform(imaginary);
    }
    static constexpr std::size_t place(std::size_t index) {
        return index / vectors_per_group * group_doubles + index % vectors_per_group * lanes;
    }

private:
    MAXCUT_INLINE static void transform(Vector (&x)[leaf_vectors]) {
        butterflies<leaf_log>(x);
#pragma GCC unroll 32
        for (std::size_t index = 0; index < leaf_vectors; ++index) x[index] = butterflies_within(x[index]);
    }
};

// A row's amplitudes go back to the cut basis from the outside in, `leaf(offset, first amplitude)` does the innermost
// bits and the cost, and the way out leads to the mixer basis again.
template <bool inward, bool outward, std::size_t count, typename Innermost>
void row_pass(double* const (&states)[count], unsigned bits, std::size_t amplitude, const Innermost& leaf) {
    if (bits == least_bits) return leaf(amplitude);
    const unsigned outer = next_pass(bits - least_bits), inner = bits - outer;
    const std::size_t stride = std::size_t{2} << inner;
    if (inward)
        for (double* state : states) pass(outer, state + 2 * amplitude, stride, stride);
    for (std::size_t part = 0; part < (std::size_t{1} << outer); ++part)
        row_pass<inward, outward>(states, inner, amplitude + (part << inner), leaf);
    if (outward)
        for (double* state : states) pass(outer, state + 2 * amplitude, stride, stride);
}

}  // namespace
}  // namespace maxcut
