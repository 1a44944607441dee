// The Max-Cut problem: nodes, weighted edges, connected components.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace maxcut {

struct Edge {
    std::size_t first, second;
    double weight = 1;
};

// Node k of every array and bit string is labels[k]. Nodes without edges are part of the problem.
struct Problem {
    std::vector<std::string> labels;
    bool integer_labels = true;
    std::vector<Edge> edges;

    std::size_t nodes() const { return labels.size(); }
    double total_weight() const;
    // The weight of the edges between nodes whose bits differ; one character '0' or '1' a node.
    double cut(const std::string& bits) const;
};

// The connected components with at least one edge, each as sorted nodes.
std::vector<std::vector<std::size_t>> components(const Problem& problem);

}  // namespace maxcut
