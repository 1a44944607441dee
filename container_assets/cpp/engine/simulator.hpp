// The exact cost of a QAOA state and its gradient.
#pragma once

#include <vector>

#include "cut_table.hpp"
#include "graph.hpp"
#include "kernels.hpp"
#include "memory.hpp"
#include "threads.hpp"

namespace maxcut {

// Gammas and betas, one of each a layer; also holds derivatives by them.
struct Parameters {
    std::vector<double> gammas, betas;

    std::size_t layers() const { return gammas.size(); }
    bool operator==(const Parameters&) const = default;
};

struct Evaluation {
    double cost = 0;
    Parameters gradient;
};

// Evaluates <H_C>, H_C = 1/2 sum_ij w_ij (Z_i Z_j - 1), in the state prod_l exp(-i beta_l sum_i X_i) exp(-i gamma_l
// H_C) |+...+>.
//
// The gradient takes one reverse pass with one more state: its derivatives are inner products of the two states at each
// layer. Memory: two states of the largest part and the cut tables of all parts.
class Simulator {
public:
    // Throws JobError when the states do not fit into memory.
    Simulator(const Problem& problem, bool reduced, const Kernels& kernels, Team& team);

    Evaluation value_and_gradient(const Parameters& parameters);
    double value(const Parameters& parameters);
    // Bit strings drawn from the final state, one character '0' or '1' a node. Nodes without edges are 0.
    std::vector<std::string> sample(const Parameters& parameters, std::size_t count, unsigned long long seed);
    // The largest cut there is.
    double optimum() const;
    // Qubits of the largest state.
    unsigned bits() const;
    // Bytes of all states and tables.
    std::size_t memory() const { return memory_; }
    std::size_t parts() const { return parts_.size(); }
    const Kernels& kernels() const { return kernels_; }

private:
    struct Simulated {
        Part part;
        CutTable table;
        Shape shape;
    };
    struct Layer {
        std::vector<double> table;
        CutPhases cut;
        std::vector<double> eigenvalues, cosines, sines;
        MixerPhases mixer;
    };

    std::vector<Layer> layers_for(const Simulated& simulated, const Parameters& parameters) const;
    void forward(const Simulated& simulated, const std::vector<Layer>& layers);
    double turn(const Simulated& simulated);
    double expectation(const Simulated& simulated);
    void backward(const Simulated& simulated, const std::vector<Layer>& layers, Parameters& gradient);
    void over_rows(const Simulated& simulated, const std::function<void(Range, unsigned)>& work);
    void over_tiles(const Simulated& simulated, const std::function<void(Range, unsigned)>& work);
    double* scratch(unsigned thread) { return scratch_.as<double>() + thread * scratch_doubles_; }

    const Problem& problem_;
    const Kernels& kernels_;
    Team& team_;
    std::vector<Simulated> parts_;
    Memory state_, adjoint_, scratch_;
    std::size_t scratch_doubles_ = 0;
    std::vector<double> sums_;
    std::size_t memory_ = 0;
};

}  // namespace maxcut
