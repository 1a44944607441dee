// The passes of kernels.hpp for one instruction set. This file is compiled once for each of them.
#include "kernels.hpp"

#include "cut_passes.hpp"
#include "mixer_passes.hpp"

namespace maxcut {
namespace {

void sweep(double* values, std::size_t count) {
    for (std::size_t at = 0; at < count; at += lanes) store(values + at, load(values + at) * -1.0);
}

template <typename Stored>
constexpr CutKernels cut_kernels = {&CutPasses<Stored>::start, &CutPasses<Stored>::forward,
                                    &CutPasses<Stored>::turn,  &CutPasses<Stored>::expectation,
                                    &CutPasses<Stored>::back,  &CutPasses<Stored>::end};

}  // namespace

extern const Kernels MAXCUT_KERNELS;
const Kernels MAXCUT_KERNELS = {
#if defined(__AVX512F__)
    "avx512",
#elif defined(__AVX__)
    "avx2",
#else
    "baseline",
#endif
    cut_kernels<std::uint8_t>,
    cut_kernels<std::uint16_t>,
    cut_kernels<double>,
    &probabilities,
    &mixer_forward,
    &mixer_back,
    &sweep,
};

}  // namespace maxcut
