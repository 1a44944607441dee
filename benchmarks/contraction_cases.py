"""What benchmarks/contraction.py measures: both workloads by contraction, by the examples' logic, by state vectors."""

# ruff: noqa: PLC0415 - the memory of a worker shall hold only what it measures

import time
from collections.abc import Callable, Sequence
from typing import Any

import networkx as nx
import numpy as np
import qaoa
from interleaved import Iterate

SEED = 1967
ANGLES = ((0.43, 0.71, 0.35, 0.52), (0.52, 0.24, 0.61, 0.33))


def graph_of(nodes: int, edges: int, degree: int = 0) -> nx.Graph:
    """A random graph of so many edges, or where a degree is given a regular one."""
    if degree:
        return nx.random_regular_graph(degree, nodes, seed=SEED)
    return nx.gnm_random_graph(nodes, edges, seed=SEED)


def described(cost: Any) -> dict[str, Any]:
    """The counted numbers of a cost, and the chooser's method."""
    return {"width": cost.width, "operations": cost.operations, "bytes": cost.bytes, "method": cost.faster}


def qaoa_cones(nodes: int, edges: int, depth: int = 2, degree: int = 0) -> tuple[Iterate, dict[str, Any]]:
    """Value and gradient by cone sweeps."""
    from contraction import maxcut_qaoa

    gammas, betas = ANGLES[0][:depth], ANGLES[1][:depth]
    maxcut_qaoa(nx.path_graph(4), depth, plan_folder=None).value_and_gradient(gammas, betas)
    start = time.perf_counter()
    prepared = maxcut_qaoa(graph_of(nodes, edges, degree), depth, plan_folder=None)
    facts = {"nodes": nodes, "set_up": time.perf_counter() - start, **described(prepared.cost)}
    return lambda: [prepared.value_and_gradient(gammas, betas)[0]], facts


def qaoa_example(nodes: int) -> tuple[Iterate, dict[str, Any]]:
    """The published example's logic, as benchmarks/qaoa.py has it."""
    return qaoa.example(nodes), {"nodes": nodes}


def qaoa_state_vector(nodes: int, edges: int, depth: int, degree: int = 0) -> tuple[Iterate, dict[str, Any]]:
    """The job on lightning.qubit: components apart, one node of each fixed (Z2), adjoint."""
    from qaoa_source.cost import choose
    from qaoa_source.devices import parse_device
    from qaoa_source.hyperparameters import Hyperparameters
    from qaoa_source.problem import problem_from_edges

    graph = graph_of(nodes, edges, degree)
    problem = problem_from_edges(list(graph), [(first, second, 1.0) for first, second in graph.edges])
    settings = Hyperparameters(p=depth, reduction="symmetry")
    objective = choose(problem, settings, parse_device("local:pennylane/lightning.qubit")).objective(0)
    parameters = np.array(ANGLES)[:, :depth]
    return lambda: [objective.value_and_gradient(parameters)[0]], {"nodes": nodes}


def sonar_circuit(wires: int, inputs: Any, weights: Sequence[Any], *, seven_gates: bool) -> Any:
    """<Z_0> of the dressed circuit; controlled rotations as in the example (seven gates) or as one."""
    import pennylane as qml

    def controlled(angles: Any, control: int, target: int) -> None:
        phi, theta, omega = angles[0], angles[1], angles[2]
        if not seven_gates:
            qml.CRot(phi, theta, omega, wires=[control, target])
            return
        qml.RZ((phi - omega) / 2, wires=target)
        qml.CNOT(wires=[control, target])
        qml.RZ(-(phi + omega) / 2, wires=target)
        qml.RY(-theta / 2, wires=target)
        qml.CNOT(wires=[control, target])
        qml.RY(theta / 2, wires=target)
        qml.RZ(omega, wires=target)

    for wire in range(wires):
        qml.RX(inputs[..., wire], wires=wire)
    for block, distance in ((weights[0], 1), (weights[1], 3)):
        for wire in range(wires):
            qml.Rot(block[0, wire, 0], block[0, wire, 1], block[0, wire, 2], wires=wire)
        control = 0
        for place in range(wires):
            target = (control - distance) % wires
            controlled(block[1, place], control, target)
            control = target
    qml.Rot(weights[2][0], weights[2][1], weights[2][2], wires=0)
    return qml.expval(qml.Z(0))


def sonar(wires: int, batch: int, name: str, precision: str = "complex128") -> tuple[Iterate, dict[str, Any]]:
    """One step of the QML workload: values of all samples and the gradient by inputs and weights."""
    import pennylane as qml
    import torch

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(SEED)
    inputs = torch.randn((batch, wires), generator=generator, dtype=torch.float64).requires_grad_()
    weights = [
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in ((2, wires, 3), (2, wires, 3), (3,))
    ]
    facts: dict[str, Any] = {"qubits": wires, "batch": batch}
    if name == "example":
        device = qml.device("lightning.qubit", wires=wires)
        node = qml.QNode(
            lambda x: sonar_circuit(wires, x, weights, seven_gates=True),
            device,
            interface="torch",
            diff_method="adjoint",
        )

        def iterate() -> list[float]:
            total = sum(node(sample) for sample in inputs)
            total.backward()
            return [float(total.detach())]

        return iterate, facts
    from contraction.device import ContractionDevice

    device = ContractionDevice(wires=wires, plan_folder=None, c_dtype=np.dtype(precision).type)
    node = qml.QNode(lambda x: sonar_circuit(wires, x, weights, seven_gates=False), device, interface="torch")
    warm = qml.QNode(lambda x: sonar_circuit(4, x, weights, seven_gates=False), device, interface="torch")
    warm(inputs[:2]).sum().backward()
    start = time.perf_counter()
    tape = qml.workflow.construct_tape(node)(inputs)
    cost = device.cost(tape)
    facts |= {"set_up": time.perf_counter() - start, **described(cost)}

    def step() -> list[float]:
        total = node(inputs).sum()
        total.backward()
        return [float(total.detach())]

    return step, facts


CASES: dict[str, Callable[..., tuple[Iterate, dict[str, Any]]]] = {
    "qaoa_example": qaoa_example,
    "qaoa_cones": qaoa_cones,
    "qaoa_state_vector": qaoa_state_vector,
    "sonar": sonar,
}
