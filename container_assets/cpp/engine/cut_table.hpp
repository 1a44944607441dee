// The cut of every bit string of some nodes, computed once, in as few bytes as its values allow.
#pragma once

#include <cstdint>
#include <vector>

#include "graph.hpp"
#include "kernels.hpp"
#include "memory.hpp"
#include "threads.hpp"

namespace maxcut {

// How the nodes of one simulated part map to the bits of its state.
//
// With a root, that node's bit is held at 0: flipping all bits changes no cut, so half of the state says it all.
// Nodes beyond `nodes` fill a tiny part up to the least size of a state; having no edges, they change nothing.
struct Part {
    std::vector<std::size_t> nodes;  // of the problem; bit k of a state is nodes[k + rooted], the root is nodes[0]
    std::vector<Edge> edges;         // between positions in `nodes`
    bool rooted = true;
    unsigned bits = least_bits;
};

// The parts that together hold every edge: connected components apart and rooted, or the problem as a whole.
std::vector<Part> parts_of(const Problem& problem, bool reduced);

// The bytes a table takes for each bit string: 1 or 2 where the weights are multiples of some number, else 8.
std::size_t stored_bytes(const Part& part);

class CutTable {
public:
    CutTable(const Part& part, Team& team);

    CutValues values() const;
    // Phases exp(i gamma cut) for every stored value; empty where the values are reals.
    std::vector<double> phases(double gamma) const;
    // A bit string with the largest cut, as an index, and that cut.
    std::size_t best() const { return best_; }
    double largest() const { return largest_; }

private:
    template <typename Stored>
    void fill(const Part& part, Team& team);

    CutValues::Stored stored_ = CutValues::Stored::bytes;
    double unit_ = 1, offset_ = 0;
    std::size_t distinct_ = 0;
    Memory memory_;
    std::size_t best_ = 0;
    double largest_ = 0;
};

}  // namespace maxcut
