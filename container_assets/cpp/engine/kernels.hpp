// The passes over a state vector, as a table of functions for one instruction set.
//
// A state has 2^(high_bits + low_bits) amplitudes in rows of 2^low_bits. Eight neighbours make a group, stored as eight
// real and then eight imaginary parts. The cost is diagonal in the basis of bit strings ("cut basis") and the mixer in
// the basis that the Walsh-Hadamard transform leads to ("mixer basis"). Between passes a state is in neither: its low
// bits are in the mixer basis and its high bits in the cut basis. So a cut pass transforms whole rows back, applies the
// cost, and transforms them again; a mixer pass does the same with columns: two sweeps over memory for each layer.
#pragma once

#include <cstddef>
#include <cstdint>

// Also because inline functions compiled for several instruction sets must leave no copy for the linker to choose from.
#define MAXCUT_INLINE __attribute__((always_inline)) inline

namespace maxcut {

inline constexpr unsigned group_bits = 3;
inline constexpr std::size_t group_size = 8;
inline constexpr std::size_t group_doubles = 2 * group_size;
// What the innermost step of a cut pass holds in registers, so no state is smaller.
inline constexpr unsigned least_bits = 6;

struct Shape {
    unsigned low_bits = least_bits;
    unsigned high_bits = 0;
    std::size_t pitch = 0;         // doubles from one row to the next
    std::size_t tile_doubles = 0;  // width of the columns that a mixer pass holds in cache

    MAXCUT_INLINE unsigned bits() const { return low_bits + high_bits; }
    MAXCUT_INLINE std::size_t rows() const { return std::size_t{1} << high_bits; }
    MAXCUT_INLINE std::size_t row_amplitudes() const { return std::size_t{1} << low_bits; }
    MAXCUT_INLINE std::size_t row_doubles() const { return 2 * row_amplitudes(); }
    MAXCUT_INLINE std::size_t tiles() const { return row_doubles() / tile_doubles; }
    MAXCUT_INLINE std::size_t doubles() const { return rows() * pitch; }
};

// The cut of every bit string: offset + unit * stored value.
struct CutValues {
    enum class Stored { bytes, words, reals };
    Stored stored = Stored::bytes;
    const void* values = nullptr;
    double unit = 1;
    double offset = 0;
};

// exp(i gamma cut) by stored value, cosine and sine in turn; reals have no table and are computed from gamma.
struct CutPhases {
    double gamma = 0;
    const double* table = nullptr;
};

// Eigenvalues m of the mixer and exp(-i beta m) / 2^bits. Entry 8 k + lane is for k set bits outside a group's own.
struct MixerPhases {
    const double* eigenvalues = nullptr;
    const double* cosines = nullptr;
    const double* sines = nullptr;
};

struct Range {
    std::size_t begin, end;
};

// Each pass works on a range of rows (cut) or tiles (mixer); sums are written one a row or tile, so that the total does
// not depend on how the ranges were chosen. `scratch` holds one row.
struct CutKernels {
    // state = exp(i gamma cut) amplitude, a state without any mixer.
    void (*start)(const Shape&, const CutValues&, const CutPhases&, double amplitude, double* state, Range rows);
    void (*forward)(const Shape&, const CutValues&, const CutPhases&, double* state, Range rows);
    // adjoint = -cut state, sums = <state|cut|state>; the state itself is kept.
    void (*turn)(const Shape&, const CutValues&, const double* state, double* adjoint, double* scratch, double* sums,
                 Range rows);
    // sums = <state|cut|state> alone.
    void (*expectation)(const Shape&, const CutValues&, const double* state, double* scratch, double* sums, Range rows);
    // sums = Im <adjoint|cut|state>, then both go back before exp(i gamma cut).
    void (*back)(const Shape&, const CutValues&, const CutPhases&, double* state, double* adjoint, double* sums,
                 Range rows);
    // The last of these: sums alone, with the state that `start` makes.
    void (*end)(const Shape&, const CutValues&, const CutPhases&, double amplitude, double* adjoint, double* sums,
                Range rows);
};

struct Kernels {
    const char* name;
    CutKernels for_bytes, for_words, for_reals;
    // |amplitude|^2 of one row's bit strings.
    void (*probabilities)(const Shape&, const double* state, double* scratch, std::size_t row, double* out);
    void (*mixer_forward)(const Shape&, const MixerPhases&, double* state, Range tiles);
    // sums = Im <adjoint|mixer|state> 2^bits, then both go back before the mixer, or with `last` the adjoint alone.
    void (*mixer_back)(const Shape&, const MixerPhases&, double* state, double* adjoint, bool last, double* sums,
                       Range tiles);
    // Reads and writes `count` doubles once: what the memory gives at best.
    void (*sweep)(double* values, std::size_t count);

    MAXCUT_INLINE const CutKernels& cut(CutValues::Stored stored) const {
        return stored == CutValues::Stored::bytes   ? for_bytes
               : stored == CutValues::Stored::words ? for_words
                                                    : for_reals;
    }
};

// Throws std::runtime_error when this processor lacks what the kernels `name` (baseline, avx2, avx512) need; without a
// name the widest that it can run.
const Kernels& select_kernels(const char* name = nullptr);

}  // namespace maxcut
