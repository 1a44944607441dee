// Reads a graph from a job's input channel.
#pragma once

#include <filesystem>

#include "graph.hpp"

namespace maxcut {

// Reads an adjacency list (.adjlist: "node neighbour neighbour ...") or an edge list (.edgelist, .edges: "node node",
// "node node weight" or "node node {'weight': 2.5}"; a line with one node is a node without edges).
//
// Nodes are ordered by label, as numbers where all are whole numbers. Throws JobError with the line and the remedy.
Problem read_graph(const std::filesystem::path& file);

// Reads the one graph file that an input channel holds.
Problem read_channel(const std::filesystem::path& channel);

// The problem with these labels and edges between them, ordered by label. Throws JobError where there is no edge.
Problem ordered_problem(std::vector<std::string> labels, std::vector<Edge> edges);

}  // namespace maxcut
