"""The same job on the contraction simulator: chosen by the device string, with the same figures."""

import functools
import importlib.util

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from qaoa_source.contracted import ContractedObjective, priced
from qaoa_source.devices import CONTRACTION, DeviceError, open_device, parse_device
from qaoa_source.evaluation import AdjointMethod, Objective
from qaoa_source.hyperparameters import Hyperparameters
from qaoa_source.problem import MaxCutProblem, problem_from_edges, random_problem
from qaoa_source.reductions import plan
from tests.jobs.qaoa import oracle
from tests.jobs.qaoa.conftest import SOURCE, RunJob

if importlib.util.find_spec("numba") is None:
    pytest.skip("numba isn't installed, the contraction simulator can't be loaded", allow_module_level=True)


@settings(max_examples=320, deadline=None)
@given(problem=oracle.problems(most_nodes=7), parameters=oracle.parameters(most_layers=4))
def test_cost_gradient_and_correlations_equal_brute_force(
    problem: MaxCutProblem, parameters: NDArray[np.float64]
) -> None:
    ours = ContractedObjective(problem, parameters.shape[1])
    cost, gradient = ours.value_and_gradient(parameters)
    assert cost == pytest.approx(oracle.cost(problem, parameters), abs=1e-9)
    assert ours.value(parameters) == pytest.approx(cost, abs=1e-9)
    slope, direction = oracle.slope(problem, parameters)
    assert float(np.sum(gradient * direction)) == pytest.approx(slope, abs=1e-8)
    from_edges = float(problem.weights @ (ours.correlations(parameters) - 1)) / 2
    assert from_edges == pytest.approx(cost, abs=1e-9)


def test_300_edges_of_200_nodes_equal_state_vectors_of_their_neighbourhoods() -> None:
    graph = nx.random_regular_graph(3, 200, seed=11)
    problem = problem_from_edges(list(graph.nodes), [(first, second, 1.0) for first, second in graph.edges])
    parameters = np.array([[0.4, 0.7], [0.5, 0.2]])
    circuits = plan(problem, 2, "light-cone").circuits
    device = open_device(
        parse_device("local:pennylane/lightning.qubit"), Hyperparameters(), wires=max(each.wires for each in circuits)
    )
    expected = Objective(problem, circuits, device, AdjointMethod(device))
    ours = ContractedObjective(problem, 2)
    assert len(problem.edges) == 300
    np.testing.assert_allclose(ours.correlations(parameters), expected.correlations(parameters), atol=1e-10)
    cost, gradient = ours.value_and_gradient(parameters)
    assert cost == pytest.approx(expected.value(parameters), abs=1e-8)
    differences = oracle.central_differences(ours.value, parameters, step=0.02)
    np.testing.assert_allclose(gradient, differences, rtol=1e-8, atol=1e-8)


def test_job_gives_the_trajectory_of_the_state_vector(run_job: RunJob) -> None:
    graph = SOURCE / "inputs" / "gnm_18_24.adjlist"
    contracted = run_job(graph, name="contracted", device=CONTRACTION, num_iterations="4")
    simulated = run_job(graph, name="simulated", reduction="auto", num_iterations="4")
    np.testing.assert_allclose(contracted["costs"], simulated["costs"], atol=1e-9)
    np.testing.assert_allclose(contracted["params"], simulated["params"], atol=1e-9)
    assert contracted["device"] == CONTRACTION
    assert contracted["reduction"] == "contraction"
    assert "not a sample of the state" in contracted["best_cut_method"]
    assert set(simulated["reduction_work"]) == {"none", "symmetry", "light-cone", "contraction"}
    assert "contraction would be less work: device = local:hybridjobs/contraction" in simulated["reduction_reason"]
    assert "a state vector of 16 qubits would take" in contracted["reduction_reason"]


def test_the_cheaper_method_is_named_where_it_runs_on_another_device() -> None:
    dense = random_problem(18, 120, 1)
    work = plan(dense, 2, "auto", functools.partial(priced, dense, 2))
    assert "contraction isn't compared: its tables would exceed 16 MiB" in work.reason
    wide = random_problem(16, 60, 1967)
    assert "lightning.qubit with reduction = auto is less work" in ContractedObjective(wide, 2).plan().reason


def test_200_nodes_converge(run_job: RunJob, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("graph") / "g.adjlist"
    nx.write_adjlist(nx.gnm_random_graph(200, 300, seed=1967), file)
    result = run_job(file, device=CONTRACTION, optimizer="lbfgs", num_iterations="100")
    assert result["cost"] < -0.7 * 300
    assert result["nodes"] == len(result["best_partition"]) == 200
    assert result["optimum"] is None
    assert result["best_cut"] <= result["cut_upper_bound"]
    assert result["classical_control"]["local_search_best_cut"] > 200


@pytest.mark.parametrize(
    "hyperparameters",
    [
        {"reduction": "symmetry"},
        {"precision": "single"},
        {"interface": "autograd"},
        {"diff_method": "parameter-shift"},
    ],
)
def test_what_does_not_apply_is_refused(run_job: RunJob, hyperparameters: dict[str, str]) -> None:
    with pytest.raises(DeviceError, match=f"{next(iter(hyperparameters))} = .* doesn't apply"):
        run_job(device=CONTRACTION, **hyperparameters)


def test_archive_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DeviceError, match=r"\[source\] libraries = \['contraction'\]"):
        ContractedObjective(random_problem(4, 4, 1), 1)
