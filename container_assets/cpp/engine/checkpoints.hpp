// Saves every iteration of a run, and continues a run from what was saved.
//
// A checkpoint holds all evaluations so far. A restarted job runs its optimiser again from the start and answers from
// the record until it is used up, so it continues on exactly the trajectory that it left.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "graph.hpp"
#include "hyperparameters.hpp"
#include "simulator.hpp"

namespace maxcut {

struct Recorded {
    Parameters parameters;
    Evaluation evaluation;
    double seconds = 0;
};

class Checkpoints {
public:
    // `origin` is everything that a trajectory follows from.
    Checkpoints(const Problem& problem, const Hyperparameters& settings);

    void save(const std::vector<Recorded>& evaluations) const;
    // The evaluations of this job's checkpoint, or else of the job that copy_checkpoints_from_job names. Throws
    // JobError where a checkpoint can't be read, or is of another problem or other settings.
    std::vector<Recorded> load() const;

private:
    std::vector<Recorded> read(const std::string& job) const;

    std::string folder_, job_;
    std::optional<std::string> other_job_;
    nlohmann::json origin_;
};

// A results or checkpoint file as the Braket SDK reads it. The file under its name is always whole.
void write_persisted(const std::string& file, const nlohmann::json& data);

}  // namespace maxcut
