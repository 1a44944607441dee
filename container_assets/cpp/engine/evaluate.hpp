// Single evaluations from standard input, for tests and benchmarks.
#pragma once

#include <iosfwd>

namespace maxcut {

// Answers every line {"nodes": 3, "edges": [[0, 1], [1, 2, 0.5]], "parameters": [[gammas], [betas]]} with a line
// {"cost", "gradient", "optimum", ...}. Optional keys: "reduction" ("none" or "symmetry"), "kernels", "threads", and
// "repeat", the number of evaluations, each of which is timed.
void evaluate_lines(std::istream& requests, std::ostream& answers);

// Writes {"bytes_per_second"}: one read and one write of every byte of `bytes`, the best of five sweeps on one thread.
void measure_bandwidth(unsigned long long bytes, std::ostream& answer);

}  // namespace maxcut
