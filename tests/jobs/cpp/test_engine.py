"""The engine's numbers: exact on every graph, by every set of instructions, on any number of threads."""

import json
import subprocess
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qaoa_source.problem import Edge, MaxCutProblem, random_problem
from tests.jobs.cpp import exact
from tests.jobs.cpp.engine import Engine
from tests.jobs.qaoa import oracle

# Building the engine on a busy machine takes minutes.
pytestmark = pytest.mark.timeout(900)

INSTRUCTIONS = ("baseline", "avx2", "avx512")


@pytest.fixture(scope="module")
def usable(program: Path) -> tuple[str, ...]:
    """The instruction sets that this processor has."""
    found = []
    for name in INSTRUCTIONS:
        request = json.dumps({"nodes": 2, "edges": [[0, 1]], "parameters": [[1], [1]], "kernels": name})
        done = subprocess.run([program, "evaluate"], input=request, capture_output=True, text=True, check=False)
        found += [name] if done.returncode == 0 else []
    return tuple(found)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    problem=exact.problems(),
    parameters=oracle.parameters(most_layers=4),
    reduction=st.sampled_from(["symmetry", "none"]),
    which=st.integers(0, 2),
)
def test_cost_gradient_and_optimum_are_those_of_brute_force(
    engine: Engine,
    usable: tuple[str, ...],
    problem: MaxCutProblem,
    parameters: np.ndarray,
    reduction: str,
    which: int,
) -> None:
    answer = engine.answer(problem, parameters, reduction=reduction, kernels=usable[which % len(usable)])
    scale = max(1.0, float(np.abs(problem.weights).sum()))
    expected = oracle.cost(problem, parameters)
    assert answer["cost"] == pytest.approx(expected, abs=1e-12 * scale)
    assert answer["value"] == pytest.approx(expected, abs=1e-12 * scale)
    # A derivative by gamma is a product of two costs.
    assert np.array(answer["gradient"]) == pytest.approx(exact.gradient(problem, parameters), abs=1e-12 * scale**2)
    assert answer["optimum"] == pytest.approx(oracle.cut_of_every_bit_string(problem).max(), abs=1e-12 * scale)


@pytest.mark.parametrize("instructions", INSTRUCTIONS)
@pytest.mark.parametrize("nodes", range(10, 18))
def test_states_of_several_rows_are_exact_too(
    engine: Engine, usable: tuple[str, ...], nodes: int, instructions: str
) -> None:
    if instructions not in usable:
        pytest.skip(f"this processor has no {instructions}")
    problem = random_problem(nodes, 2 * nodes, seed=nodes)
    parameters = np.random.default_rng(nodes).uniform(-2, 2, (2, 3))
    answer = engine.answer(problem, parameters, reduction="none", kernels=instructions)
    assert answer["qubits"] == nodes
    assert answer["cost"] == pytest.approx(oracle.cost(problem, parameters), abs=1e-10)
    reduced = engine.answer(problem, parameters, kernels=instructions)
    assert reduced["qubits"] < nodes
    assert reduced["cost"] == pytest.approx(answer["cost"], abs=1e-10)
    assert np.array(reduced["gradient"]) == pytest.approx(np.array(answer["gradient"]), abs=1e-9)
    if nodes <= 14:
        assert np.array(answer["gradient"]) == pytest.approx(exact.gradient(problem, parameters), abs=1e-9)


@pytest.mark.parametrize("weight", [1.0, 100.0, 0.1])
def test_the_number_of_threads_changes_no_bit(engine: Engine, weight: float) -> None:
    graph = random_problem(20, 40, seed=3)
    edges = (Edge(edge.first, edge.second, weight * (1 + index % 7)) for index, edge in enumerate(graph.edges))
    problem = MaxCutProblem(graph.labels, tuple(edges))
    parameters = np.array([[0.3, -0.2], [0.4, 0.1]])
    one, *more = [engine.answer(problem, parameters, threads=threads) for threads in (1, 2, 3, 8)]
    for other in more:
        assert (other["cost"], other["gradient"], other["value"]) == (one["cost"], one["gradient"], one["value"])


def test_components_cost_what_they_cost_apart(engine: Engine) -> None:
    parts: list[nx.Graph[int]] = [nx.path_graph(2), nx.complete_graph(5), nx.star_graph(3), nx.cycle_graph(7)]
    union = nx.disjoint_union_all([*parts, nx.empty_graph(3)])
    parameters = np.array([[0.4, 0.2, 1.1], [0.3, 0.9, -0.5]])

    def answer(graph: "nx.Graph[int]") -> dict[str, object]:
        edges = tuple(Edge(first, second) for first, second in graph.edges)
        return engine.answer(MaxCutProblem(tuple(graph.nodes), edges), parameters)

    together, apart = answer(union), [answer(part) for part in parts]
    assert together["cost"] == pytest.approx(sum(float(str(each["cost"])) for each in apart), abs=1e-12)
    total = np.sum([np.array(each["gradient"]) for each in apart], axis=0)
    assert np.array(together["gradient"]) == pytest.approx(total, abs=1e-11)
    assert together["qubits"] == 6, "no component has more than 7 nodes"


def test_a_thousand_nodes_in_small_components_are_no_problem(engine: Engine) -> None:
    edges = tuple(Edge(2 * pair, 2 * pair + 1) for pair in range(500))
    parameters = np.array([[0.3], [0.2]])
    answer = engine.answer(MaxCutProblem(tuple(range(1000)), edges), parameters)
    single = engine.answer(MaxCutProblem((0, 1), (Edge(0, 1),)), parameters)
    assert answer["cost"] == pytest.approx(500 * single["cost"])
    assert answer["optimum"] == 500
