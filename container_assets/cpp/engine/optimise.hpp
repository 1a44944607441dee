// The classical optimisers. Each sees the cost only through `evaluate`, so a recorded run can be replayed.
#pragma once

#include <functional>

#include "hyperparameters.hpp"
#include "simulator.hpp"

namespace maxcut {

using Evaluate = std::function<Evaluation(const Parameters&)>;

// Returns the parameters after `num_iterations` steps of gradient descent, or of Adam with PennyLane's defaults.
Parameters optimise(const Evaluate& evaluate, const Hyperparameters& settings);

}  // namespace maxcut
