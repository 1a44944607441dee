#include "evaluate.hpp"

#include <algorithm>
#include <chrono>
#include <istream>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "hyperparameters.hpp"
#include "simulator.hpp"

namespace maxcut {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begun) { return std::chrono::duration<double>(Clock::now() - begun).count(); }

Json answer(const Json& request) {
    Problem problem;
    problem.labels.resize(request.at("nodes").get<std::size_t>());
    for (const Json& edge : request.at("edges"))
        problem.edges.push_back({edge.at(0).get<std::size_t>(), edge.at(1).get<std::size_t>(),
                                 edge.size() > 2 ? edge[2].get<double>() : 1.0});
    const Parameters parameters = parameters_from(request.at("parameters"));
    const std::string kernels = request.value("kernels", "");
    const auto begun = Clock::now();
    Team team(request.value("threads", default_threads()));
    Simulator simulator(problem, request.value("reduction", "symmetry") != "none",
                        select_kernels(kernels.empty() ? nullptr : kernels.c_str()), team);
    const double setup = seconds_since(begun);
    Evaluation evaluation;
    Json times = Json::array();
    for (int count = request.value("repeat", 1); count > 0; --count) {
        const auto start = Clock::now();
        evaluation = simulator.value_and_gradient(parameters);
        times.push_back(seconds_since(start));
    }
    return {{"cost", evaluation.cost},
            {"gradient", rows(evaluation.gradient)},
            {"value", simulator.value(parameters)},
            {"optimum", simulator.optimum()},
            {"qubits", simulator.bits()},
            {"kernels", simulator.kernels().name},
            {"setup_seconds", setup},
            {"seconds", times},
            {"peak_memory_bytes", peak_memory()}};
}

}  // namespace

void evaluate_lines(std::istream& requests, std::ostream& answers) {
    for (std::string line; std::getline(requests, line);)
        if (!line.empty()) answers << answer(Json::parse(line)).dump() << std::endl;
}

void measure_bandwidth(unsigned long long bytes, std::ostream& out) {
    const Memory memory(bytes);
    double* const values = memory.as<double>();
    const std::size_t count = bytes / sizeof(double) / group_doubles * group_doubles;
    std::fill_n(values, count, 1.0);
    double best = 0;
    for (int repeat = 0; repeat < 5; ++repeat) {
        const auto begun = Clock::now();
        select_kernels().sweep(values, count);
        best = std::max(best, 2.0 * static_cast<double>(count * sizeof(double)) / seconds_since(begun));
    }
    out << Json{{"bytes_per_second", best}}.dump() << std::endl;
}

}  // namespace maxcut
