// The two diagonal operators: the cost in the cut basis and the mixer in the mixer basis.
#pragma once

#include "kernels.hpp"
#include "vectors.hpp"

namespace maxcut {
namespace {

typedef double Pair __attribute__((vector_size(16), aligned(16)));
#define MAXCUT_JOIN2(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3)
#define MAXCUT_JOIN4(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7)

// Cosines and sines of `lanes` table entries. They stand in pairs, so one load brings both.
template <typename Index>
MAXCUT_INLINE void look_up(const double* table, const Index* at, Vector& cosine, Vector& sine) {
    const auto entry = [&](std::size_t lane) { return *reinterpret_cast<const Pair*>(table + 2 * at[lane]); };
#if defined(__AVX512F__)
    const Vector even = MAXCUT_JOIN4(MAXCUT_JOIN2(entry(0), entry(2)), MAXCUT_JOIN2(entry(4), entry(6)));
    const Vector odd = MAXCUT_JOIN4(MAXCUT_JOIN2(entry(1), entry(3)), MAXCUT_JOIN2(entry(5), entry(7)));
    cosine = __builtin_shufflevector(even, odd, 0, 8, 2, 10, 4, 12, 6, 14);
    sine = __builtin_shufflevector(even, odd, 1, 9, 3, 11, 5, 13, 7, 15);
#elif defined(__AVX__)
    const Vector even = MAXCUT_JOIN2(entry(0), entry(2)), odd = MAXCUT_JOIN2(entry(1), entry(3));
    cosine = __builtin_shufflevector(even, odd, 0, 4, 2, 6);
    sine = __builtin_shufflevector(even, odd, 1, 5, 3, 7);
#else
    cosine = __builtin_shufflevector(entry(0), entry(1), 0, 2);
    sine = __builtin_shufflevector(entry(0), entry(1), 1, 3);
#endif
}

// Polynomials of the Cephes library on [-pi/4, pi/4] after a reduction with pi/2 in three parts: an error of a few
// units in the last place for |x| < 2^20.
MAXCUT_INLINE void sine_and_cosine(Vector x, Vector& cosine, Vector& sine) {
    constexpr double to_integer = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves the integer in the low bits
    const Vector shifted = x * 0.63661977236758134308 + to_integer;
    const Integers quadrant = reinterpret_cast<Integers>(shifted);
    const Vector turns = shifted - to_integer;
    const Vector r = x - turns * 1.57079632673412561417e+00 - turns * 6.07710050630396597660e-11 -
                     turns * 2.02226624879595063154e-21;
    const Vector z = r * r;
    Vector s = z * 1.58962301576546568060e-10 - 2.50507477628578072866e-8;
    s = s * z + 2.75573136213857245213e-6;
    s = s * z - 1.98412698295895385996e-4;
    s = s * z + 8.33333333332211858878e-3;
    s = s * z - 1.66666666666666307295e-1;
    s = r + r * z * s;
    Vector c = z * -1.13585365213876817300e-11 + 2.08757008419747316778e-9;
    c = c * z - 2.75573141792967388112e-7;
    c = c * z + 2.48015872888517045348e-5;
    c = c * z - 1.38888888888730564116e-3;
    c = c * z + 4.16666666666665929218e-2;
    c = 1.0 - z * 0.5 + z * z * c;
    const Integers swapped = (quadrant & 1) != 0;
    const Integers sine_sign = (quadrant & 2) << 62, cosine_sign = ((quadrant + 1) & 2) << 62;
    sine = reinterpret_cast<Vector>(reinterpret_cast<Integers>(swapped ? c : s) ^ sine_sign);
    cosine = reinterpret_cast<Vector>(reinterpret_cast<Integers>(swapped ? s : c) ^ cosine_sign);
}

// The cut values and phases of the bit strings from `at` on, `lanes` at a time.
template <typename Stored>
struct Cuts {
    const Stored* stored;
    double unit, offset, gamma;
    const double* table;

    Cuts(const CutValues& cuts, const CutPhases& phases)
        : stored(static_cast<const Stored*>(cuts.values)),
          unit(cuts.unit),
          offset(cuts.offset),
          gamma(phases.gamma),
          table(phases.table) {}

    MAXCUT_INLINE Vector values(std::size_t at) const {
        Vector result;
#pragma GCC unroll 8
        for (std::size_t lane = 0; lane < lanes; ++lane) result[lane] = static_cast<double>(stored[at + lane]);
        return result * unit + offset;
    }
    MAXCUT_INLINE void phases(std::size_t at, Vector& cosine, Vector& sine) const {
        look_up(table, stored + at, cosine, sine);
    }
};

template <>
MAXCUT_INLINE Vector Cuts<double>::values(std::size_t at) const {
    return load(stored + at);
}
template <>
MAXCUT_INLINE void Cuts<double>::phases(std::size_t at, Vector& cosine, Vector& sine) const {
    sine_and_cosine(load(stored + at) * gamma, cosine, sine);
}

// (real + i imaginary) (cosine + i sine)
MAXCUT_INLINE void rotate(Vector& real, Vector& imaginary, Vector cosine, Vector sine) {
    const Vector before = real;
    real = real * cosine - imaginary * sine;
    imaginary = imaginary * cosine + before * sine;
}

}  // namespace
}  // namespace maxcut
