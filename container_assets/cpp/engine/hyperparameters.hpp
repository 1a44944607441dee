// The job's hyperparameters: those of qaoa_source, read as strings and checked all at once before any work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "simulator.hpp"

namespace maxcut {

// The names and meanings are qaoa_source's. This engine is exact, in double precision and differentiates by its own
// adjoint pass, so every value of shots, interface, diff_method, precision and optimizer that would ask for something
// else is refused. reduction "auto" means "symmetry": connected components apart, one bit of each held.
struct Hyperparameters {
    std::size_t p = 2;
    std::uint32_t seed = 1967;
    std::size_t num_iterations = 5;
    double stepsize = 0.1;
    std::string interface = "auto";
    std::string diff_method = "adjoint";
    std::string reduction = "auto";
    std::string optimizer = "gradient-descent";
    std::string precision = "double";
    std::optional<Parameters> initial_parameters;
    std::optional<std::size_t> num_nodes, num_edges;
    std::size_t cut_samples = 1000;
    std::optional<std::string> copy_checkpoints_from_job;
    std::size_t max_parallel = 10;
    bool parametrize_differentiable = true;

    bool reduced() const { return reduction != "none"; }
    // The parameters of the first iteration: those given, or the documented job's small random values.
    Parameters start() const;
    nlohmann::json as_json() const;
};

// Throws JobError that names every invalid or unknown hyperparameter, its value and the remedy. Names beginning
// "sagemaker_" belong to the container and are passed over.
Hyperparameters parse_hyperparameters(const std::map<std::string, std::string>& given);

nlohmann::json rows(const Parameters& parameters);
Parameters parameters_from(const nlohmann::json& rows);

}  // namespace maxcut
