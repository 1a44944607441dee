#include "search.hpp"

#include <algorithm>
#include <random>

namespace maxcut {
namespace {

constexpr std::size_t most_starts = 100;
// A gain of rounding size must not send the search round in circles.
constexpr double least_gain = 1e-9;

void improve(const Problem& problem, std::string& bits) {
    std::vector<std::vector<std::pair<std::size_t, double>>> neighbours(problem.nodes());
    std::vector<double> gains(problem.nodes(), 0);
    for (const Edge& edge : problem.edges) {
        neighbours[edge.first].push_back({edge.second, edge.weight});
        neighbours[edge.second].push_back({edge.first, edge.weight});
        const double gain = bits[edge.first] == bits[edge.second] ? edge.weight : -edge.weight;
        gains[edge.first] += gain;
        gains[edge.second] += gain;
    }
    for (;;) {
        const auto node = static_cast<std::size_t>(std::max_element(gains.begin(), gains.end()) - gains.begin());
        if (gains[node] <= least_gain) return;
        bits[node] = bits[node] == '0' ? '1' : '0';
        gains[node] = -gains[node];
        for (const auto& [other, weight] : neighbours[node])
            gains[other] += bits[node] == bits[other] ? 2 * weight : -2 * weight;
    }
}

}  // namespace

Cut best_of(const Problem& problem, const std::vector<std::string>& strings) {
    std::size_t best = 0;
    std::vector<double> values;
    for (const std::string& bits : strings) values.push_back(problem.cut(bits));
    best = static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
    Cut cut{strings[best], values[best]};
    const char first = cut.bits[0];
    for (char& bit : cut.bits) bit = bit == first ? '0' : '1';
    return cut;
}

ClassicalControl classical_control(const Problem& problem, std::size_t count, std::uint32_t seed) {
    std::mt19937_64 generator(seed);
    std::vector<std::string> strings(count, std::string(problem.nodes(), '0'));
    for (std::string& bits : strings)
        for (char& bit : bits) bit = static_cast<char>('0' + (generator() >> 63));
    ClassicalControl control{count, best_of(problem, strings).value, std::min(count, most_starts), 0};
    strings.resize(control.local_search_starts);
    for (std::string& bits : strings) improve(problem, bits);
    control.local_search_best_cut = best_of(problem, strings).value;
    return control;
}

}  // namespace maxcut
