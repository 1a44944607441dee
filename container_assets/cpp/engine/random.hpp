// The random numbers of Python and NumPy, so that a seed means here what it means there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace maxcut {

// MT19937, seeded as numpy.random.RandomState(seed) or as Python's random.Random(seed). Seeds have 32 bits.
class MersenneTwister {
public:
    static MersenneTwister as_numpy(std::uint32_t seed);
    static MersenneTwister as_python(std::uint32_t seed);

    std::uint32_t next();
    // Uniform on [0, 1): NumPy's random_sample.
    double uniform();
    // Uniform on 0 .. count - 1: Python's random.choice.
    std::size_t below(std::size_t count);

private:
    explicit MersenneTwister(std::uint32_t seed);

    std::array<std::uint32_t, 624> state_{};
    std::size_t position_ = 624;
};

// The edges of networkx.gnm_random_graph(nodes, edges, seed).
std::vector<std::array<std::size_t, 2>> gnm_random_graph(std::size_t nodes, std::size_t edges, std::uint32_t seed);

}  // namespace maxcut
