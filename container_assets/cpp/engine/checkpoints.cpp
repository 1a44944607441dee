#include "checkpoints.hpp"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "job_error.hpp"
#include "process.hpp"

namespace maxcut {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

std::string file_of(const std::string& folder, const std::string& job) {
    return (fs::path(folder) / (job + "_checkpoint-1.json")).string();
}

// FNV-1a, to tell graphs apart.
std::string hash_of(const std::string& text) {
    std::uint64_t hash = 14695981039346656037u;
    for (const unsigned char letter : text) hash = (hash ^ letter) * 1099511628211u;
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
    return digits;
}

Json origin_of(const Problem& problem, const Hyperparameters& settings) {
    Json values = settings.as_json();
    // A job continues an older one for longer or samples it more, but can't change what its iterations came from.
    for (const char* free :
         {"num_iterations", "cut_samples", "copy_checkpoints_from_job", "max_parallel", "num_nodes", "num_edges"})
        values.erase(free);
    Json graph = Json::array({Json(problem.labels)});
    for (const Edge& edge : problem.edges) graph.push_back(Json::array({edge.first, edge.second, edge.weight}));
    values["graph"] = hash_of(graph.dump());
    return values;
}

}  // namespace

Checkpoints::Checkpoints(const Problem& problem, const Hyperparameters& settings)
    : folder_(variable("AMZN_BRAKET_CHECKPOINT_DIR")),
      job_(variable("AMZN_BRAKET_JOB_NAME")),
      other_job_(settings.copy_checkpoints_from_job),
      origin_(origin_of(problem, settings)) {}

void Checkpoints::save(const std::vector<Recorded>& evaluations) const {
    if (folder_.empty()) return;
    Json list = Json::array();
    for (const Recorded& recorded : evaluations)
        list.push_back({{"params", rows(recorded.parameters)},
                        {"cost", recorded.evaluation.cost},
                        {"gradient", rows(recorded.evaluation.gradient)},
                        {"seconds", recorded.seconds}});
    write_persisted(file_of(folder_, job_), {{"origin", origin_}, {"evaluations", list}});
}

std::vector<Recorded> Checkpoints::load() const {
    if (folder_.empty()) return {};
    if (fs::exists(file_of(folder_, job_))) return read(job_);
    if (!other_job_) return {};
    if (fs::exists(file_of(folder_, *other_job_))) return read(*other_job_);
    throw JobError("CheckpointError",
                   "copy_checkpoints_from_job = '" + *other_job_ + "': no " + *other_job_ +
                       "_checkpoint-1.json in the checkpoint directory. Copy that job's checkpoints to this job's "
                       "checkpoint location, or leave it out.");
}

std::vector<Recorded> Checkpoints::read(const std::string& job) const {
    const std::string file = file_of(folder_, job);
    std::vector<Recorded> evaluations;
    Json found;
    try {
        std::ifstream stream(file);
        const Json data = Json::parse(stream).at("dataDictionary");
        for (const Json& item : data.at("evaluations"))
            evaluations.push_back({parameters_from(item.at("params")),
                                   {item.at("cost").get<double>(), parameters_from(item.at("gradient"))},
                                   item.at("seconds").get<double>()});
        found = data.at("origin");
    } catch (const std::exception&) {
        throw JobError("CheckpointError", file + ": not a checkpoint of this job. Remove it to start anew.");
    }
    std::string differing, example;
    for (const auto& [name, value] : origin_.items())
        if (!found.contains(name) || found[name] != value) {
            if (differing.empty())
                example = name + " was " + found.value(name, Json(nullptr)).dump() + ", is " + value.dump();
            differing += (differing.empty() ? "" : ", ") + name;
        }
    if (!differing.empty() || found.size() != origin_.size())
        throw JobError("CheckpointError", file + ": made with another " + differing + " (" + example +
                                              "). Give the same values to continue it, or remove it to start anew.");
    return evaluations;
}

void write_persisted(const std::string& file, const Json& data) {
    const Json document = {{"braketSchemaHeader", {{"name", "braket.jobs_data.persisted_job_data"}, {"version", "1"}}},
                           {"dataDictionary", data},
                           {"dataFormat", "plaintext"}};
    const std::string writing = file + ".writing";
    {
        std::ofstream stream(writing);
        stream << document.dump();
        if (!stream.flush()) throw JobError("OSError", file + " can't be written. Check the free space of the volume.");
    }
    fs::rename(writing, file);
}

}  // namespace maxcut
