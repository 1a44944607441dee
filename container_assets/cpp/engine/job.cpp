#include "job.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoints.hpp"
#include "graph_file.hpp"
#include "hyperparameters.hpp"
#include "job_error.hpp"
#include "optimise.hpp"
#include "process.hpp"
#include "random.hpp"
#include "search.hpp"
#include "simulator.hpp"

namespace maxcut {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* channel_name = "input-graph";

std::map<std::string, std::string> given_hyperparameters() {
    const std::string file = variable("AMZN_BRAKET_HP_FILE");
    std::map<std::string, std::string> values;
    if (file.empty()) return values;
    std::ifstream stream(file);
    const Json data = Json::parse(stream, nullptr, false);
    if (!data.is_object())
        throw JobError("HyperparameterError", file + " is not a JSON object. Give the job hyperparameters as strings.");
    for (const auto& [name, value] : data.items())
        values[name] = value.is_string() ? value.get<std::string>() : value.dump();
    return values;
}

void check_device() {
    const std::string asked = variable("AMZN_BRAKET_DEVICE_ARN");
    if (asked != device)
        throw JobError("DeviceError", "device '" + asked + "' is unknown to this job. Use " + device + ".");
}

Problem find_problem(const Hyperparameters& settings) {
    const std::string inputs = variable("AMZN_BRAKET_INPUT_DIR");
    const fs::path channel = fs::path(inputs) / channel_name;
    const bool given = !inputs.empty() && fs::is_directory(channel);
    if (!settings.num_nodes) {
        if (given) return read_channel(channel);
        throw JobError("HyperparameterError",
                       std::string("1 invalid hyperparameter: no graph: give the job an input channel ") +
                           channel_name + ", or num_nodes and num_edges for a generated one");
    }
    if (given)
        throw JobError("HyperparameterError",
                       "1 invalid hyperparameter: num_nodes = " + std::to_string(*settings.num_nodes) +
                           " but the input channel " + channel_name + " holds a graph: give one of the two");
    std::vector<std::string> labels;
    for (std::size_t node = 0; node < *settings.num_nodes; ++node) labels.push_back(std::to_string(node));
    std::vector<Edge> edges;
    for (const auto& [first, second] : gnm_random_graph(*settings.num_nodes, *settings.num_edges, settings.seed))
        edges.push_back({first, second, 1});
    return ordered_problem(std::move(labels), std::move(edges));
}

void log_metric(const char* name, double value, std::size_t iteration) {
    const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    std::printf("Metrics - timestamp=%.6f; %s=%s; iteration_number=%zu;\n", now, name, Json(value).dump().c_str(),
                iteration);
    std::fflush(stdout);
}

// A whole number without a fraction, so that the cut of an unweighted graph reads 21 and not 21.0.
Json plain(double value) {
    if (value == std::nearbyint(value) && std::abs(value) < 1e15) return static_cast<long long>(value);
    return value;
}

Json median(std::vector<double> values) {
    if (values.empty()) return nullptr;
    std::sort(values.begin(), values.end());
    return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

class Run {
public:
    Run(const Problem& problem, const Hyperparameters& settings)
        : begun_(Clock::now()),
          problem_(problem),
          settings_(settings),
          team_(default_threads()),
          simulator_(problem, settings.reduced(), select_kernels(std::getenv("MAXCUT_KERNELS")), team_),
          checkpoints_(problem, settings),
          recorded_(checkpoints_.load()),
          resumed_from_(std::min(recorded_.size(), settings.num_iterations)),
          setup_seconds_(seconds_since(begun_)) {
        std::printf("%zu nodes, %zu edges on %s; states of up to %u qubits, %s kernels, %u threads\n", problem.nodes(),
                    problem.edges.size(), device, simulator_.bits(), simulator_.kernels().name, team_.size());
    }

    Parameters optimise() {
        Parameters parameters = maxcut::optimise([this](const Parameters& at) { return evaluate(at); }, settings_);
        recorded_.resize(done_);
        return parameters;
    }

    Json result(const Parameters& parameters);

private:
    Evaluation evaluate(const Parameters& parameters) {
        if (done_ < recorded_.size()) {
            const Recorded& recorded = recorded_[done_];
            if (recorded.parameters != parameters)
                throw JobError("CheckpointError",
                               "iteration " + std::to_string(done_) +
                                   " of the checkpoint is at other parameters than this job reaches: it "
                                   "was made by another version of the job. Remove it to start anew.");
            ++done_;
            return recorded.evaluation;
        }
        const auto begun = Clock::now();
        Evaluation evaluation = simulator_.value_and_gradient(parameters);
        const double seconds = seconds_since(begun);
        recorded_.push_back({parameters, evaluation, seconds});
        log_metric("Cost", evaluation.cost, done_);
        log_metric("iteration_seconds", seconds, done_);
        ++done_;
        checkpoints_.save(recorded_);
        return evaluation;
    }

    Clock::time_point begun_;
    const Problem& problem_;
    const Hyperparameters& settings_;
    Team team_;
    Simulator simulator_;
    Checkpoints checkpoints_;
    std::vector<Recorded> recorded_;
    std::size_t resumed_from_, done_ = 0;
    double setup_seconds_;
};

Json Run::result(const Parameters& parameters) {
    const double cost = simulator_.value(parameters);
    log_metric("Cost", cost, done_);
    const Cut best = best_of(problem_, simulator_.sample(parameters, settings_.cut_samples, settings_.seed));
    const double optimum = simulator_.optimum();
    const ClassicalControl control = classical_control(problem_, settings_.cut_samples, settings_.seed);
    const char* const limit = std::getenv("OMP_NUM_THREADS");
    Json costs = Json::array(), labels = Json::array();
    std::vector<double> seconds;
    for (const Recorded& recorded : recorded_) {
        costs.push_back(recorded.evaluation.cost);
        seconds.push_back(recorded.seconds);
    }
    for (const std::string& label : problem_.labels)
        labels.push_back(problem_.integer_labels ? Json(std::stoll(label)) : Json(label));
    return {
        {"cost", cost},
        {"costs", costs},
        {"params", rows(parameters)},
        {"iterations", seconds.size()},
        {"iteration_seconds", seconds},
        {"first_iteration_seconds", seconds[0]},
        {"median_iteration_seconds", median({seconds.begin() + 1, seconds.end()})},
        {"setup_seconds", setup_seconds_},
        {"resumed_from_iteration", resumed_from_},
        {"nodes", problem_.nodes()},
        {"edges", problem_.edges.size()},
        {"node_labels", labels},
        {"p", settings_.p},
        {"diff_method", settings_.diff_method},
        {"reduction", settings_.reduced() ? "symmetry" : "none"},
        {"reduction_reason",
         settings_.reduced() ? "connected components apart, one node of each held" : "the whole state, as asked"},
        {"reduction_work", Json::object()},
        {"circuits", simulator_.parts()},
        {"circuit_executions", simulator_.parts()},
        {"qubits", simulator_.bits()},
        {"device", device},
        {"device_name", "maxcut-cpp"},
        {"gpu", nullptr},
        {"best_cut", plain(best.value)},
        {"best_partition", best.bits},
        {"best_cut_method", "best of " + std::to_string(settings_.cut_samples) + " samples of the final state"},
        {"optimum", plain(optimum)},
        {"cut_upper_bound", plain(optimum)},
        {"approximation_ratio", optimum == 0 ? Json(nullptr) : Json(-cost / optimum)},
        {"best_cut_ratio", optimum == 0 ? Json(nullptr) : Json(best.value / optimum)},
        {"classical_control",
         {{"random_cuts", control.random_cuts},
          {"random_best_cut", plain(control.random_best_cut)},
          {"local_search_starts", control.local_search_starts},
          {"local_search_best_cut", plain(control.local_search_best_cut)}}},
        {"memory_estimate_bytes", simulator_.memory()},
        {"peak_memory_bytes", peak_memory()},
        {"versions", {{"maxcut-cpp", version}, {"compiler", __VERSION__}, {"kernels", simulator_.kernels().name}}},
        {"threads",
         {{"cpus", processors()},
          {"OMP_NUM_THREADS", limit == nullptr ? Json(nullptr) : Json(limit)},
          {"used", team_.size()}}},
        {"seed", settings_.seed},
        {"settings", settings_.as_json()},
    };
}

}  // namespace

void run_job() {
    const Hyperparameters settings = parse_hyperparameters(given_hyperparameters());
    check_device();
    const Problem problem = find_problem(settings);
    const std::string results = variable("AMZN_BRAKET_JOB_RESULTS_DIR");
    if (results.empty())
        throw JobError("ValueError", "AMZN_BRAKET_JOB_RESULTS_DIR is not set. Start this program as a hybrid job.");
    Run run(problem, settings);
    const Parameters parameters = run.optimise();
    write_persisted((fs::path(results) / "results.json").string(), run.result(parameters));
}

void record_failure(const char* reason) {
    const std::string folder = variable("SM_OUTPUT_DIR");
    if (folder.empty()) return;
    const fs::path file = fs::path(folder) / "failure";
    if (!fs::exists(file)) std::ofstream(file) << reason;
}

}  // namespace maxcut
