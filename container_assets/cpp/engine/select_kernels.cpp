#include <stdexcept>
#include <string>

#include "kernels.hpp"

namespace maxcut {

extern const Kernels kernels_baseline, kernels_avx2, kernels_avx512;

namespace {

bool has_avx2() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}

bool has_avx512() {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd");
}

}  // namespace

const Kernels& select_kernels(const char* name) {
    const bool avx2 = has_avx2(), avx512 = has_avx512();
    if (name == nullptr) return avx512 ? kernels_avx512 : avx2 ? kernels_avx2 : kernels_baseline;
    const std::string wanted = name;
    if (wanted == "baseline") return kernels_baseline;
    if (wanted == "avx2" && avx2) return kernels_avx2;
    if (wanted == "avx512" && avx512) return kernels_avx512;
    throw std::runtime_error("kernels '" + wanted + "' can't run on this processor: give one of baseline" +
                             (avx2 ? ", avx2" : "") + (avx512 ? ", avx512" : ""));
}

}  // namespace maxcut
