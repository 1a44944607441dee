#include "graph_file.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "job_error.hpp"

namespace maxcut {
namespace {

namespace fs = std::filesystem;

JobError graph_error(const std::string& message) { return {"GraphError", message}; }

// Gathers nodes and edges with the line each edge came from, and refuses what Max-Cut has no meaning for.
class Collector {
public:
    explicit Collector(const fs::path& file) : name_(file.filename().string()) {}

    JobError refusal(std::size_t line, const std::string& problem) const {
        return graph_error(name_ + ", line " + std::to_string(line) + ": " + problem);
    }
    std::size_t node(const std::string& label) {
        const auto [place, fresh] = position_.try_emplace(label, labels_.size());
        if (fresh) labels_.push_back(label);
        return place->second;
    }
    void edge(std::size_t line, const std::string& first, const std::string& second, double weight) {
        const std::string both = first + " - " + second;
        if (first == second)
            throw refusal(line, "node " + first + " has an edge to itself, which no cut can contain. Remove it.");
        if (!std::isfinite(weight))
            throw refusal(line, "edge " + both + " has no finite weight. Write a finite number, for example 0 1 2.5.");
        const std::size_t a = node(first), b = node(second);
        const auto [before, fresh] = lines_.try_emplace(std::minmax(a, b), line);
        if (!fresh)
            throw refusal(line, "edge " + both + " is already given in line " + std::to_string(before->second) +
                                    ". Keep one, with the sum as its weight.");
        edges_.push_back({a, b, weight});
    }
    Problem problem() {
        try {
            return ordered_problem(std::move(labels_), std::move(edges_));
        } catch (const JobError& error) {
            throw graph_error(name_ + ": " + error.what());
        }
    }

private:
    std::string name_;
    std::vector<std::string> labels_;
    std::map<std::string, std::size_t> position_;
    std::vector<Edge> edges_;
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> lines_;
};

bool is_integer(const std::string& label) {
    const std::size_t start = label.starts_with('-') ? 1 : 0;
    return label.size() > start && label.size() <= start + 18 &&
           label.find_first_not_of("0123456789", start) == std::string::npos;
}

double weight_of(const Collector& collector, std::size_t line, std::string text) {
    const JobError refusal =
        collector.refusal(line, "'" + text + "' is no weight. Write a finite number, for example 0 1 2.5.");
    std::replace(text.begin(), text.end(), '\'', '"');  // networkx writes the data of an edge as a Python dictionary
    const auto data = nlohmann::json::parse(text, nullptr, false);
    const auto weight = data.is_object() ? data.value("weight", nlohmann::json(1.0)) : data;
    if (!weight.is_number()) throw refusal;
    return weight.get<double>();
}

void read_adjacency(Collector& collector, std::size_t line, std::istringstream& words, const std::string& node) {
    for (std::string neighbour; words >> neighbour;) collector.edge(line, node, neighbour, 1);
}

void read_edge(Collector& collector, std::size_t line, std::istringstream& words, const std::string& node) {
    std::string other, data;
    if (!(words >> other)) return;
    std::getline(words >> std::ws, data);
    collector.edge(line, node, other, data.empty() ? 1 : weight_of(collector, line, data));
}

}  // namespace

Problem read_graph(const fs::path& file) {
    const std::string suffix = file.extension().string();
    const bool adjacency = suffix == ".adjlist";
    if (!adjacency && suffix != ".edgelist" && suffix != ".edges")
        throw graph_error(file.filename().string() + ": '" + suffix +
                          "' is no graph format that this program reads. Use one of .adjlist, .edgelist, .edges.");
    std::ifstream stream(file);
    if (!stream) throw graph_error(file.string() + " can't be read. Check its permissions.");
    Collector collector(file);
    std::string text;
    for (std::size_t line = 1; std::getline(stream, text); ++line) {
        std::istringstream words(text.substr(0, text.find('#')));
        std::string node;
        if (!(words >> node)) continue;
        collector.node(node);
        (adjacency ? read_adjacency : read_edge)(collector, line, words, node);
    }
    return collector.problem();
}

Problem read_channel(const fs::path& channel) {
    std::vector<fs::path> files;
    if (fs::is_directory(channel))
        for (const auto& entry : fs::recursive_directory_iterator(channel))
            if (entry.is_regular_file()) files.push_back(entry.path());
    if (files.size() == 1) return read_graph(files[0]);
    std::sort(files.begin(), files.end());
    std::string names;
    for (const fs::path& file : files) names += (names.empty() ? "" : ", ") + file.filename().string();
    throw graph_error("input channel '" + channel.filename().string() + "' holds " +
                      (names.empty() ? "no file" : names) + ". Give it one graph file.");
}

Problem ordered_problem(std::vector<std::string> labels, std::vector<Edge> edges) {
    if (edges.empty())
        throw graph_error("the graph has " + std::to_string(labels.size()) +
                          " nodes and no edge: there is nothing to cut. Add edges.");
    Problem problem;
    problem.integer_labels = std::all_of(labels.begin(), labels.end(), is_integer);
    const auto value = [&](std::size_t node) { return problem.integer_labels ? std::stoll(labels[node]) : 0; };
    std::vector<std::size_t> order(labels.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return problem.integer_labels ? value(a) < value(b) : labels[a] < labels[b];
    });
    std::vector<std::size_t> position(labels.size());
    for (std::size_t place = 0; place < order.size(); ++place) {
        position[order[place]] = place;
        problem.labels.push_back(labels[order[place]]);
        if (problem.integer_labels && place > 0 && value(order[place]) == value(order[place - 1]))
            throw graph_error("two node names are the same number. Write each node in one way.");
    }
    for (Edge& edge : edges) {
        const auto [first, second] = std::minmax(position[edge.first], position[edge.second]);
        problem.edges.push_back({first, second, edge.weight});
    }
    std::sort(problem.edges.begin(), problem.edges.end(),
              [](const Edge& a, const Edge& b) { return std::pair(a.first, a.second) < std::pair(b.first, b.second); });
    return problem;
}

}  // namespace maxcut
