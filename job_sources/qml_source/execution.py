"""Evaluates the circuit for a batch of samples, as a function that PyTorch can differentiate."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import numpy as np
import pennylane as qml
import torch
from torch import Tensor

from qml_source import circuit, fusion
from qml_source.devices import BYTES_PER_AMPLITUDE, bytes_of_batch_in_states, open_device
from qml_source.hyperparameters import Hyperparameters
from qml_source.memory import available_bytes
from qml_source.simulators import CONTRACTION, DeviceRequest

# A batched simulator keeps what it needs for the derivatives of a whole batch: at most this part of what is free.
SHARE_FOR_A_BATCH = 0.5


class Execution(Protocol):
    """Evaluates <Z_0> for a batch; `largest_batch` is how many samples it takes at once."""

    largest_batch: int

    def __call__(self, angles: Tensor, weights: Tensor) -> Tensor:
        """Values of shape (batch,) for angles of shape (batch, wires) and weights of shape (weights,)."""


class AdjointExecution:
    """A circuit a sample on a simulator that differentiates by the adjoint method: one forward, one reverse pass.

    The device is asked directly, so that the weights' operations are made once a batch and not once a sample.
    """

    # Samples are computed one after another; the limit only bounds the list of circuits that are waiting.
    largest_batch = 256

    def __init__(self, device: Any, nwires: int) -> None:
        self._device = device
        self._parts = circuit.rotations(nwires)
        self._parameters = range(nwires + circuit.weight_count(nwires))
        self._config = device.setup_execution_config(
            qml.devices.ExecutionConfig(
                gradient_method="adjoint",
                use_device_gradient=True,
                # The vector-Jacobian product would keep a copy of every final state.
                use_device_jacobian_product=False,
                grad_on_execution=True,
            )
        )

    def __call__(self, angles: Tensor, weights: Tensor) -> Tensor:
        """Values of shape (batch,)."""
        if torch.is_grad_enabled() and (angles.requires_grad or weights.requires_grad):
            return cast(Tensor, cast(Any, _Adjoint).apply(angles, weights, self))
        values = self._device.execute(self._scripts(angles, weights), self._config)
        return torch.as_tensor(np.asarray(values, dtype=np.float64)).to(angles)

    def values_and_jacobian(self, angles: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Values of shape (batch,) and derivatives of shape (batch, wires + weights)."""
        values, jacobians = self._device.execute_and_compute_derivatives(self._scripts(angles, weights), self._config)
        derivatives = np.array([np.asarray(jacobian, dtype=np.float64).reshape(-1) for jacobian in jacobians])
        return (
            torch.as_tensor(np.asarray(values, dtype=np.float64)).to(angles),
            torch.as_tensor(derivatives).to(angles),
        )

    def _scripts(self, angles: Tensor, weights: Tensor) -> list[qml.tape.QuantumScript]:
        rotations = circuit.single_parameter_rotations(self._parts, weights.tolist())
        measured = [qml.expval(qml.PauliZ(0))]
        return [
            qml.tape.QuantumScript(circuit.encoding(these) + rotations, measured, trainable_params=self._parameters)
            for these in angles.tolist()
        ]


class _Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, angles: Tensor, weights: Tensor, execution: AdjointExecution) -> Tensor:
        values, jacobian = execution.values_and_jacobian(angles, weights)
        ctx.save_for_backward(jacobian)
        ctx.wires = angles.shape[1]
        return values

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, Tensor, None]:
        (jacobian,) = ctx.saved_tensors
        (by_value,) = upstream
        return by_value[:, None] * jacobian[:, : ctx.wires], by_value @ jacobian[:, ctx.wires :], None


class BatchedExecution:
    """A whole batch at once on a simulator that PyTorch differentiates through.

    `operations` makes the circuit of a batch: angles of shape (batch, wires), weights of shape (weights,).
    """

    def __init__(self, device: Any, operations: Callable[[Tensor, Tensor], None], largest_batch: int) -> None:
        self.largest_batch = largest_batch

        def run(angles: Tensor, weights: Tensor) -> Any:
            # Created inside the node's function, the operations are its circuit.
            operations(angles, weights)
            return qml.expval(qml.PauliZ(0))

        self._node = qml.QNode(run, device, interface="torch", diff_method="backprop")

    def __call__(self, angles: Tensor, weights: Tensor) -> Tensor:
        """Values of shape (batch,)."""
        values = cast(Tensor, self._node(angles, weights))
        # A batch of one comes back with or without its axis, depending on the simulator.
        return values.reshape(len(angles)).to(angles.dtype)


def _fused_operations(parts: Sequence[circuit.Rotation]) -> Callable[[Tensor, Tensor], None]:
    def operations(angles: Tensor, weights: Tensor) -> None:
        for matrix, wires in fusion.fused_matrices(parts, angles, weights):
            qml.QubitUnitary(matrix, wires=wires, unitary_check=False)

    return operations


def _separate_operations(parts: Sequence[circuit.Rotation]) -> Callable[[Tensor, Tensor], None]:
    # A contraction does best when it sees which wires are controls.
    def operations(angles: Tensor, weights: Tensor) -> None:
        circuit.encoding(angles.unbind(1))
        circuit.whole_rotations(parts, weights.unbind(0))

    return operations


def open_execution(request: DeviceRequest, settings: Hyperparameters, sharers: int = 1) -> tuple[Execution, str]:
    """Opens the device and returns how to evaluate the circuit on it, and the device's own name.

    `sharers` is the number of workers that share this host's memory.

    Raises:
        DeviceError: The device can't be used.
    """
    device = open_device(request, settings)
    parts = circuit.rotations(settings.nwires)
    if request.is_lightning:
        return AdjointExecution(device, settings.nwires), device.name
    if request.text == CONTRACTION:
        return BatchedExecution(device, _separate_operations(parts), AdjointExecution.largest_batch), device.name
    sample = bytes_of_batch_in_states(settings.nwires) * BYTES_PER_AMPLITUDE[settings.precision] * 2**settings.nwires
    largest = int(available_bytes() * SHARE_FOR_A_BATCH / sharers) // sample
    return BatchedExecution(device, _fused_operations(parts), max(largest, 1)), device.name
