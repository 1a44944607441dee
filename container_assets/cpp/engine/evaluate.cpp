#include "evaluate.hpp"

#include <algorithm>
#include <ctime>
#include <istream>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>
#include <string>

#include "hyperparameters.hpp"
#include "process.hpp"
#include "simulator.hpp"

namespace maxcut {
namespace {

using Json = nlohmann::json;
// What all threads have used.
double processor_seconds() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Json answer(const Json& request) {
    Problem problem;
    problem.labels.resize(request.at("nodes").get<std::size_t>());
    for (const Json& edge : request.at("edges"))
        problem.edges.push_back({edge.at(0).get<std::size_t>(), edge.at(1).get<std::size_t>(),
                                 edge.size() > 2 ? edge[2].get<double>() : 1.0});
    for (const Edge& edge : problem.edges)
        if (edge.first == edge.second || std::max(edge.first, edge.second) >= problem.nodes())
            throw std::invalid_argument("an edge joins two different nodes from 0 to nodes - 1");
    const Parameters parameters = parameters_from(request.at("parameters"));
    const std::string kernels = request.value("kernels", "");
    const auto begun = Clock::now();
    Team team(request.value("threads", default_threads()));
    Simulator simulator(problem, request.value("reduction", "symmetry") != "none",
                        select_kernels(kernels.empty() ? nullptr : kernels.c_str()), team);
    const double setup = seconds_since(begun);
    Evaluation evaluation;
    Json times = Json::array(), processor_times = Json::array();
    for (int count = request.value("repeat", 1); count > 0; --count) {
        const auto start = Clock::now();
        const double processor_start = processor_seconds();
        evaluation = simulator.value_and_gradient(parameters);
        times.push_back(seconds_since(start));
        processor_times.push_back(processor_seconds() - processor_start);
    }
    return {{"cost", evaluation.cost},
            {"gradient", rows(evaluation.gradient)},
            {"value", simulator.value(parameters)},
            {"optimum", simulator.optimum()},
            {"qubits", simulator.bits()},
            {"kernels", simulator.kernels().name},
            {"setup_seconds", setup},
            {"seconds", times},
            {"cpu_seconds", processor_times},
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
