#include "hyperparameters.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "job_error.hpp"
#include "random.hpp"

namespace maxcut {
namespace {

using Json = nlohmann::json;
using Setter = std::function<void(Hyperparameters&, const std::string&)>;

// What is wrong with one value; the name and the value are added by whoever catches it.
struct Refusal : std::runtime_error {
    using std::runtime_error::runtime_error;
};

std::uint64_t integer(const std::string& text, std::uint64_t low, std::uint64_t high) {
    std::uint64_t number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem != std::errc() || end != text.data() + text.size() || number < low || number > high)
        throw Refusal("give a whole number from " + std::to_string(low) + " to " + std::to_string(high));
    return number;
}

double positive(const std::string& text) {
    double number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem != std::errc() || end != text.data() + text.size() || !std::isfinite(number) || number <= 0)
        throw Refusal("give a positive number");
    return number;
}

std::string choice(const std::string& text, const std::vector<std::string>& options,
                   const std::string& otherwise = "") {
    if (std::find(options.begin(), options.end(), text) != options.end()) return text;
    std::string list;
    for (const std::string& option : options) list += (list.empty() ? "" : ", ") + option;
    throw Refusal("give " + std::string(options.size() > 1 ? "one of " : "") + list + otherwise);
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char letter) { return std::tolower(letter); });
    return text;
}

bool boolean(const std::string& text) { return choice(lower(text), {"true", "false"}) == "true"; }

void no_shots(const std::string& text) {
    const std::string value = lower(text);
    if (!value.empty() && value != "none" && value != "0")
        throw Refusal("this engine is exact and draws no shots: leave it out, or use qaoa_source");
}

Parameters initial(const std::string& text) {
    try {
        return parameters_from(Json::parse(text));
    } catch (const std::exception&) {
        throw Refusal("give two lists of p finite numbers, gammas then betas, for example [[0.1, 0.2], [0.3, 0.4]]");
    }
}

std::string job_name(const std::string& text) {
    if (text.empty()) throw Refusal("give the name of a job, or leave it out");
    return text;
}

const std::string elsewhere = "; qaoa_source has the others";

const std::map<std::string, Setter>& setters() {
    static const std::map<std::string, Setter> all = {
        {"p", [](auto& h, auto& t) { h.p = integer(t, 1, 50); }},
        {"seed", [](auto& h, auto& t) { h.seed = static_cast<std::uint32_t>(integer(t, 0, 0xffffffffu)); }},
        {"num_iterations", [](auto& h, auto& t) { h.num_iterations = integer(t, 1, 100'000); }},
        {"stepsize", [](auto& h, auto& t) { h.stepsize = positive(t); }},
        {"shots", [](auto&, auto& t) { no_shots(t); }},
        {"interface", [](auto& h, auto& t) { h.interface = choice(t, {"auto"}, elsewhere); }},
        {"diff_method", [](auto& h, auto& t) { h.diff_method = choice(t, {"adjoint"}, elsewhere); }},
        {"reduction", [](auto& h, auto& t) { h.reduction = choice(t, {"none", "symmetry", "auto"}, elsewhere); }},
        {"optimizer", [](auto& h, auto& t) { h.optimizer = choice(t, {"gradient-descent", "adam"}, elsewhere); }},
        {"precision", [](auto& h, auto& t) { h.precision = choice(t, {"double"}, elsewhere); }},
        {"initial_parameters", [](auto& h, auto& t) { h.initial_parameters = initial(t); }},
        {"num_nodes", [](auto& h, auto& t) { h.num_nodes = integer(t, 2, 100'000); }},
        {"num_edges", [](auto& h, auto& t) { h.num_edges = integer(t, 1, 10'000'000); }},
        {"cut_samples", [](auto& h, auto& t) { h.cut_samples = integer(t, 1, 1'000'000); }},
        {"copy_checkpoints_from_job", [](auto& h, auto& t) { h.copy_checkpoints_from_job = job_name(t); }},
        {"max_parallel", [](auto& h, auto& t) { h.max_parallel = integer(t, 1, 1000); }},
        {"parametrize_differentiable", [](auto& h, auto& t) { h.parametrize_differentiable = boolean(t); }},
    };
    return all;
}

std::size_t edit_distance(const std::string& one, const std::string& other) {
    std::vector<std::size_t> row(other.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= one.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i);
        for (std::size_t j = 1; j <= other.size(); ++j)
            diagonal =
                std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, diagonal + (one[i - 1] != other[j - 1])}));
    }
    return row.back();
}

std::string unknown(const std::string& name) {
    std::string nearest;
    std::size_t distance = name.size() / 3 + 1;
    for (const auto& [known, setter] : setters())
        if (const std::size_t now = edit_distance(name, known); now < distance) {
            distance = now;
            nearest = known;
        }
    return name + " is unknown, " + (nearest.empty() ? "leave it out" : "did you mean " + nearest + "?");
}

void add_contradictions(const Hyperparameters& settings, std::vector<std::string>& problems) {
    if (settings.initial_parameters && settings.initial_parameters->layers() != settings.p)
        problems.push_back("initial_parameters has " + std::to_string(settings.initial_parameters->layers()) +
                           " gammas and betas but p = " + std::to_string(settings.p) + ": give p of each");
    if (settings.num_nodes.has_value() != settings.num_edges.has_value()) {
        problems.push_back("num_nodes and num_edges describe a generated graph together: give both or neither");
    } else if (settings.num_nodes) {
        const std::size_t most = *settings.num_nodes * (*settings.num_nodes - 1) / 2;
        if (*settings.num_edges > most)
            problems.push_back("num_edges = " + std::to_string(*settings.num_edges) + ": " +
                               std::to_string(*settings.num_nodes) + " nodes have at most " + std::to_string(most) +
                               " edges");
    }
}

std::string trimmed(const std::string& text) {
    const std::size_t start = text.find_first_not_of(" \t\n");
    return start == std::string::npos ? "" : text.substr(start, text.find_last_not_of(" \t\n") - start + 1);
}

template <typename Value>
Json or_null(const std::optional<Value>& value) {
    return value ? Json(*value) : Json(nullptr);
}

}  // namespace

Json rows(const Parameters& parameters) { return Json::array({parameters.gammas, parameters.betas}); }

Parameters parameters_from(const Json& rows) {
    Parameters parameters{rows.at(0).get<std::vector<double>>(), rows.at(1).get<std::vector<double>>()};
    const auto finite = [](const std::vector<double>& row) {
        return std::all_of(row.begin(), row.end(), [](double value) { return std::isfinite(value); });
    };
    if (rows.size() != 2 || parameters.gammas.empty() || parameters.gammas.size() != parameters.betas.size() ||
        !finite(parameters.gammas) || !finite(parameters.betas))
        throw std::invalid_argument("parameters are two lists of p finite numbers, gammas then betas");
    return parameters;
}

Hyperparameters parse_hyperparameters(const std::map<std::string, std::string>& given) {
    Hyperparameters settings;
    std::vector<std::string> problems;
    for (const auto& [name, text] : given) {
        if (name.starts_with("sagemaker_")) continue;
        const auto setter = setters().find(name);
        if (setter == setters().end()) {
            problems.push_back(unknown(name));
            continue;
        }
        try {
            setter->second(settings, trimmed(text));
        } catch (const Refusal& refusal) {
            problems.push_back(name + " = '" + text + "': " + refusal.what());
        }
    }
    add_contradictions(settings, problems);
    if (problems.empty()) return settings;
    std::string message =
        std::to_string(problems.size()) + " invalid hyperparameter" + (problems.size() > 1 ? "s" : "");
    for (std::size_t index = 0; index < problems.size(); ++index)
        message += (index == 0 ? ": " : "; ") + problems[index];
    throw JobError("HyperparameterError", message);
}

Parameters Hyperparameters::start() const {
    if (initial_parameters) return *initial_parameters;
    MersenneTwister generator = MersenneTwister::as_numpy(seed);
    Parameters parameters;
    for (auto* row : {&parameters.gammas, &parameters.betas})
        for (std::size_t layer = 0; layer < p; ++layer) row->push_back(0.01 * generator.uniform());
    return parameters;
}

Json Hyperparameters::as_json() const {
    return {
        {"p", p},
        {"seed", seed},
        {"num_iterations", num_iterations},
        {"stepsize", stepsize},
        {"shots", nullptr},
        {"interface", interface},
        {"diff_method", diff_method},
        {"reduction", reduction},
        {"optimizer", optimizer},
        {"precision", precision},
        {"initial_parameters", initial_parameters ? rows(*initial_parameters) : Json(nullptr)},
        {"num_nodes", or_null(num_nodes)},
        {"num_edges", or_null(num_edges)},
        {"cut_samples", cut_samples},
        {"copy_checkpoints_from_job", or_null(copy_checkpoints_from_job)},
        {"max_parallel", max_parallel},
        {"parametrize_differentiable", parametrize_differentiable},
    };
}

}  // namespace maxcut
