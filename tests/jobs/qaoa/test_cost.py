"""The cost and its gradient are those of the circuit that the documents define, on every kind of graph."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from qaoa_source.ansatz import whole_circuit
from qaoa_source.devices import open_device, parse_device
from qaoa_source.evaluation import AdjointMethod, GradientMethod, InterfaceMethod, Objective, ParameterShiftMethod
from qaoa_source.hyperparameters import Hyperparameters
from qaoa_source.problem import MaxCutProblem, problem_from_edges
from tests.jobs.qaoa import oracle

TRIANGLE_AND_TAIL = problem_from_edges(range(5), [(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0), (2, 3, 1.0), (3, 4, 1.0)])
TWO_COMPONENTS = problem_from_edges(range(6), [(0, 1, 1.0), (1, 2, 1.0), (3, 4, 1.0), (4, 5, 1.0), (5, 3, 1.0)])
ISOLATED_NODES = problem_from_edges(range(6), [(0, 2, 1.0), (2, 5, 1.0), (5, 0, 1.0)])
PARAMETERS = np.array([[0.37, -0.81], [0.52, 1.13]])


def lightning(wires: int = 8) -> Any:
    return open_device(parse_device("local:pennylane/lightning.qubit"), Hyperparameters(), wires=wires)


def objective(problem: MaxCutProblem, p: int, device: Any, method: GradientMethod) -> Objective:
    return Objective(problem, (whole_circuit(problem, p),), device, method)


@pytest.mark.parametrize("problem", [TRIANGLE_AND_TAIL, TWO_COMPONENTS, ISOLATED_NODES])
def test_cost_and_gradient_on_connected_disconnected_and_isolated_node_graphs(problem: MaxCutProblem) -> None:
    device = lightning()
    cost, gradient = objective(problem, 2, device, AdjointMethod(device)).value_and_gradient(PARAMETERS)
    assert cost == pytest.approx(oracle.cost(problem, PARAMETERS), abs=1e-9)
    differences = oracle.central_differences(lambda at: oracle.cost(problem, at), PARAMETERS)
    np.testing.assert_allclose(gradient, differences, atol=1e-8)


@settings(max_examples=60, deadline=None)
@given(problem=oracle.problems(), parameters=oracle.parameters())
def test_cost_and_gradient_on_random_graphs(problem: MaxCutProblem, parameters: NDArray[np.float64]) -> None:
    device = lightning()
    ours = objective(problem, parameters.shape[1], device, AdjointMethod(device))
    cost, gradient = ours.value_and_gradient(parameters)
    assert cost == pytest.approx(oracle.cost(problem, parameters), abs=1e-9)
    assert ours.value(parameters) == pytest.approx(cost, abs=1e-9)
    slope, direction = oracle.slope(problem, parameters)
    assert float(np.sum(gradient * direction)) == pytest.approx(slope, abs=1e-8)


def test_gradient_on_a_complete_graph_whose_cost_turns_fast() -> None:
    pairs = [(first, second, 1.0) for second in range(12) for first in range(second)]
    problem = problem_from_edges(range(12), pairs)
    parameters = np.array([[1.5, 1.0, 1.0, 1.0], [1.0, 0.0, 2.5, 1.0]])
    device = lightning(wires=12)
    _, gradient = objective(problem, 4, device, AdjointMethod(device)).value_and_gradient(parameters)
    slope, direction = oracle.slope(problem, parameters)
    assert float(np.sum(gradient * direction)) == pytest.approx(slope, abs=1e-8)


def test_every_way_to_differentiate_gives_the_same_gradient() -> None:
    device = lightning()
    default = open_device(parse_device("local:pennylane/default.qubit"), Hyperparameters(), wires=8)
    reference = objective(TWO_COMPONENTS, 2, device, AdjointMethod(device)).value_and_gradient(PARAMETERS)
    others: list[tuple[Any, GradientMethod]] = [
        (device, ParameterShiftMethod(device, None)),
        (device, InterfaceMethod(device, "autograd", "adjoint", None)),
        (device, InterfaceMethod(device, "autograd", "parameter-shift", None)),
        (default, AdjointMethod(default)),
        (default, InterfaceMethod(default, "autograd", "backprop", None)),
    ]
    for other, method in others:
        cost, gradient = objective(TWO_COMPONENTS, 2, other, method).value_and_gradient(PARAMETERS)
        assert cost == pytest.approx(reference[0], abs=1e-9)
        np.testing.assert_allclose(gradient, reference[1], atol=1e-9)


def test_correlations_add_up_to_the_cost() -> None:
    device = lightning()
    ours = objective(TWO_COMPONENTS, 2, device, AdjointMethod(device))
    correlations = ours.correlations(PARAMETERS)
    cost = float(TWO_COMPONENTS.weights @ (correlations - 1)) / 2
    assert cost == pytest.approx(oracle.cost(TWO_COMPONENTS, PARAMETERS), abs=1e-9)
