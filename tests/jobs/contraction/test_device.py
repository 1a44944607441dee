"""The PennyLane device: equal to lightning.qubit in value and gradient, and honest about what it can't do."""

from __future__ import annotations

import re
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.jobs import process_memory
from tests.jobs.contraction.brute_force import central_differences, qaoa_circuit, sonar_circuit

pytest.importorskip("numba", reason="the compiled sweeps of the contraction simulator need numba")
torch = pytest.importorskip("torch", reason="circuits of the contraction simulator are evaluated with torch")
qml = pytest.importorskip("pennylane")

ContractionDevice = pytest.importorskip("contraction.device").ContractionDevice

TOLERANCE = 1e-10

ONE_WIRE = ["RX", "RY", "RZ", "PhaseShift", "Rot", "U2", "U3", "Hadamard", "S", "T", "SX", "PauliX", "PauliY", "PauliZ"]
TWO_WIRES = ["CNOT", "CY", "CZ", "SWAP", "ISWAP", "CRX", "CRY", "CRZ", "CRot", "ControlledPhaseShift", "IsingXX"]
TWO_WIRES += ["IsingYY", "IsingZZ", "IsingXY", "SingleExcitation", "MultiRZ", "CH"]
THREE_WIRES = ["Toffoli", "CSWAP", "CCZ", "MultiRZ"]


@st.composite
def circuits(draw: st.DrawFn, most_wires: int) -> dict[str, Any]:
    wires = draw(st.integers(3, most_wires))
    batch = draw(st.sampled_from([None, None, 2, 3]))
    gates = []
    for _ in range(draw(st.integers(1, 3 * wires))):
        names, count = draw(st.sampled_from([(ONE_WIRE, 1), (TWO_WIRES, 2), (TWO_WIRES, 2), (THREE_WIRES, 3)]))
        name = draw(st.sampled_from(names))
        on = draw(st.permutations(range(wires)))[:count]
        wrapped = draw(st.sampled_from(["plain", "plain", "plain", "adjoint", "controlled"]))
        gates.append((name, list(on), wrapped, draw(st.booleans())))
    words = draw(st.lists(st.text("IXYZ", min_size=wires, max_size=wires), min_size=1, max_size=3, unique=True))
    return {"wires": wires, "batch": batch, "gates": gates, "words": words, "seed": draw(st.integers(0, 2**20))}


def build(case: dict[str, Any], inputs: Any, weights: Any) -> Any:
    place = 0
    for name, on, wrapped, batched in case["gates"]:
        gate = getattr(qml, name)
        count = {"Rot": 3, "U3": 3, "CRot": 3, "U2": 2}.get(name, getattr(gate, "num_params", 0) or 0)
        # The references' faults: PennyLane's matrix of IsingXY takes no batch of torch tensors, and lightning.qubit
        # returns shape (batch, batch) for a batch of MultiRZ.
        takes_batch = batched and case["batch"] and name not in {"IsingXY", "MultiRZ"}
        angles = [inputs[..., place + k] if takes_batch else weights[place + k] for k in range(count)]
        place += count
        if wrapped == "adjoint":
            qml.adjoint(gate)(*angles, wires=on)
        elif wrapped == "controlled" and len(on) < case["wires"]:
            control = next(wire for wire in range(case["wires"]) if wire not in on)
            qml.ctrl(gate, control=control, control_values=[batched])(*angles, wires=on)
        else:
            gate(*angles, wires=on)
    observables = [qml.pauli.string_to_pauli_word(word) for word in case["words"]]
    total = qml.Hamiltonian([0.7 - 0.4 * k for k in range(len(observables))], observables)
    return qml.expval(total), qml.expval(observables[0])


def value_and_gradients(case: dict[str, Any], device: Any, method: str) -> tuple[np.ndarray, list[np.ndarray]]:
    rng = np.random.default_rng(case["seed"])
    size = 3 * len(case["gates"])
    inputs = torch.tensor(rng.normal(size=(case["batch"] or 1, size)), requires_grad=True)
    weights = torch.tensor(rng.normal(size=size), requires_grad=True)
    node = qml.QNode(lambda a, b: build(case, a, b), device, interface="torch", diff_method=method)
    results = node(inputs, weights)
    mixing = torch.tensor(rng.normal(size=case["batch"] or 1))
    loss = sum((result * mixing).sum() for result in results) + 0 * inputs.sum() + 0 * weights.sum()
    arrays = torch.autograd.grad(loss, (inputs, weights))
    values = torch.cat([result.detach().reshape(-1) for result in results])
    return values.numpy(), [array.numpy() for array in arrays]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(circuits(8))
def test_random_circuits_agree_with_a_state_vector(case: dict[str, Any]) -> None:
    reference = value_and_gradients(case, qml.device("default.qubit", wires=case["wires"]), "backprop")
    own = value_and_gradients(case, ContractionDevice(wires=case["wires"], plan_folder=None), "backprop")
    np.testing.assert_allclose(own[0], reference[0], atol=TOLERANCE)
    for gradient, expected in zip(own[1], reference[1], strict=True):
        np.testing.assert_allclose(gradient, expected, atol=TOLERANCE)


def autograd_value_and_gradients(case: dict[str, Any], device: Any, method: str) -> tuple[np.ndarray, Any]:
    rng = np.random.default_rng(case["seed"])
    size = 3 * len(case["gates"])
    inputs = qml.numpy.array(rng.normal(size=(case["batch"] or 1, size)), requires_grad=True)
    weights = qml.numpy.array(rng.normal(size=size), requires_grad=True)
    node = qml.QNode(lambda a, b: build(case, a, b), device, diff_method=method)
    mixing = rng.normal(size=case["batch"] or 1)

    def loss(a: Any, b: Any) -> Any:
        return sum(qml.math.sum(result * mixing) for result in node(a, b))

    return np.concatenate([np.ravel(result) for result in node(inputs, weights)]), qml.grad(loss)(inputs, weights)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(circuits(14))
def test_random_circuits_agree_with_lightning(case: dict[str, Any]) -> None:
    # By autograd: PennyLane's torch interface rounds lightning's gradients to single precision.
    reference = autograd_value_and_gradients(case, qml.device("lightning.qubit", wires=case["wires"]), "adjoint")
    own = autograd_value_and_gradients(case, ContractionDevice(wires=case["wires"], plan_folder=None), "best")
    np.testing.assert_allclose(own[0], reference[0], atol=TOLERANCE)
    for gradient, expected in zip(own[1], reference[1], strict=True):
        np.testing.assert_allclose(gradient, expected, atol=TOLERANCE)


def sonar_inputs(wires: int, batch: int, dtype: Any = torch.float64) -> list[Any]:
    generator = torch.Generator().manual_seed(wires)
    shapes = [(batch, wires), (2, wires, 3), (2, wires, 3), (3,)]
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes]


def sonar_node(device: Any, wires: int, method: str = "best") -> Any:
    return qml.QNode(lambda *x: sonar_circuit(qml, wires, *x), device, interface="torch", diff_method=method)


@pytest.mark.parametrize(("wires", "batch"), [(9, 3), (12, 2), (18, 1)])
def test_the_sonar_circuit_agrees_with_lightning(wires: int, batch: int) -> None:
    inputs = sonar_inputs(wires, batch)
    own = sonar_node(ContractionDevice(wires=wires, plan_folder=None), wires)(*inputs)
    arrays = [qml.numpy.array(x.detach().numpy(), requires_grad=True) for x in inputs]
    lightning = qml.device("lightning.qubit", wires=wires)
    reference = qml.QNode(lambda *x: sonar_circuit(qml, wires, *x), lightning, diff_method="adjoint")
    np.testing.assert_allclose(own.detach(), reference(*arrays), atol=TOLERANCE)
    expected = qml.grad(lambda *x: qml.math.sum(reference(*x)))(*arrays)
    for gradient, other in zip(torch.autograd.grad(own.sum(), inputs), expected, strict=True):
        np.testing.assert_allclose(gradient, other, atol=TOLERANCE)


def test_the_sonar_circuit_of_40_wires_agrees_with_central_differences() -> None:
    inputs = sonar_inputs(40, 2)
    node = sonar_node(ContractionDevice(wires=40, plan_folder=None), 40)
    gradients = torch.autograd.grad(node(*inputs).sum(), inputs)
    last = inputs[3].detach().numpy()
    expected = central_differences(lambda point: float(node(*inputs[:3], torch.tensor(point)).sum().detach()), last)
    np.testing.assert_allclose(gradients[3], expected, atol=1e-9)


def test_the_sonar_circuit_of_26_wires_agrees_with_an_independent_contraction(quimb: Any) -> None:
    wires = 26
    inputs = sonar_inputs(wires, 1)
    tape = qml.workflow.construct_tape(sonar_node(ContractionDevice(wires=wires), wires))(
        *(x[0] if x.ndim == 2 else x for x in inputs)
    )
    circuit = quimb.Circuit(wires)
    for operator in tape.operations:
        circuit.apply_gate_raw(qml.matrix(operator).detach().numpy(), list(operator.wires))
    expected = circuit.local_expectation(np.diag([1.0, -1.0]), 0, optimize="greedy", simplify_sequence="ADCRS").real
    own = sonar_node(ContractionDevice(wires=wires, plan_folder=None), wires)(*inputs)
    assert own.item() == pytest.approx(expected, abs=TOLERANCE)


def test_the_qaoa_circuit_agrees_with_the_cone_sweep() -> None:
    from contraction import maxcut_qaoa

    graph = nx.gnm_random_graph(18, 24, seed=1967)
    angles = torch.tensor([[0.3, 0.5], [0.4, 0.2]], dtype=torch.float64, requires_grad=True)
    node = qml.QNode(lambda x: qaoa_circuit(qml, graph, x[0], x[1]), ContractionDevice(wires=18, plan_folder=None))
    value = node(angles)
    value.backward()
    expected, gradient = maxcut_qaoa(graph, 2, plan_folder=None).value_and_gradient(*angles.detach().numpy())
    assert value.item() - 12 == pytest.approx(expected, abs=TOLERANCE)
    np.testing.assert_allclose(angles.grad, gradient, atol=TOLERANCE)


def test_autograd_gets_gradients_from_the_device() -> None:
    wires = 6
    inputs = [qml.numpy.array(x.detach().numpy(), requires_grad=True) for x in sonar_inputs(wires, 3)]
    gradients = []
    for device in (ContractionDevice(wires=wires, plan_folder=None), qml.device("default.qubit", wires=wires)):
        node = qml.QNode(lambda *x: sonar_circuit(qml, wires, *x), device)
        gradients.append(qml.grad(lambda *x, node=node: qml.math.sum(node(*x) ** 2))(*inputs))
    for own, expected in zip(*gradients, strict=True):
        np.testing.assert_allclose(own, expected, atol=TOLERANCE)


def test_single_precision_stays_near_double_precision() -> None:
    inputs = sonar_inputs(10, 4)
    double = sonar_node(ContractionDevice(wires=10, plan_folder=None), 10)(*inputs)
    single = sonar_node(ContractionDevice(wires=10, c_dtype=np.complex64, plan_folder=None), 10)(*inputs)
    assert single.dtype == torch.float32
    np.testing.assert_allclose(single.detach(), double.detach(), atol=2e-5)


@pytest.mark.parametrize(
    ("compiled", "limit", "matrices"),
    [
        (True, 2**30, False),
        (True, 2**30, True),
        (True, 10**5, False),
        (True, 40_000, False),
        (True, 10**5, True),
        (False, 2**30, False),
        (False, 10**5, False),
    ],
)
def test_compiled_sweeps_matrix_products_torch_operations_and_slices_give_the_same(
    compiled: bool, limit: int, matrices: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if matrices:  # also for steps that are too small to be worth it
        monkeypatch.setattr("contraction.matrix_steps._FEWEST_BITS", 3)
        monkeypatch.setattr("contraction.matrix_steps._FEWEST_OF_A_KIND", 1)
    from contraction.circuit_plan import plan_circuit
    from contraction.tape_circuit import tape_circuit
    from contraction.torch_execution import expectation_values

    inputs = sonar_inputs(8, 5)
    tape = qml.workflow.construct_tape(sonar_node(ContractionDevice(wires=8), 8))(*inputs)
    parsed = tape_circuit(tape)
    plan = plan_circuit(parsed.circuit, 5, memory_limit=limit)
    assert (plan.cost.slices > 1) == (limit < 2**30)
    assert plan.cost.bytes <= limit
    assert any(part.matrix_steps for part in plan.parts) == matrices
    values = expectation_values(parsed.circuit, plan, parsed.parameters, compiled=compiled)[0]
    gradients = torch.autograd.grad(values.sum(), inputs)
    reference = sonar_node(qml.device("default.qubit", wires=8), 8, "backprop")(*inputs)
    np.testing.assert_allclose(values.detach(), reference.detach(), atol=TOLERANCE)
    for gradient, expected in zip(gradients, torch.autograd.grad(reference.sum(), inputs), strict=True):
        np.testing.assert_allclose(gradient, expected, atol=TOLERANCE)


def test_the_price_is_known_and_too_dear_a_circuit_is_refused_with_the_numbers() -> None:
    from contraction import TooLargeError

    def dense(wires: int) -> Any:
        for layer in range(12):
            for wire in range(wires):
                qml.Rot(0.1 * layer, 0.2 * wire, 0.3, wires=wire)
            for wire in range(wires):
                qml.CRot(0.1, 0.2, 0.3, wires=[wire, (wire + 1 + layer) % wires])
        return qml.expval(qml.Z(0))

    device = ContractionDevice(wires=40, memory_limit=2**24, plan_folder=None)
    with pytest.raises(TooLargeError, match=r"bits wide and needs .* state vector of 40 qubits needs 64 TiB"):
        qml.QNode(lambda: dense(40), device)()


def test_the_limit_that_a_refusal_names_suffices() -> None:
    from contraction import TooLargeError

    inputs = sonar_inputs(8, 5)
    with pytest.raises(TooLargeError) as refusal:
        sonar_node(ContractionDevice(wires=8, memory_limit=2**11, plan_folder=None), 8)(*inputs)
    named = re.search(r"Raise the limit to ([\d.]+) KiB", str(refusal.value))
    assert named is not None, refusal.value
    enough = ContractionDevice(wires=8, memory_limit=float(named[1]) * 2**10, plan_folder=None)
    expected = sonar_node(ContractionDevice(wires=8, plan_folder=None), 8)(*inputs)
    np.testing.assert_allclose(sonar_node(enough, 8)(*inputs).detach(), expected.detach(), atol=TOLERANCE)


REFUSED = {
    "sample": lambda: qml.sample(wires=0),
    "state": qml.state,
    "probs": lambda: qml.probs(wires=0),
    "var": lambda: qml.var(qml.Z(0)),
    "Hermitian": lambda: qml.expval(qml.Hermitian(np.eye(2), 0)),
    "MidMeasure": lambda: (qml.measure(0), qml.expval(qml.Z(0)))[1],
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_cannot_do_is_refused_by_name_with_the_device_that_can(name: str) -> None:
    node = qml.QNode(REFUSED[name], ContractionDevice(wires=2, plan_folder=None))
    with pytest.raises(qml.exceptions.DeviceError, match=rf"(?s){name}.*hybridjobs.contraction.*lightning.qubit"):
        node()


def test_shots_are_refused() -> None:
    node = qml.set_shots(qml.QNode(lambda: qml.expval(qml.Z(0)), ContractionDevice(wires=1, plan_folder=None)), 10)
    with pytest.raises(qml.exceptions.DeviceError, match=r"shots = 10.*lightning.qubit"):
        node()


def test_memory_is_flat_over_500_iterations() -> None:
    inputs = sonar_inputs(5, 4)
    node = sonar_node(ContractionDevice(wires=5, plan_folder=None), 5)
    for iteration in range(520):
        if iteration == 20:
            before = process_memory.forget_peak()
        node(*inputs).sum().backward()
    assert process_memory.peak() - before <= 4096
