"""Every reduction gives the unreduced circuit's cost, gradient and final state, exactly."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray
from scipy.stats import chisquare

from qaoa_source import cuts
from qaoa_source.ansatz import folded_angle
from qaoa_source.devices import open_device, parse_device
from qaoa_source.evaluation import AdjointMethod, Objective
from qaoa_source.hyperparameters import Hyperparameters
from qaoa_source.problem import MaxCutProblem, problem_from_edges, random_problem
from qaoa_source.reductions import component_states, plan
from tests.jobs.qaoa import oracle


@pytest.fixture(scope="module")
def device() -> Any:
    return open_device(parse_device("local:pennylane/lightning.qubit"), Hyperparameters(), wires=12, seed=5)


def reduced(problem: MaxCutProblem, p: int, reduction: str, device: Any) -> Objective:
    return Objective(problem, plan(problem, p, reduction).circuits, device, AdjointMethod(device))


@pytest.mark.parametrize("reduction", ["symmetry", "light-cone"])
@settings(max_examples=320, deadline=None)
@given(problem=oracle.problems(most_nodes=12), parameters=oracle.parameters(most_layers=4))
def test_cost_and_gradient_equal_brute_force(
    reduction: str, device: Any, problem: MaxCutProblem, parameters: NDArray[np.float64]
) -> None:
    ours = reduced(problem, parameters.shape[1], reduction, device)
    cost, gradient = ours.value_and_gradient(parameters)
    assert cost == pytest.approx(oracle.cost(problem, parameters), abs=1e-9)
    slope, direction = oracle.slope(problem, parameters)
    assert float(np.sum(gradient * direction)) == pytest.approx(slope, abs=1e-8)


@settings(max_examples=25, deadline=None)
@given(problem=oracle.problems(most_nodes=11), parameters=oracle.parameters(most_layers=2))
def test_larger_graphs_equal_the_unreduced_circuit(
    device: Any, problem: MaxCutProblem, parameters: NDArray[np.float64]
) -> None:
    p = parameters.shape[1]
    cost, gradient = reduced(problem, p, "none", device).value_and_gradient(parameters)
    for reduction in ("symmetry", "light-cone"):
        ours = reduced(problem, p, reduction, device)
        their_cost, their_gradient = ours.value_and_gradient(parameters)
        assert their_cost == pytest.approx(cost, abs=1e-9)
        np.testing.assert_allclose(their_gradient, gradient, atol=1e-8)
        assert ours.value(parameters) == pytest.approx(cost, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(problem=oracle.problems(most_nodes=7), parameters=oracle.parameters(most_layers=3))
def test_correlation_of_each_edge(device: Any, problem: MaxCutProblem, parameters: NDArray[np.float64]) -> None:
    probabilities = np.abs(oracle.state(problem, parameters)) ** 2
    index = np.arange(probabilities.size)
    for reduction in ("symmetry", "light-cone"):
        found = reduced(problem, parameters.shape[1], reduction, device).correlations(parameters)
        for edge, correlation in zip(problem.edges, found, strict=True):
            differ = (index >> (problem.nodes - 1 - edge.first) ^ index >> (problem.nodes - 1 - edge.second)) & 1
            assert correlation == pytest.approx(probabilities @ (1 - 2 * differ), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(problem=oracle.problems(most_nodes=12), parameters=oracle.parameters(most_layers=4))
def test_samples_follow_the_distribution_of_the_final_state(
    device: Any, problem: MaxCutProblem, parameters: NDArray[np.float64]
) -> None:
    count = 4000
    bits = cuts.sample(problem, component_states(problem, parameters.shape[1]), parameters, device, count)
    # A sampled string stands for all that flip whole components, isolated nodes among them, so cuts are compared.
    values, inverse = np.unique(np.round(oracle.cut_of_every_bit_string(problem), 9), return_inverse=True)
    expected = count * np.bincount(inverse, weights=np.abs(oracle.state(problem, parameters)) ** 2)
    drawn = np.searchsorted(values, np.round(problem.cut_values(bits), 9))
    observed = np.bincount(drawn, minlength=values.size).astype(np.float64)
    common = expected > 5
    observed = np.append(observed[common], observed[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    possible = expected > 1e-6
    assert observed[~possible].sum() == 0
    if np.count_nonzero(possible) > 1:
        assert chisquare(observed[possible], expected[possible] * count / expected[possible].sum()).pvalue > 1e-6


def expected_cut_of_an_edge_at_depth_one(
    graph: "nx.Graph[int]", first: int, second: int, gamma: float, beta: float
) -> float:
    """The closed formula of Wang, Hadfield, Jiang and Rieffel (2018), for exp(-i gamma C)."""
    triangles = len(list(nx.common_neighbors(graph, first, second)))
    left, right = graph.degree(first) - 1, graph.degree(second) - 1
    cosine = np.cos(gamma)
    linear = np.sin(4 * beta) * np.sin(gamma) * (cosine**left + cosine**right) / 4
    pair = np.sin(2 * beta) ** 2 * cosine ** (left + right - 2 * triangles) * (1 - np.cos(2 * gamma) ** triangles) / 4
    return float(0.5 + linear - pair)


def test_200_nodes_at_depth_one_equal_the_closed_formula(device: Any) -> None:
    graph = nx.gnm_random_graph(200, 300, seed=1967)
    problem = random_problem(200, 300, 1967)
    chosen = plan(problem, 1, "auto")
    assert chosen.reduction == "light-cone"
    assert chosen.wires < 15
    parameters = np.array([[0.43], [0.31]])
    found = reduced(problem, 1, "light-cone", device).correlations(parameters)
    for edge, correlation in zip(problem.edges, found, strict=True):
        # Their phase operator is exp(-i gamma C), ours exp(-i gamma H_C) with H_C = -C.
        expected = expected_cut_of_an_edge_at_depth_one(graph, edge.first, edge.second, -0.43, 0.31)
        assert (1 - correlation) / 2 == pytest.approx(expected, abs=1e-9)


def test_150_nodes_at_depth_two_equal_each_edges_neighbourhood(device: Any) -> None:
    graph = nx.random_regular_graph(3, 150, seed=4)
    problem = problem_from_edges(list(graph.nodes), [(first, second, 1.0) for first, second in graph.edges])
    parameters = np.array([[0.4, 0.7], [0.5, 0.2]])
    ours = reduced(problem, 2, "light-cone", device)
    assert len(ours.circuits) < 20, "edges of a regular graph have few kinds of neighbourhood"
    found = ours.correlations(parameters)
    for index in range(0, len(problem.edges), 45):
        edge = problem.edges[index]
        near = set(nx.ego_graph(graph, edge.first, 2)) | set(nx.ego_graph(graph, edge.second, 2))
        local = problem_from_edges(sorted(near), [(*pair, 1.0) for pair in graph.subgraph(near).edges])
        first, second = local.labels.index(edge.first), local.labels.index(edge.second)
        probabilities = np.abs(oracle.state(local, parameters)) ** 2
        states = np.arange(probabilities.size)
        differ = (states >> (local.nodes - 1 - first) ^ states >> (local.nodes - 1 - second)) & 1
        assert found[index] == pytest.approx(probabilities @ (1 - 2 * differ), abs=1e-9)
    differences = oracle.central_differences(ours.value, parameters, step=0.02)
    np.testing.assert_allclose(ours.value_and_gradient(parameters)[1], differences, atol=1e-8)


@given(problem=oracle.problems(most_nodes=8), parameters=oracle.parameters(most_layers=3))
@settings(max_examples=50, deadline=None)
def test_auto_takes_the_least_work_and_says_why(problem: MaxCutProblem, parameters: NDArray[np.float64]) -> None:
    p = parameters.shape[1]
    chosen = plan(problem, p, "auto")
    assert chosen.work == min(chosen.compared.values()) == chosen.compared[chosen.reduction]
    assert set(chosen.compared) == {"none", "symmetry", "light-cone"}
    for name in chosen.compared:
        assert f"{chosen.compared[name]:.1e}" in chosen.reason


def test_edges_alike_share_one_circuit(device: Any) -> None:
    complete = problem_from_edges(range(9), [(a, b, 1.0) for b in range(9) for a in range(b)])
    chosen = plan(complete, 2, "light-cone")
    assert [len(circuit.terms) for circuit in chosen.circuits] == [1]
    assert chosen.circuits[0].terms[0].edges == tuple(range(36))


def test_dense_graph_is_planned_quickly_and_left_to_the_memory_check() -> None:
    chosen = plan(random_problem(60, 900, 1), 2, "auto")
    assert chosen.wires > 40


@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.3, -1.7, 2.2), (1.0,)])
@pytest.mark.parametrize("parameter", [0.0, 1e-9, -1e-9, 0.01, 0.7, -2.3, np.pi])
def test_folded_angle(parameter: float, weights: tuple[float, ...]) -> None:
    angle, slope = folded_angle(parameter, weights)
    assert np.cos(angle) == pytest.approx(np.prod(np.cos(np.multiply(weights, parameter))), abs=1e-15)
    step = 1e-6
    if 0.001 < abs(parameter) < 3:
        ahead, behind = (folded_angle(parameter + sign * step, weights)[0] for sign in (1, -1))
        assert slope == pytest.approx((ahead - behind) / (2 * step), abs=1e-6)
    assert np.isfinite(slope)
