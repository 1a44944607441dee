// Cuts found without a quantum circuit, to compare with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "graph.hpp"

namespace maxcut {

struct Cut {
    std::string bits;  // the first node is always on side 0
    double value = 0;
};

// The bit string that cuts the most.
Cut best_of(const Problem& problem, const std::vector<std::string>& strings);

struct ClassicalControl {
    std::size_t random_cuts = 0;
    double random_best_cut = 0;
    std::size_t local_search_starts = 0;
    double local_search_best_cut = 0;
};

// The best of `count` random cuts, and of a local search from the first of them: one node at a time is moved to the
// other side, the one that gains most, until none gains.
ClassicalControl classical_control(const Problem& problem, std::size_t count, std::uint32_t seed);

}  // namespace maxcut
