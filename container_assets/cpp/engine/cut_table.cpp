#include "cut_table.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <type_traits>

namespace maxcut {
namespace {

constexpr unsigned block_bits = 12;

// Weights as whole multiples of a unit.
struct Multiples {
    double unit;
    std::vector<long long> counts;
    long long lowest, range;  // bounds of the cut, and of its spread
};

std::optional<Multiples> as_multiples(const std::vector<Edge>& edges) {
    for (int power = 0; power <= 20; ++power) {
        const double unit = std::ldexp(1.0, -power);
        Multiples found{unit, {}, 0, 0};
        for (const Edge& edge : edges) {
            const double count = edge.weight / unit;
            if (count != std::nearbyint(count) || std::abs(count) > 1e6) break;
            found.counts.push_back(static_cast<long long>(count));
        }
        if (found.counts.size() != edges.size()) continue;
        long long divisor = 0;
        for (long long count : found.counts) divisor = std::gcd(divisor, count);
        divisor = std::max(divisor, 1ll);
        found.unit = unit * static_cast<double>(divisor);
        for (long long& count : found.counts) {
            count /= divisor;
            found.lowest += std::min(count, 0ll);
            found.range += std::abs(count);
        }
        if (found.range <= 0xffff) return found;
        return std::nullopt;
    }
    return std::nullopt;
}

}  // namespace

std::vector<Part> parts_of(const Problem& problem, bool reduced) {
    std::vector<std::vector<std::size_t>> groups;
    if (reduced) {
        groups = components(problem);
    } else {
        groups.emplace_back(problem.nodes());
        std::iota(groups[0].begin(), groups[0].end(), std::size_t{0});
    }
    std::vector<Part> parts;
    std::vector<std::size_t> part_of(problem.nodes()), position(problem.nodes());
    for (const auto& nodes : groups) {
        for (std::size_t index = 0; index < nodes.size(); ++index) {
            part_of[nodes[index]] = parts.size();
            position[nodes[index]] = index;
        }
        const auto bits = static_cast<unsigned>(std::min<std::size_t>(nodes.size() - (reduced ? 1 : 0), 1000));
        parts.push_back({nodes, {}, reduced, std::max(bits, least_bits)});
    }
    for (const Edge& edge : problem.edges)
        parts[part_of[edge.first]].edges.push_back({position[edge.first], position[edge.second], edge.weight});
    return parts;
}

std::size_t stored_bytes(const Part& part) {
    const auto multiples = as_multiples(part.edges);
    return !multiples ? 8 : multiples->range <= 0xff ? 1 : 2;
}

CutTable::CutTable(const Part& part, Team& team) {
    const auto multiples = as_multiples(part.edges);
    if (!multiples) {
        stored_ = CutValues::Stored::reals;
        fill<double>(part, team);
        return;
    }
    Part counted = part;
    for (std::size_t edge = 0; edge < part.edges.size(); ++edge)
        counted.edges[edge].weight = static_cast<double>(multiples->counts[edge]);
    unit_ = multiples->unit;
    offset_ = unit_ * static_cast<double>(multiples->lowest);
    distinct_ = static_cast<std::size_t>(multiples->range) + 1;
    if (distinct_ <= 0x100) {
        fill<std::uint8_t>(counted, team);
    } else {
        stored_ = CutValues::Stored::words;
        fill<std::uint16_t>(counted, team);
    }
}

// A node that gets bit 1 adds its edges to neighbours at 0 and takes away those at 1; nodes above it are still at 0.
// Whole numbers may wrap round on the way, since the last sum is in range. The first bits are done once for a block,
// the others by block.
template <typename Stored>
void CutTable::fill(const Part& part, Team& team) {
    const std::size_t count = std::size_t{1} << part.bits;
    memory_ = Memory(count * sizeof(Stored));
    Stored* const table = memory_.as<Stored>();

    struct Neighbour {
        unsigned bit;
        Stored twice;
    };
    std::vector<Stored> all(part.bits, 0);  // the sum of a node's edges
    std::vector<std::vector<Neighbour>> lower(part.bits);
    for (const Edge& edge : part.edges) {
        const std::size_t high = std::max(edge.first, edge.second), low = std::min(edge.first, edge.second);
        const std::size_t bit = high - part.rooted;
        const auto weight = static_cast<Stored>(
            static_cast<std::conditional_t<std::is_same_v<Stored, double>, double, long long>>(edge.weight));
        all[bit] = static_cast<Stored>(all[bit] + weight);
        if (part.rooted && low == 0) continue;
        const std::size_t lower_bit = low - part.rooted;
        all[lower_bit] = static_cast<Stored>(all[lower_bit] + weight);
        lower[bit].push_back({static_cast<unsigned>(lower_bit), static_cast<Stored>(2 * weight)});
    }
    const auto change = [&](unsigned bit, std::size_t string) {
        Stored sum = all[bit];
        for (const Neighbour& neighbour : lower[bit])
            sum = static_cast<Stored>(sum - neighbour.twice * static_cast<Stored>(string >> neighbour.bit & 1));
        return sum;
    };

    const unsigned within = std::min(part.bits, block_bits);
    const std::size_t block = std::size_t{1} << within;
    table[0] = static_cast<Stored>(std::is_same_v<Stored, double> ? 0 : -std::llround(offset_ / unit_));
    for (unsigned bit = 0; bit < within; ++bit)
        for (std::size_t string = 0; string < (std::size_t{1} << bit); ++string)
            table[string + (std::size_t{1} << bit)] = static_cast<Stored>(table[string] + change(bit, string));

    // A block adds to the first one what its own bits cut among themselves, and for every low bit a term of its own.
    const std::size_t blocks = count / block;
    std::vector<Stored> highest(blocks);
    std::vector<std::size_t> where(blocks);
    std::vector<std::vector<Neighbour>> upper(within);
    for (unsigned bit = within; bit < part.bits; ++bit)
        for (const Neighbour& neighbour : lower[bit])
            if (neighbour.bit < within) upper[neighbour.bit].push_back({bit, neighbour.twice});
    team.share(blocks, team.size(), [&](Range range, unsigned) {
        for (std::size_t number = range.begin; number < range.end; ++number) {
            const std::size_t high = number << within;
            Stored* const own = table + high;
            if (number > 0) {
                Stored base = 0;
                for (unsigned bit = within; bit < part.bits; ++bit)
                    if (high >> bit & 1)
                        base = static_cast<Stored>(base + change(bit, high & ((std::size_t{1} << bit) - 1)));
                own[0] = base;
                for (unsigned bit = 0; bit < within; ++bit) {
                    Stored term = 0;
                    for (const Neighbour& neighbour : upper[bit])
                        term = static_cast<Stored>(term -
                                                   neighbour.twice * static_cast<Stored>(high >> neighbour.bit & 1));
                    const std::size_t half = std::size_t{1} << bit;
                    for (std::size_t string = 0; string < half; ++string)
                        own[half + string] = static_cast<Stored>(own[string] + term);
                }
            }
        }
    });
    team.share(blocks, team.size(), [&](Range range, unsigned) {
        for (std::size_t number = range.begin; number < range.end; ++number) {
            Stored* const own = table + (number << within);
            if (number > 0)
                for (std::size_t string = 0; string < block; ++string)
                    own[string] = static_cast<Stored>(own[string] + table[string]);
            const Stored* const top = std::max_element(own, own + block);
            highest[number] = *top;
            where[number] = static_cast<std::size_t>(top - table);
        }
    });
    const auto top = static_cast<std::size_t>(std::max_element(highest.begin(), highest.end()) - highest.begin());
    best_ = where[top];
    largest_ = offset_ + unit_ * static_cast<double>(highest[top]);
}

CutValues CutTable::values() const { return {stored_, memory_.as<void>(), unit_, offset_}; }

std::vector<double> CutTable::phases(double gamma) const {
    std::vector<double> table(2 * distinct_);
    for (std::size_t value = 0; value < distinct_; ++value) {
        const double cut = offset_ + unit_ * static_cast<double>(value);
        table[2 * value] = std::cos(gamma * cut);
        table[2 * value + 1] = std::sin(gamma * cut);
    }
    return table;
}

}  // namespace maxcut
