#include "optimise.hpp"

#include <cmath>
#include <vector>

namespace maxcut {
namespace {

constexpr double first_decay = 0.9, second_decay = 0.99, offset = 1e-8;

// Applies `step` to each parameter and its derivative.
template <typename Step>
void each(Parameters& parameters, const Parameters& gradient, const Step& step) {
    const std::size_t layers = parameters.layers();
    for (std::size_t layer = 0; layer < layers; ++layer) {
        step(parameters.gammas[layer], gradient.gammas[layer], layer);
        step(parameters.betas[layer], gradient.betas[layer], layers + layer);
    }
}

Parameters gradient_descent(const Evaluate& evaluate, const Hyperparameters& settings) {
    Parameters parameters = settings.start();
    for (std::size_t iteration = 0; iteration < settings.num_iterations; ++iteration)
        each(parameters, evaluate(parameters).gradient,
             [&](double& value, double slope, std::size_t) { value = value - settings.stepsize * slope; });
    return parameters;
}

Parameters adam(const Evaluate& evaluate, const Hyperparameters& settings) {
    Parameters parameters = settings.start();
    std::vector<double> first(2 * settings.p, 0), second(2 * settings.p, 0);
    for (std::size_t iteration = 1; iteration <= settings.num_iterations; ++iteration) {
        const auto count = static_cast<double>(iteration);
        const double rate =
            settings.stepsize * std::sqrt(1 - std::pow(second_decay, count)) / (1 - std::pow(first_decay, count));
        each(parameters, evaluate(parameters).gradient, [&](double& value, double slope, std::size_t index) {
            first[index] = first_decay * first[index] + (1 - first_decay) * slope;
            second[index] = second_decay * second[index] + (1 - second_decay) * slope * slope;
            value = value - rate * first[index] / (std::sqrt(second[index]) + offset);
        });
    }
    return parameters;
}

}  // namespace

Parameters optimise(const Evaluate& evaluate, const Hyperparameters& settings) {
    return settings.optimizer == "adam" ? adam(evaluate, settings) : gradient_descent(evaluate, settings);
}

}  // namespace maxcut
