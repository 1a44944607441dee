// The passes that apply the mixer: see kernels.hpp.
#pragma once

#include "diagonals.hpp"
#include "transforms.hpp"

namespace maxcut {
namespace {

// Columns: as row_pass, with rows as the index. `leaf(first row)` does the innermost `leaf_bits` bits.
template <bool inward, bool outward, std::size_t count, typename Innermost>
void column_pass(const Shape& shape, double* const (&states)[count], std::size_t written, unsigned bits,
                 unsigned leaf_bits, std::size_t row, const Innermost& leaf) {
    if (bits == leaf_bits) return leaf(row);
    const unsigned outer = next_pass(bits - leaf_bits), inner = bits - outer;
    const std::size_t stride = shape.pitch << inner;
    const auto through = [&](double* state) {
        for (std::size_t part = 0; part < (std::size_t{1} << inner); ++part)
            pass(outer, state + (row + part) * shape.pitch, stride, shape.tile_doubles);
    };
    if (inward)
        for (double* state : states) through(state);
    for (std::size_t part = 0; part < (std::size_t{1} << outer); ++part)
        column_pass<inward, outward>(shape, states, written, inner, leaf_bits, row + (part << inner), leaf);
    if (outward)
        for (std::size_t index = written; index < count; ++index) through(states[index]);
}

// One group of 2^bits rows in registers.
template <unsigned bits>
struct Columns {
    static constexpr std::size_t count = std::size_t{1} << bits;
    Vector real[count], imaginary[count];

    MAXCUT_INLINE void load_from(const double* from, std::size_t pitch) {
#pragma GCC unroll 8
        for (std::size_t row = 0; row < count; ++row) {
            real[row] = load(from + row * pitch);
            imaginary[row] = load(from + row * pitch + group_size);
        }
    }
    MAXCUT_INLINE void store_to(double* to, std::size_t pitch) const {
#pragma GCC unroll 8
        for (std::size_t row = 0; row < count; ++row) {
            store(to + row * pitch, real[row]);
            store(to + row * pitch + group_size, imaginary[row]);
        }
    }
    MAXCUT_INLINE void transform() {
        butterflies<bits>(real);
        butterflies<bits>(imaginary);
    }
};

template <unsigned leaf_bits>
void mixer_forward_on(const Shape& shape, const MixerPhases& phases, double* state, Range tiles) {
    constexpr std::size_t count = Columns<leaf_bits>::count;
    for (std::size_t tile = tiles.begin; tile < tiles.end; ++tile) {
        double* const states[] = {state + tile * shape.tile_doubles};
        column_pass<true, true>(shape, states, 0, shape.high_bits, leaf_bits, 0, [&](std::size_t row) {
            for (std::size_t at = 0; at < shape.tile_doubles; at += group_doubles) {
                const std::size_t group = (tile * shape.tile_doubles + at) / group_doubles;
                const unsigned set = __builtin_popcountll(row) + __builtin_popcountll(group);
                for (std::size_t part = 0; part < group_size; part += lanes) {
                    double* const place = states[0] + row * shape.pitch + at + part;
                    Columns<leaf_bits> columns;
                    columns.load_from(place, shape.pitch);
                    columns.transform();
#pragma GCC unroll 8
                    for (std::size_t index = 0; index < count; ++index) {
                        const std::size_t entry = (set + __builtin_popcountll(index)) * group_size + part;
                        rotate(columns.real[index], columns.imaginary[index], load_unaligned(phases.cosines + entry),
                               load_unaligned(phases.sines + entry));
                    }
                    columns.transform();
                    columns.store_to(place, shape.pitch);
                }
            }
        });
    }
}

template <unsigned leaf_bits, bool last>
void mixer_back_on(const Shape& shape, const MixerPhases& phases, double* state, double* adjoint, double* sums,
                   Range tiles) {
    constexpr std::size_t count = Columns<leaf_bits>::count;
    for (std::size_t tile = tiles.begin; tile < tiles.end; ++tile) {
        double* const states[] = {state + tile * shape.tile_doubles, adjoint + tile * shape.tile_doubles};
        Vector sum = {};
        column_pass<true, true>(shape, states, last ? 1 : 0, shape.high_bits, leaf_bits, 0, [&](std::size_t row) {
            for (std::size_t at = 0; at < shape.tile_doubles; at += group_doubles) {
                const std::size_t group = (tile * shape.tile_doubles + at) / group_doubles;
                const unsigned set = __builtin_popcountll(row) + __builtin_popcountll(group);
                for (std::size_t part = 0; part < group_size; part += lanes) {
                    const std::size_t place = row * shape.pitch + at + part;
                    Columns<leaf_bits> columns, adjoints;
                    columns.load_from(states[0] + place, shape.pitch);
                    columns.transform();
                    adjoints.load_from(states[1] + place, shape.pitch);
                    adjoints.transform();
#pragma GCC unroll 8
                    for (std::size_t index = 0; index < count; ++index) {
                        const std::size_t entry = (set + __builtin_popcountll(index)) * group_size + part;
                        const Vector cosine = load_unaligned(phases.cosines + entry),
                                     sine = -load_unaligned(phases.sines + entry);
                        sum += load_unaligned(phases.eigenvalues + entry) *
                               (adjoints.real[index] * columns.imaginary[index] -
                                adjoints.imaginary[index] * columns.real[index]);
                        rotate(adjoints.real[index], adjoints.imaginary[index], cosine, sine);
                        if (!last) rotate(columns.real[index], columns.imaginary[index], cosine, sine);
                    }
                    adjoints.transform();
                    adjoints.store_to(states[1] + place, shape.pitch);
                    if (!last) {
                        columns.transform();
                        columns.store_to(states[0] + place, shape.pitch);
                    }
                }
            }
        });
        sums[tile] = sum_of(sum);
    }
}

template <unsigned leaf_bits>
void mixer_back_on(const Shape& shape, const MixerPhases& phases, double* state, double* adjoint, bool last,
                   double* sums, Range tiles) {
    if (last) return mixer_back_on<leaf_bits, true>(shape, phases, state, adjoint, sums, tiles);
    return mixer_back_on<leaf_bits, false>(shape, phases, state, adjoint, sums, tiles);
}

void mixer_forward(const Shape& shape, const MixerPhases& phases, double* state, Range tiles) {
    switch (shape.high_bits) {
        case 0:
            return mixer_forward_on<0>(shape, phases, state, tiles);
        case 1:
            return mixer_forward_on<1>(shape, phases, state, tiles);
        case 2:
            return mixer_forward_on<2>(shape, phases, state, tiles);
        default:
            return mixer_forward_on<3>(shape, phases, state, tiles);
    }
}

void mixer_back(const Shape& shape, const MixerPhases& phases, double* state, double* adjoint, bool last, double* sums,
                Range tiles) {
    switch (shape.high_bits) {
        case 0:
            return mixer_back_on<0>(shape, phases, state, adjoint, last, sums, tiles);
        case 1:
            return mixer_back_on<1>(shape, phases, state, adjoint, last, sums, tiles);
        case 2:
            return mixer_back_on<2>(shape, phases, state, adjoint, last, sums, tiles);
        default:
            return mixer_back_on<3>(shape, phases, state, adjoint, last, sums, tiles);
    }
}

}  // namespace
}  // namespace maxcut
