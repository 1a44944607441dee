#include "random.hpp"

#include <algorithm>
#include <bit>
#include <set>

namespace maxcut {

MersenneTwister::MersenneTwister(std::uint32_t seed) {
    state_[0] = seed;
    for (std::uint32_t index = 1; index < state_.size(); ++index)
        state_[index] = 1812433253u * (state_[index - 1] ^ (state_[index - 1] >> 30)) + index;
}

MersenneTwister MersenneTwister::as_numpy(std::uint32_t seed) { return MersenneTwister(seed); }

// The reference implementation's init_by_array with a key of one word, which Python gives it.
MersenneTwister MersenneTwister::as_python(std::uint32_t seed) {
    MersenneTwister made(19650218u);
    auto& state = made.state_;
    const std::size_t size = state.size();
    std::size_t index = 1;
    const auto mixed = [&] { return state[index - 1] ^ (state[index - 1] >> 30); };
    const auto advance = [&] {
        if (++index < size) return;
        state[0] = state[size - 1];
        index = 1;
    };
    for (std::size_t step = 0; step < size; ++step, advance())
        state[index] = (state[index] ^ mixed() * 1664525u) + seed;
    for (std::size_t step = 1; step < size; ++step, advance())
        state[index] = (state[index] ^ mixed() * 1566083941u) - static_cast<std::uint32_t>(index);
    state[0] = 0x80000000u;
    return made;
}

std::uint32_t MersenneTwister::next() {
    const std::size_t size = state_.size();
    if (position_ == size) {
        for (std::size_t index = 0; index < size; ++index) {
            const std::uint32_t joined = (state_[index] & 0x80000000u) | (state_[(index + 1) % size] & 0x7fffffffu);
            state_[index] = state_[(index + 397) % size] ^ (joined >> 1) ^ (joined & 1 ? 0x9908b0dfu : 0u);
        }
        position_ = 0;
    }
    std::uint32_t value = state_[position_++];
    value ^= value >> 11;
    value ^= (value << 7) & 0x9d2c5680u;
    value ^= (value << 15) & 0xefc60000u;
    return value ^ (value >> 18);
}

double MersenneTwister::uniform() {
    const std::uint32_t high = next() >> 5, low = next() >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
}

std::size_t MersenneTwister::below(std::size_t count) {
    const int bits = std::bit_width(count);
    for (;;) {
        const std::size_t value = next() >> (32 - bits);
        if (value < count) return value;
    }
}

std::vector<std::array<std::size_t, 2>> gnm_random_graph(std::size_t nodes, std::size_t edges, std::uint32_t seed) {
    std::set<std::array<std::size_t, 2>> found;
    if (edges >= nodes * (nodes - 1) / 2) {
        for (std::size_t high = 1; high < nodes; ++high)
            for (std::size_t low = 0; low < high; ++low) found.insert({low, high});
    } else {
        MersenneTwister generator = MersenneTwister::as_python(seed);
        while (found.size() < edges) {
            const std::size_t first = generator.below(nodes), second = generator.below(nodes);
            if (first != second) found.insert({std::min(first, second), std::max(first, second)});
        }
    }
    return {found.begin(), found.end()};
}

}  // namespace maxcut
