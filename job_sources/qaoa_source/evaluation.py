"""Evaluates circuits on a device: the cost, its gradient, and single correlations."""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from qaoa_source.ansatz import Circuit, operations, pauli_z
from qaoa_source.pennylane_later import qml
from qaoa_source.problem import MaxCutProblem

Parameters = NDArray[np.float64]
ValueAndDerivatives = tuple[float, NDArray[np.float64]]


class GradientMethod(Protocol):
    """Computes values of circuits, and their derivatives by each gate's angle."""

    def values_and_derivatives(
        self, circuits: Sequence[Circuit], angles: Sequence[NDArray[np.float64]]
    ) -> list[ValueAndDerivatives]:
        """One value and one array of shape (gates,) a circuit."""


def _script(circuit: Circuit, angles: NDArray[np.float64], shots: int | None = None) -> Any:
    return qml.tape.QuantumScript(
        operations(circuit, angles),
        [qml.expval(circuit.measured)],
        shots=shots,
        # Parameters are numbered over gates first, then the observable's coefficients, which are constants here.
        trainable_params=range(len(circuit.gates)),
    )


class AdjointMethod:
    """The device's own adjoint differentiation: one forward and one reverse pass a circuit, no interface between."""

    def __init__(self, device: Any) -> None:
        self._device = device
        # default.qubit would turn a sum of terms into a dense matrix: it gets each term as a measurement of its own.
        self._term_by_term = device.name == "default.qubit"
        config = qml.devices.ExecutionConfig(
            gradient_method="adjoint",
            use_device_gradient=True,
            # The vector-Jacobian product would keep a copy of every final state.
            use_device_jacobian_product=False,
            grad_on_execution=True,
        )
        self._config = device.setup_execution_config(config)
        self._prepare = device.preprocess_transforms(self._config)

    def values_and_derivatives(
        self, circuits: Sequence[Circuit], angles: Sequence[NDArray[np.float64]]
    ) -> list[ValueAndDerivatives]:
        """One value and one array of shape (gates,) a circuit."""
        scripts = [self._script(circuit, these) for circuit, these in zip(circuits, angles, strict=True)]
        native, finish = self._prepare(scripts)
        values, jacobians = self._device.execute_and_compute_derivatives(native, self._config)
        results = []
        for circuit, value, jacobian in zip(circuits, finish(values), jacobians, strict=True):
            by_angle = np.asarray(jacobian, dtype=np.float64).reshape(-1, len(circuit.gates))
            weights = [term.coefficient for term in circuit.terms] if self._term_by_term else [1.0]
            results.append((float(np.dot(weights, np.ravel(value))), np.asarray(weights) @ by_angle))
        return results

    def _script(self, circuit: Circuit, angles: NDArray[np.float64]) -> Any:
        if not self._term_by_term:
            return _script(circuit, angles)
        measurements = [qml.expval(pauli_z(term.wires)) for term in circuit.terms]
        gates = range(len(circuit.gates))
        return qml.tape.QuantumScript(operations(circuit, angles), measurements, trainable_params=gates)


class ParameterShiftMethod:
    """Two circuits a gate, each executed on the device: the only method that works with shots and on hardware."""

    def __init__(self, device: Any, shots: int | None) -> None:
        self._device = device
        self._shots = shots

    def values_and_derivatives(
        self, circuits: Sequence[Circuit], angles: Sequence[NDArray[np.float64]]
    ) -> list[ValueAndDerivatives]:
        """One value and one array of shape (gates,) a circuit."""
        results = []
        for circuit, these in zip(circuits, angles, strict=True):
            script = _script(circuit, these, self._shots)
            shifted, combine = qml.gradients.param_shift(script)
            value, *parts = qml.execute([script, *shifted], self._device, diff_method=None)
            derivatives = np.asarray(combine(tuple(parts)), dtype=np.float64).reshape(-1)
            results.append((float(value), derivatives))
        return results


class InterfaceMethod:
    """A PennyLane QNode a circuit, differentiated through autograd or PyTorch."""

    def __init__(self, device: Any, interface: str, diff_method: str, shots: int | None) -> None:
        self._device = device
        self._diff_method = diff_method
        self._shots = shots
        self._differentiate = {"autograd": _autograd, "torch": _torch}[interface]
        self._interface = interface

    def values_and_derivatives(
        self, circuits: Sequence[Circuit], angles: Sequence[NDArray[np.float64]]
    ) -> list[ValueAndDerivatives]:
        """One value and one array of shape (gates,) a circuit."""
        return [
            self._differentiate(self._node(circuit), these) for circuit, these in zip(circuits, angles, strict=True)
        ]

    def _node(self, circuit: Circuit) -> Callable[[Any], Any]:
        def run(angles: Any) -> Any:
            with qml.queuing.QueuingManager.stop_recording():
                # Some operations are kept from one evaluation to the next, so none may be recorded by its creation.
                recorded = operations(circuit, angles)
            for operation in recorded:
                qml.apply(operation)
            return qml.expval(circuit.measured)

        options = {"interface": self._interface, "diff_method": self._diff_method, "shots": self._shots}
        return cast(Callable[[Any], Any], qml.QNode(run, self._device, **options))


def _autograd(node: Callable[[Any], Any], angles: NDArray[np.float64]) -> ValueAndDerivatives:
    gradient = qml.grad(node)
    derivatives = gradient(qml.numpy.array(angles, requires_grad=True))
    return float(gradient.forward), np.asarray(derivatives, dtype=np.float64)


def _torch(node: Callable[[Any], Any], angles: NDArray[np.float64]) -> ValueAndDerivatives:
    # Only some images hold PyTorch, and only interface = torch asks for it.
    torch = importlib.import_module("torch")
    inputs = torch.tensor(angles, dtype=torch.float64, requires_grad=True)
    value = node(inputs)
    value.backward()
    return float(value.detach()), inputs.grad.numpy()


@dataclass(frozen=True)
class Objective:
    """The cost <H_C> of a problem as a function of the parameters, evaluated by a set of circuits.

    The circuits together hold each edge once; the cost is the sum of their values less half the total weight.
    """

    problem: MaxCutProblem
    circuits: tuple[Circuit, ...]
    device: Any
    method: GradientMethod
    shots: int | None = None

    def value_and_gradient(self, parameters: Parameters) -> tuple[float, Parameters]:
        """The cost and its derivatives, shape (2, p)."""
        angles = [circuit.angles(parameters) for circuit in self.circuits]
        results = self.method.values_and_derivatives(self.circuits, angles)
        cost = sum(value for value, _ in results) - self.problem.total_weight / 2
        gradient = np.zeros_like(parameters)
        for circuit, (_, by_angle) in zip(self.circuits, results, strict=True):
            gradient += circuit.chain(parameters, by_angle)
        return cost, gradient

    def value(self, parameters: Parameters) -> float:
        """The cost alone."""
        scripts = [_script(circuit, circuit.angles(parameters), self.shots) for circuit in self.circuits]
        values = qml.execute(scripts, self.device, diff_method=None)
        return float(sum(float(value) for value in values)) - self.problem.total_weight / 2

    def correlations(self, parameters: Parameters) -> NDArray[np.float64]:
        """<Z_i Z_j> of each edge, shape (edges,)."""
        correlations = np.zeros(len(self.problem.edges))
        for circuit in self.circuits:
            script = qml.tape.QuantumScript(
                operations(circuit, circuit.angles(parameters)),
                [qml.expval(pauli_z(term.wires)) for term in circuit.terms],
                shots=self.shots,
            )
            (values,) = qml.execute([script], self.device, diff_method=None)
            for term, value in zip(circuit.terms, np.atleast_1d(np.asarray(values, dtype=np.float64)), strict=True):
                correlations[list(term.edges)] = value
        return correlations
