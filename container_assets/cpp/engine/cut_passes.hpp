// The passes that apply the cost: see kernels.hpp.
#pragma once

#include "diagonals.hpp"
#include "transforms.hpp"

namespace maxcut {
namespace {

template <typename Stored>
struct CutPasses {
    static void start(const Shape& shape, const CutValues& values, const CutPhases& phases, double amplitude,
                      double* state, Range rows) {
        const Cuts<Stored> cuts(values, phases);
        for (std::size_t row = rows.begin; row < rows.end; ++row) {
            double* const states[] = {state + row * shape.pitch};
            const std::size_t first = row << shape.low_bits;
            row_pass<false, true>(states, shape.low_bits, 0, [&](std::size_t at) {
                Leaf leaf;
#pragma GCC unroll 32
                for (std::size_t index = 0; index < leaf_vectors; ++index) {
                    Vector cosine, sine;
                    cuts.phases(first + at + index * lanes, cosine, sine);
                    leaf.real[index] = cosine * amplitude;
                    leaf.imaginary[index] = sine * amplitude;
                }
                leaf.transform();
                leaf.store_to(states[0] + 2 * at);
            });
        }
    }

    static void forward(const Shape& shape, const CutValues& values, const CutPhases& phases, double* state,
                        Range rows) {
        const Cuts<Stored> cuts(values, phases);
        for (std::size_t row = rows.begin; row < rows.end; ++row) {
            double* const states[] = {state + row * shape.pitch};
            const std::size_t first = row << shape.low_bits;
            row_pass<true, true>(states, shape.low_bits, 0, [&](std::size_t at) {
                Leaf leaf;
                leaf.load_from(states[0] + 2 * at);
                leaf.transform();
#pragma GCC unroll 32
                for (std::size_t index = 0; index < leaf_vectors; ++index) {
                    Vector cosine, sine;
                    cuts.phases(first + at + index * lanes, cosine, sine);
                    rotate(leaf.real[index], leaf.imaginary[index], cosine, sine);
                }
                leaf.transform();
                leaf.store_to(states[0] + 2 * at);
            });
        }
    }

    static void turn(const Shape& shape, const CutValues& values, const double* state, double* adjoint, double* scratch,
                     double* sums, Range rows) {
        const Cuts<Stored> cuts(values, {});
        for (std::size_t row = rows.begin; row < rows.end; ++row) {
            double* const states[] = {scratch};
            double* const adjoints[] = {adjoint + row * shape.pitch};
            const std::size_t first = row << shape.low_bits;
            std::memcpy(scratch, state + row * shape.pitch, shape.row_doubles() * sizeof(double));
            Vector sum = {};
            row_pass<true, false>(states, shape.low_bits, 0, [&](std::size_t at) {
                Leaf leaf;
                leaf.load_from(scratch + 2 * at);
                leaf.transform();
#pragma GCC unroll 32
                for (std::size_t index = 0; index < leaf_vectors; ++index) {
                    const Vector cut = cuts.values(first + at + index * lanes);
                    Vector &real = leaf.real[index], &imaginary = leaf.imaginary[index];
                    sum += cut * (real * real + imaginary * imaginary);
                    real *= -cut;
                    imaginary *= -cut;
                }
                leaf.transform();
                leaf.store_to(adjoints[0] + 2 * at);
            });
            row_pass<false, true>(adjoints, shape.low_bits, 0, [](std::size_t) {});
            sums[row] = sum_of(sum);
        }
    }

    static void expectation(const Shape& shape, const CutValues& values, const double* state, double* scratch,
                            double* sums, Range rows) {
        const Cuts<Stored> cuts(values, {});
        for (std::size_t row = rows.begin; row < rows.end; ++row) {
            double* const states[] = {scratch};
            const std::size_t first = row << shape.low_bits;
            std::memcpy(scratch, state + row * shape.pitch, shape.row_doubles() * sizeof(double));
            Vector sum = {};
            row_pass<true, false>(states, shape.low_bits, 0, [&](std::size_t at) {
                Leaf leaf;
                leaf.load_from(scratch + 2 * at);
                leaf.transform();
#pragma GCC unroll 32
                for (std::size_t index = 0; index < leaf_vectors; ++index)
                    sum += cuts.values(first + at + index * lanes) *
                           (leaf.real[index] * leaf.real[index] + leaf.imaginary[index] * leaf.imaginary[index]);
            });
            sums[row] = sum_of(sum);
        }
    }

    static void back(const Shape& shape, const CutValues& values, const CutPhases& phases, double* state,
                     double* adjoint, double* sums, Range rows) {
        const Cuts<Stored> cuts(values, phases);
        for (std::size_t row = rows.begin; row < rows.end; ++row) {
            double* const states[] = {state + row * shape.pitch, adjoint + row * shape.pitch};
            const std::size_t first = row << shape.low_bits;
            Vector sum = {};
            row_pass<true, true>(states, shape.low_bits, 0, [&](std::size_t at) {
                alignas(64) double held[leaf_doubles];
                Leaf leaf;
                leaf.load_from(states[0] + 2 * at);
                leaf.transform();
                leaf.store_to(held);
                leaf.load_from(states[1] + 2 * at);
                leaf.transform();
#pragma GCC unroll 32
                for (std::size_t index = 0; index < leaf_vectors; ++index) {
                    double* const place = held + Leaf::place(index);
                    Vector real = load(place), imaginary = load(place + group_size), cosine, sine;
                    Vector &adjoint_real = leaf.real[index], &adjoint_imaginary = leaf.imaginary[index];
                    sum +=
                        cuts.values(first + at + index * lanes) * (adjoint_real * imaginary - adjoint_imaginary * real);
                    cuts.phases(first + at + index * lanes, cosine, sine);
                    rotate(real, imaginary, cosine, -sine);
                    rotate(adjoint_real, adjoint_imaginary, cosine, -sine);
                    store(place, real);
                    store(place + group_size, imaginary);
                }
                leaf.transform();
                leaf.store_to(states[1] + 2 * at);
                leaf.load_from(held);
                leaf.transform();
                leaf.store_to(states[0] + 2 * at);
            });
            sums[row] = sum_of(sum);
        }
    }

    static void end(const Shape& shape, const CutValues& values, const CutPhases& phases, double amplitude,
                    double* adjoint, double* sums, Range rows) {
        const Cuts<Stored> cuts(values, phases);
        for (std::size_t row = rows.begin; row < rows.end; ++row) {
            double* const states[] = {adjoint + row * shape.pitch};
            const std::size_t first = row << shape.low_bits;
            Vector sum = {};
            row_pass<true, false>(states, shape.low_bits, 0, [&](std::size_t at) {
                Leaf leaf;
                leaf.load_from(states[0] + 2 * at);
                leaf.transform();
#pragma GCC unroll 32
                for (std::size_t index = 0; index < leaf_vectors; ++index) {
                    Vector cosine, sine;
                    cuts.phases(first + at + index * lanes, cosine, sine);
                    sum += cuts.values(first + at + index * lanes) *
                           (leaf.real[index] * sine - leaf.imaginary[index] * cosine);
                }
            });
            sums[row] = sum_of(sum) * amplitude;
        }
    }
};

void probabilities(const Shape& shape, const double* state, double* scratch, std::size_t row, double* out) {
    double* const states[] = {scratch};
    std::memcpy(scratch, state + row * shape.pitch, shape.row_doubles() * sizeof(double));
    row_pass<true, false>(states, shape.low_bits, 0, [&](std::size_t at) {
        Leaf leaf;
        leaf.load_from(scratch + 2 * at);
        leaf.transform();
        for (std::size_t index = 0; index < leaf_vectors; ++index)
            store(out + at + index * lanes,
                  leaf.real[index] * leaf.real[index] + leaf.imaginary[index] * leaf.imaginary[index]);
    });
}

}  // namespace
}  // namespace maxcut
