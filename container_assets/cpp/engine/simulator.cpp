#include "simulator.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <random>
#include "job_error.hpp"
#include <string>

namespace maxcut {
namespace {

// Below this size, waking a second thread costs more than it saves.
constexpr unsigned threaded_bits = 15;

// Rows and tiles of columns fit into the first-level cache where the state is small, and into the second-level cache
// where it is large; the sizes were found by measurement.
Shape shape_for(unsigned bits) {
    Shape shape;
    shape.low_bits = bits <= 16 ? std::min(bits, 10u) : std::max(std::min(bits - 6, 13u), (bits + 3) / 2);
    shape.high_bits = bits - shape.low_bits;
    // Without the extra group, the rows of a column would all fall into the same few places of a cache.
    shape.pitch = shape.row_doubles() + (shape.high_bits > 0 ? group_doubles : 0);
    const std::size_t columns = std::clamp((std::size_t{1} << 15) / shape.rows(), group_doubles, 4 * group_doubles);
    shape.tile_doubles = std::min(shape.row_doubles(), columns);
    return shape;
}

// Adds in pairs, so that rounding errors grow with the logarithm of the count.
double pairwise_sum(const double* values, std::size_t count) {
    if (count <= 8) {
        double sum = 0;
        for (std::size_t index = 0; index < count; ++index) sum += values[index];
        return sum;
    }
    return pairwise_sum(values, count / 2) + pairwise_sum(values + count / 2, count - count / 2);
}

double amplitude_of(const Shape& shape) { return std::exp2(-0.5 * shape.bits()); }

}  // namespace

Simulator::Simulator(const Problem& problem, bool reduced, const Kernels& kernels, Team& team)
    : problem_(problem), kernels_(kernels), team_(team) {
    std::vector<Part> parts = parts_of(problem, reduced);
    unsigned bits = least_bits;
    double needed = 0;
    for (const Part& part : parts) {
        bits = std::max(bits, part.bits);
        needed += std::exp2(part.bits) * static_cast<double>(stored_bytes(part));
    }
    needed += 2 * std::exp2(bits) * 2 * sizeof(double) * 1.01;
    const auto available = static_cast<double>(available_memory());
    if (needed > available) {
        char text[300];
        std::snprintf(text, sizeof text,
                      "the largest connected part needs a state of %u qubits, two of which take %.3g GiB, and %.3g GiB "
                      "are free. Use an instance with more memory, or a simulator that needs no state vector",
                      bits, needed / std::exp2(30), available / std::exp2(30));
        throw JobError("MemoryError", text);
    }
    memory_ = static_cast<std::size_t>(needed);
    std::size_t doubles = 0, sums = 0;
    for (Part& part : parts) {
        const Shape shape = shape_for(part.bits);
        doubles = std::max(doubles, shape.doubles());
        scratch_doubles_ = std::max(scratch_doubles_, shape.row_doubles() + group_doubles);
        sums = std::max({sums, shape.rows(), shape.tiles()});
        CutTable table(part, team_);
        parts_.push_back({std::move(part), std::move(table), shape});
    }
    state_ = Memory(doubles * sizeof(double));
    adjoint_ = Memory(doubles * sizeof(double));
    scratch_ = Memory(scratch_doubles_ * team_.size() * sizeof(double));
    sums_.resize(sums);
}

unsigned Simulator::bits() const {
    unsigned bits = 0;
    for (const Simulated& simulated : parts_) bits = std::max(bits, simulated.shape.bits());
    return bits;
}

double Simulator::optimum() const {
    double sum = 0;
    for (const Simulated& simulated : parts_) sum += simulated.table.largest();
    return sum;
}

std::vector<Simulator::Layer> Simulator::layers_for(const Simulated& simulated, const Parameters& parameters) const {
    const unsigned bits = simulated.shape.bits();
    const double scale = std::exp2(-static_cast<double>(bits));
    const std::size_t entries = (bits - group_bits + 1) * group_size;
    std::vector<Layer> layers(parameters.layers());
    for (std::size_t index = 0; index < layers.size(); ++index) {
        Layer& layer = layers[index];
        layer.table = simulated.table.phases(parameters.gammas[index]);
        layer.cut = {parameters.gammas[index], layer.table.data()};
        for (std::size_t entry = 0; entry < entries; ++entry) {
            const int set = static_cast<int>(entry / group_size) + std::popcount(entry % group_size);
            // The root's X flips all other bits, which is the product of their X: 1 or -1 by the number of set bits.
            const double eigenvalue =
                static_cast<int>(bits) - 2 * set + (simulated.part.rooted ? (set % 2 == 0 ? 1 : -1) : 0);
            layer.eigenvalues.push_back(eigenvalue);
            layer.cosines.push_back(std::cos(parameters.betas[index] * eigenvalue) * scale);
            layer.sines.push_back(-std::sin(parameters.betas[index] * eigenvalue) * scale);
        }
        layer.mixer = {layer.eigenvalues.data(), layer.cosines.data(), layer.sines.data()};
    }
    return layers;
}

void Simulator::over_rows(const Simulated& simulated, const std::function<void(Range, unsigned)>& work) {
    team_.share(simulated.shape.rows(), simulated.shape.bits() < threaded_bits ? 1 : team_.size(), work);
}

void Simulator::over_tiles(const Simulated& simulated, const std::function<void(Range, unsigned)>& work) {
    team_.share(simulated.shape.tiles(), simulated.shape.bits() < threaded_bits ? 1 : team_.size(), work);
}

void Simulator::forward(const Simulated& simulated, const std::vector<Layer>& layers) {
    const Shape& shape = simulated.shape;
    const CutValues values = simulated.table.values();
    const CutKernels& cut = kernels_.cut(values.stored);
    double* const state = state_.as<double>();
    for (const Layer& layer : layers) {
        over_rows(simulated, [&](Range rows, unsigned) {
            if (&layer == layers.data()) return cut.start(shape, values, layer.cut, amplitude_of(shape), state, rows);
            cut.forward(shape, values, layer.cut, state, rows);
        });
        over_tiles(simulated, [&](Range tiles, unsigned) { kernels_.mixer_forward(shape, layer.mixer, state, tiles); });
    }
}

double Simulator::turn(const Simulated& simulated) {
    const CutValues values = simulated.table.values();
    over_rows(simulated, [&](Range rows, unsigned thread) {
        kernels_.cut(values.stored)
            .turn(simulated.shape, values, state_.as<double>(), adjoint_.as<double>(), scratch(thread), sums_.data(),
                  rows);
    });
    return -pairwise_sum(sums_.data(), simulated.shape.rows());
}

double Simulator::expectation(const Simulated& simulated) {
    const CutValues values = simulated.table.values();
    over_rows(simulated, [&](Range rows, unsigned thread) {
        kernels_.cut(values.stored)
            .expectation(simulated.shape, values, state_.as<double>(), scratch(thread), sums_.data(), rows);
    });
    return -pairwise_sum(sums_.data(), simulated.shape.rows());
}

void Simulator::backward(const Simulated& simulated, const std::vector<Layer>& layers, Parameters& gradient) {
    const Shape& shape = simulated.shape;
    const CutValues values = simulated.table.values();
    const CutKernels& cut = kernels_.cut(values.stored);
    double* const state = state_.as<double>();
    double* const adjoint = adjoint_.as<double>();
    // The passes divide by 2^bits once a layer. The adjoint has made one transform of its rows more than the state, so
    // the state is short of a factor 2^low_bits throughout.
    const double rows_scale = std::exp2(shape.low_bits),
                 columns_scale = std::exp2(-static_cast<double>(shape.high_bits));
    for (std::size_t index = layers.size(); index-- > 0;) {
        const Layer& layer = layers[index];
        const bool last = index == 0;
        over_tiles(simulated, [&](Range tiles, unsigned) {
            kernels_.mixer_back(shape, layer.mixer, state, adjoint, last, sums_.data(), tiles);
        });
        gradient.betas[index] += 2 * columns_scale * pairwise_sum(sums_.data(), shape.tiles());
        over_rows(simulated, [&](Range rows, unsigned) {
            if (last) return cut.end(shape, values, layer.cut, amplitude_of(shape), adjoint, sums_.data(), rows);
            cut.back(shape, values, layer.cut, state, adjoint, sums_.data(), rows);
        });
        gradient.gammas[index] -= 2 * (last ? 1 : rows_scale) * pairwise_sum(sums_.data(), shape.rows());
    }
}

Evaluation Simulator::value_and_gradient(const Parameters& parameters) {
    const std::vector<double> zeros(parameters.layers(), 0.0);
    Evaluation evaluation{0, {zeros, zeros}};
    for (const Simulated& simulated : parts_) {
        const std::vector<Layer> layers = layers_for(simulated, parameters);
        forward(simulated, layers);
        evaluation.cost += turn(simulated);
        backward(simulated, layers, evaluation.gradient);
    }
    return evaluation;
}

double Simulator::value(const Parameters& parameters) {
    double cost = 0;
    for (const Simulated& simulated : parts_) {
        forward(simulated, layers_for(simulated, parameters));
        cost += expectation(simulated);
    }
    return cost;
}

std::vector<std::string> Simulator::sample(const Parameters& parameters, std::size_t count, unsigned long long seed) {
    std::vector<std::string> drawn(count, std::string(problem_.nodes(), '0'));
    std::mt19937_64 generator(seed);
    for (const Simulated& simulated : parts_) {
        const Shape& shape = simulated.shape;
        forward(simulated, layers_for(simulated, parameters));
        std::vector<double> row_sums(shape.rows());
        Memory memory(shape.row_amplitudes() * sizeof(double));
        double* const row_values = memory.as<double>();
        const auto probabilities = [&](std::size_t row) {
            kernels_.probabilities(shape, state_.as<double>(), scratch(0), row, row_values);
        };
        for (std::size_t row = 0; row < shape.rows(); ++row) {
            probabilities(row);
            row_sums[row] = pairwise_sum(row_values, shape.row_amplitudes());
        }
        // Points on the unit interval in ascending order find their bit strings in one pass over the rows.
        const double total = pairwise_sum(row_sums.data(), row_sums.size());
        std::vector<std::pair<double, std::size_t>> points(count);
        for (std::size_t index = 0; index < count; ++index)
            points[index] = {static_cast<double>(generator() >> 11) * 0x1p-53 * total, index};
        std::sort(points.begin(), points.end());
        std::size_t next = 0;
        double before = 0;
        for (std::size_t row = 0; row < shape.rows() && next < count; ++row) {
            const bool last_row = row + 1 == shape.rows();
            if (last_row || points[next].first < before + row_sums[row]) {
                probabilities(row);
                double reached = before;
                for (std::size_t low = 0; low < shape.row_amplitudes() && next < count; ++low) {
                    reached += row_values[low];
                    const bool take_all = last_row && low + 1 == shape.row_amplitudes();
                    while (next < count && (points[next].first < reached || take_all)) {
                        const std::size_t string = (row << shape.low_bits) + low;
                        const std::vector<std::size_t>& nodes = simulated.part.nodes;
                        for (std::size_t index = simulated.part.rooted; index < nodes.size(); ++index)
                            if (string >> (index - simulated.part.rooted) & 1)
                                drawn[points[next].second][nodes[index]] = '1';
                        ++next;
                    }
                }
            }
            before += row_sums[row];
        }
    }
    return drawn;
}

}  // namespace maxcut
