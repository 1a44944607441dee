"""Max-Cut QAOA by edge cones: equal to every other way to compute it, on any graph."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.jobs import process_memory
from tests.jobs.contraction.brute_force import central_differences, qaoa_circuit, qaoa_energy

pytest.importorskip("numba", reason="the compiled sweeps of the contraction simulator need numba")

from contraction import TooLargeError, UnsupportedCircuitError, maxcut_qaoa

TOLERANCE = 1e-10


def prepared(graph: nx.Graph, depth: int, **options: object):
    return maxcut_qaoa(graph, depth, plan_folder=None, **options)


@st.composite
def problems(draw: st.DrawFn) -> tuple[nx.Graph, np.ndarray]:
    nodes = draw(st.integers(2, 9))
    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    pairs = [(u, v) for u in range(nodes) for v in range(u)]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    weighted = draw(st.booleans())
    for u, v in chosen:
        graph.add_edge(u, v, **({"weight": draw(st.floats(-2, 2).map(lambda w: round(w, 3)))} if weighted else {}))
    depth = draw(st.integers(1, 3))
    angles = draw(st.lists(st.floats(-3, 3), min_size=2 * depth, max_size=2 * depth))
    return graph, np.array(angles).reshape(2, depth)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problems(), st.sampled_from([2.0**30, 2.0**30, 2.0**14, 2.0**12]))
def test_value_and_gradient_agree_with_all_amplitudes(
    problem: tuple[nx.Graph, np.ndarray], memory_limit: float
) -> None:
    graph, angles = problem
    try:
        qaoa = prepared(graph, angles.shape[1], memory_limit=memory_limit)
    except TooLargeError:
        assert memory_limit < 2.0**30, "without slices all of these fit"
        assume(False)
    assert qaoa.cost.bytes <= memory_limit
    value, gradient = qaoa.value_and_gradient(*angles)
    scale = 1 + sum(abs(data.get("weight", 1.0)) for *_, data in graph.edges(data=True))
    assert value == pytest.approx(qaoa_energy(graph, *angles), abs=TOLERANCE * scale)
    # No phase of the cost turns faster than its scale, nor than the mixer's.
    step = min(0.01, 0.05 / max(scale, 2 * len(graph)))
    expected = central_differences(lambda point: qaoa_energy(graph, *point), angles, step)
    np.testing.assert_allclose(gradient, expected, atol=1e-9 * scale)


@pytest.mark.parametrize(("nodes", "edges", "depth"), [(18, 24, 1), (18, 24, 2), (16, 24, 3)])
def test_agrees_with_lightning_on_the_published_graphs(nodes: int, edges: int, depth: int) -> None:
    qml = pytest.importorskip("pennylane")
    graph = nx.gnm_random_graph(nodes, edges, seed=1967)
    rng = np.random.default_rng(1)
    angles = qml.numpy.array(rng.normal(size=(2, depth)), requires_grad=True)
    node = qml.QNode(
        lambda point: qaoa_circuit(qml, graph, point[0], point[1]),
        qml.device("lightning.qubit", wires=nodes),
        diff_method="adjoint",
    )
    value, gradient = prepared(graph, depth).value_and_gradient(*np.asarray(angles))
    assert value == pytest.approx(float(node(angles)) - edges / 2, abs=TOLERANCE)
    np.testing.assert_allclose(gradient, qml.grad(node)(angles), atol=TOLERANCE)


@pytest.mark.parametrize(
    "graph", [nx.random_regular_graph(3, 60, seed=5), nx.gnm_random_graph(200, 300, seed=1967)], ids=["regular", "gnm"]
)
def test_agrees_with_an_independent_contraction_beyond_state_vectors(quimb: Any, graph: nx.Graph) -> None:
    gammas, betas = [0.4, 0.7], [0.6, 0.3]
    circuit = quimb.Circuit(len(graph))
    for node in graph:
        circuit.h(node)
    for gamma, beta in zip(gammas, betas, strict=True):
        for u, v in graph.edges:
            circuit.rzz(gamma, u, v)
        for node in graph:
            circuit.rx(2 * beta, node)
    correlations = prepared(graph, 2).edge_correlations(gammas, betas)
    zz = np.diag([1.0, -1.0, -1.0, 1.0])
    # All 90 and 300 edges take two minutes: INDEPENDENT_EDGES=300 checks them.
    for edge in list(graph.edges)[: int(os.environ.get("INDEPENDENT_EDGES", "3"))]:
        expected = circuit.local_expectation(zz, edge, optimize="greedy", simplify_sequence="ADCRS").real
        assert correlations[edge] == pytest.approx(expected, abs=TOLERANCE)


def test_gradient_of_200_nodes_agrees_with_central_differences() -> None:
    graph = nx.gnm_random_graph(200, 300, seed=1967)
    qaoa = prepared(graph, 2)
    angles = np.array([[0.3, 0.5], [0.4, 0.2]])
    _, gradient = qaoa.value_and_gradient(*angles)
    np.testing.assert_allclose(
        gradient, central_differences(lambda point: qaoa.value(*point), angles), rtol=1e-8, atol=1e-8
    )


def test_an_edge_alone_has_its_known_correlation() -> None:
    graph = nx.Graph()
    graph.add_nodes_from(["left", "right", "alone"])
    graph.add_edge("left", "right", weight=1.7)
    qaoa = prepared(graph, 1)
    gamma, beta = 0.4, 0.9
    assert qaoa.edge_correlations([gamma], [beta]) == {
        ("left", "right"): pytest.approx(-np.sin(4 * beta) * np.sin(1.7 * gamma) * -1, abs=TOLERANCE)
    }


def test_edges_with_equal_cones_share_one_contraction() -> None:
    ring = prepared(nx.cycle_graph(300), 2)
    assert len(ring.parts[0].classes) == 1
    tree_like = prepared(nx.random_regular_graph(3, 300, seed=2), 2)
    assert len(tree_like.parts[0].classes) < 30


@pytest.mark.parametrize("share", [2, 3, 8])
def test_cones_that_do_not_fit_are_sliced_to_the_same_result(share: int, tmp_path: Path) -> None:
    graph = nx.gnm_random_graph(24, 40, seed=7)
    for u, v in list(graph.edges)[::3]:
        graph.edges[u, v]["weight"] = -0.7
    angles = [0.3, 0.8], [0.2, 0.6]
    whole = prepared(graph, 2)
    limit = whole.cost.bytes / share
    value, gradient = whole.value_and_gradient(*angles)
    for _ in ("searched", "from disk"):
        sliced = maxcut_qaoa(graph, 2, memory_limit=limit, plan_folder=tmp_path)
        assert sliced.cost.bytes <= limit
        # The first variable to be fixed takes one slice only, for the symmetry.
        assert sliced.cost.slices > 1 or share < 8
        found, its_gradient = sliced.value_and_gradient(*angles)
        assert found == pytest.approx(value, abs=TOLERANCE)
        np.testing.assert_allclose(its_gradient, gradient, atol=TOLERANCE)
        assert sliced.edge_correlations(*angles) == pytest.approx(whole.edge_correlations(*angles), abs=TOLERANCE)
    with pytest.raises(TooLargeError, match="bits wide"):
        prepared(graph, 2, memory_limit=limit, slicing=False)


def test_relabelled_graphs_have_the_same_energy() -> None:
    graph = nx.gnm_random_graph(30, 45, seed=3)
    shuffled = nx.relabel_nodes(
        graph, dict(zip(range(30), np.random.default_rng(0).permutation(30).tolist(), strict=True))
    )
    angles = [0.3, 0.8], [0.2, 0.6]
    assert prepared(shuffled, 2).value(*angles) == pytest.approx(prepared(graph, 2).value(*angles), abs=TOLERANCE)


@pytest.mark.parametrize(
    ("graph", "depth", "named"),
    [
        (nx.DiGraph([(0, 1)]), 1, "DiGraph"),
        (nx.MultiGraph([(0, 1), (0, 1)]), 1, "MultiGraph"),
        (nx.Graph([(0, 0)]), 1, "loop"),
        (nx.empty_graph(3), 1, "without edges"),
        (nx.path_graph(3), 0, "depth = 0"),
        (nx.Graph([(0, 1, {"weight": float("nan")})]), 1, "nan"),
    ],
)
def test_graphs_without_a_meaning_are_refused_by_name(graph: nx.Graph, depth: int, named: str) -> None:
    with pytest.raises(UnsupportedCircuitError, match=named):
        prepared(graph, depth)


@pytest.mark.parametrize(("graph", "depth"), [(nx.complete_graph(40), 2), (nx.gnm_random_graph(60, 240, seed=1), 3)])
def test_what_fits_nowhere_is_refused_with_the_numbers_before_memory_is_taken(graph: nx.Graph, depth: int) -> None:
    before = process_memory.forget_peak()
    numbers = (
        r"bits wide and needs .*B, .* operations, .*a gradient\. Take a shallower .*; a state vector of \d+ qubits"
    )
    with pytest.raises(TooLargeError, match=numbers):
        prepared(graph, depth, memory_limit=2**30)
    assert process_memory.peak() - before < 300 * 1024


def test_a_dense_small_graph_is_referred_to_the_state_vector() -> None:
    with pytest.raises(TooLargeError, match=r"Use lightning.qubit: a state vector of 15 qubits"):
        prepared(nx.complete_graph(16), 2, memory_limit=2**23, slicing=False)


@pytest.mark.parametrize(
    ("nodes", "edges", "depth", "faster"),
    [
        (16, 24, 3, "contraction"),
        (16, 24, 4, "state vector"),
        (20, 60, 2, "contraction"),
        (16, 60, 2, "state vector"),
    ],
)
def test_the_method_that_was_measured_faster_is_chosen(nodes: int, edges: int, depth: int, faster: str) -> None:
    assert prepared(nx.gnm_random_graph(nodes, edges, seed=1967), depth).cost.faster == faster


@pytest.mark.parametrize("beyond", [{"seconds": 1e6}, {"width": 35}], ids=["takes days", "never planned"])
def test_what_no_memory_helps_is_not_answered_with_more_of_it(beyond: dict[str, float]) -> None:
    cost = replace(prepared(nx.cycle_graph(40), 2).cost, bytes=2.0**33, **beyond)
    with pytest.raises(TooLargeError, match=r"gradient\. Take a shallower circuit or a sparser graph; a state vector"):
        cost.require(2.0**32)


def test_the_limit_that_a_refusal_names_suffices() -> None:
    graph = nx.gnm_random_graph(16, 24, seed=1967)
    with pytest.raises(TooLargeError) as refusal:
        prepared(graph, 3, memory_limit=2**12)
    named = re.search(r"Raise the limit to ([\d.]+) KiB, or take a shallower circuit", str(refusal.value))
    assert named is not None, refusal.value
    limit = float(named[1]) * 2**10
    assert prepared(graph, 3, memory_limit=limit).cost.bytes <= limit


@pytest.mark.parametrize(("needed", "named"), [(2.0**33, "8 GiB"), (2.0**32 + 1, "4.01 GiB"), (1000.5, "1001 B")])
def test_the_bytes_that_a_refusal_names_are_never_too_few(needed: float, named: str) -> None:
    cost = replace(prepared(nx.cycle_graph(40), 2).cost, bytes=needed)
    with pytest.raises(TooLargeError, match=f"Raise the limit to {named}, or"):
        cost.require(needed * (1 - 1e-12))


def test_memory_is_flat_over_500_iterations() -> None:
    qaoa = prepared(nx.gnm_random_graph(100, 150, seed=1967), 2)
    for _ in range(20):
        qaoa.value_and_gradient([0.3, 0.5], [0.4, 0.2])
    before = process_memory.forget_peak()
    for _ in range(500):
        qaoa.value_and_gradient([0.3, 0.5], [0.4, 0.2])
    assert process_memory.peak() - before <= 2048
