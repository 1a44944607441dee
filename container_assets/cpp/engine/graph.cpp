#include "graph.hpp"

#include <numeric>

namespace maxcut {

double Problem::total_weight() const {
    return std::accumulate(edges.begin(), edges.end(), 0.0,
                           [](double sum, const Edge& edge) { return sum + edge.weight; });
}

double Problem::cut(const std::string& bits) const {
    double value = 0;
    for (const Edge& edge : edges)
        if (bits[edge.first] != bits[edge.second]) value += edge.weight;
    return value;
}

std::vector<std::vector<std::size_t>> components(const Problem& problem) {
    std::vector<std::size_t> parent(problem.nodes());
    std::iota(parent.begin(), parent.end(), std::size_t{0});
    const auto root = [&](std::size_t node) {
        while (parent[node] != node) node = parent[node] = parent[parent[node]];
        return node;
    };
    std::vector<bool> has_edge(problem.nodes(), false);
    for (const Edge& edge : problem.edges) {
        has_edge[edge.first] = has_edge[edge.second] = true;
        const std::size_t a = root(edge.first), b = root(edge.second);
        parent[a < b ? b : a] = a < b ? a : b;  // the root is the lowest node, so components come in order
    }
    std::vector<std::vector<std::size_t>> found;
    std::vector<std::size_t> number(problem.nodes());
    for (std::size_t node = 0; node < problem.nodes(); ++node) {
        if (!has_edge[node]) continue;
        const std::size_t top = root(node);
        if (top == node) {
            number[node] = found.size();
            found.emplace_back();
        }
        found[number[top]].push_back(node);
    }
    return found;
}

}  // namespace maxcut
