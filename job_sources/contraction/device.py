"""The PennyLane device `hybridjobs.contraction`: exact expectation values without a state vector.

    import pennylane as qml
    device = qml.device("hybridjobs.contraction", wires=60)

Interface torch differentiates by backpropagation; every other interface gets gradients from the device.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pennylane as qml
from pennylane.devices import Device, ExecutionConfig
from pennylane.devices.preprocess import decompose, validate_device_wires
from pennylane.exceptions import DeviceError
from pennylane.transforms.core import CompilePipeline

from contraction import plan_cache
from contraction.circuit import Circuit
from contraction.circuit_plan import CircuitPlan, plan_circuit
from contraction.cost import DEFAULT_MEMORY_LIMIT, Cost
from contraction.errors import MissingLibraryError
from contraction.tape_circuit import DEVICE_NAME, TapeCircuit, has_table, refuse_unsupported, tape_circuit

_PLANS_IN_MEMORY = 64
_refuse_unsupported = qml.transform(refuse_unsupported)


class ContractionDevice(Device):  # type: ignore[misc]  # PennyLane is not typed
    """Expectation values of Pauli words and sums by tensor network contraction on the light cone of each word.

    Args:
        wires: number of wires, or their labels; None takes the circuit's own.
        c_dtype: numpy.complex128 or numpy.complex64, the precision of the tables.
        memory_limit: bytes that the tables may need; checked before they are allocated.
        plan_folder: where plans are kept across processes; None keeps nothing (see plan_cache.default_folder).

    Raises:
        DeviceError: whatever isn't an exact expectation value of Pauli words and sums.
        TooLargeError: the tables need more than the limit.
        MissingLibraryError: torch isn't installed.
    """

    def __init__(
        self,
        wires: Any = None,
        *,
        c_dtype: Any = np.complex128,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        plan_folder: Path | str | Literal["default"] | None = "default",
    ) -> None:
        try:
            import torch  # noqa: PLC0415  (heavy)
        except ImportError as error:
            raise MissingLibraryError(
                f"device {DEVICE_NAME!r} needs torch, which is not installed. Install torch."
            ) from error
        kinds = {"complex128": torch.float64, "complex64": torch.float32}
        if np.dtype(c_dtype).name not in kinds:
            raise DeviceError(f"c_dtype = {c_dtype}: choose numpy.complex128 or numpy.complex64.")
        super().__init__(wires=wires)
        self._dtype = kinds[np.dtype(c_dtype).name]
        self._memory_limit = memory_limit
        self._plan_folder: Path | None
        if plan_folder == "default":
            self._plan_folder = plan_cache.default_folder()
        else:
            self._plan_folder = None if plan_folder is None else Path(plan_folder)
        self._plans: OrderedDict[tuple[Circuit, int], CircuitPlan] = OrderedDict()

    @property
    def name(self) -> str:
        """The name that qml.device knows."""
        return DEVICE_NAME

    def cost(self, tape: Any) -> Cost:
        """What one value and gradient of a tape costs, beside a state vector; nothing is computed.

        Args:
            tape: a QuantumScript of operators with tables; see preprocess for others.
        """
        parsed = tape_circuit(tape)
        return self._plan(parsed, tape.batch_size or 1).cost

    def setup_execution_config(
        self,
        config: ExecutionConfig | None = None,
        circuit: Any = None,  # noqa: ARG002  (PennyLane's signature)
    ) -> ExecutionConfig:
        """Choose backpropagation for torch, the device's own gradient otherwise."""
        config = config or ExecutionConfig()
        method = config.gradient_method
        if method in {"best", None}:
            best = "backprop" if _interface(config) == "torch" else "device"
            method = best if method == "best" else None
        own = method == "device"
        return replace(
            config,
            gradient_method=method,
            use_device_gradient=method in {"backprop", "device"},
            use_device_jacobian_product=own,
            grad_on_execution=False,
            convert_to_numpy=method != "backprop",
        )

    def supports_derivatives(
        self,
        execution_config: ExecutionConfig | None = None,
        circuit: Any = None,  # noqa: ARG002  (PennyLane's signature)
    ) -> bool:
        """Whether a gradient method is the device's own: "device", or "backprop" with torch."""
        if execution_config is None or execution_config.gradient_method in {"best", "device"}:
            return True
        # An interface that isn't known yet reads "numpy".
        backprop = execution_config.gradient_method == "backprop"
        return backprop and _interface(execution_config) in {"torch", "auto", "numpy", "None"}

    def supports_vjp(self, execution_config: ExecutionConfig | None = None, circuit: Any = None) -> bool:
        """As supports_derivatives."""
        return self.supports_derivatives(execution_config, circuit)

    def preprocess_transforms(self, execution_config: ExecutionConfig | None = None) -> CompilePipeline:
        """Refuse what can't be done, check wires, decompose what has no table."""
        pipeline = CompilePipeline()
        pipeline.add_transform(_refuse_unsupported)
        pipeline.add_transform(validate_device_wires, self.wires, name=self.name)
        pipeline.add_transform(
            decompose,
            stopping_condition=has_table,
            skip_initial_state_prep=False,
            device_wires=self.wires,
            name=self.name,
        )
        config = execution_config or ExecutionConfig()
        if config.gradient_method == "device" and _interface(config) != "autograd":
            # The other interfaces expect every derivative of one shape.
            pipeline.add_transform(qml.transforms.broadcast_expand)
        return pipeline

    def execute(self, circuits: Any, execution_config: ExecutionConfig | None = None) -> Any:
        """Values of all measurements: torch tensors for backpropagation, else arrays."""
        backprop = execution_config is not None and execution_config.gradient_method == "backprop"
        single = isinstance(circuits, qml.tape.QuantumScript)
        results = []
        for tape in [circuits] if single else circuits:
            parsed = tape_circuit(tape)
            values = self._values(parsed, tape.batch_size, self._tensors(parsed.parameters))
            if not backprop:
                values = [value.detach().numpy() for value in values]
            results.append(values[0] if len(values) == 1 else tuple(values))
        return results[0] if single else tuple(results)

    def compute_vjp(
        self,
        circuits: Any,
        cotangents: Any,
        execution_config: ExecutionConfig | None = None,  # noqa: ARG002  (PennyLane's signature)
    ) -> Any:
        """Derivative of sum(cotangent value) by each trainable parameter."""
        single = isinstance(circuits, qml.tape.QuantumScript)
        tapes, vectors = ([circuits], [cotangents]) if single else (circuits, cotangents)
        results = tuple(self._tape_vjp(tape, vector) for tape, vector in zip(tapes, vectors, strict=True))
        return results[0] if single else results

    def execute_and_compute_vjp(
        self, circuits: Any, cotangents: Any, execution_config: ExecutionConfig | None = None
    ) -> Any:
        """Both, one after the other."""
        return self.execute(circuits, execution_config), self.compute_vjp(circuits, cotangents, execution_config)

    def compute_derivatives(
        self,
        circuits: Any,
        execution_config: ExecutionConfig | None = None,  # noqa: ARG002  (PennyLane's signature)
    ) -> Any:
        """Jacobian: for each measurement the derivative by each trainable parameter."""
        single = isinstance(circuits, qml.tape.QuantumScript)
        results = tuple(self._tape_jacobian(tape) for tape in ([circuits] if single else circuits))
        return results[0] if single else results

    def execute_and_compute_derivatives(self, circuits: Any, execution_config: ExecutionConfig | None = None) -> Any:
        """Both, one after the other."""
        return self.execute(circuits, execution_config), self.compute_derivatives(circuits, execution_config)

    def _tape_jacobian(self, tape: Any) -> Any:
        if tape.batch_size is not None:
            raise DeviceError(
                "a Jacobian of a broadcasted circuit has no defined shape in PennyLane. Use its products."
            )
        count = len(tape.measurements)
        rows = []
        for number in range(count):
            unit = [float(number == other) for other in range(count)]
            row = self._tape_vjp(tape, unit[0] if count == 1 else unit)
            rows.append(row[0] if len(row) == 1 else row)
        return rows[0] if count == 1 else tuple(rows)

    def _tape_vjp(self, tape: Any, cotangent: Any) -> tuple[Any, ...]:
        import torch  # noqa: PLC0415

        parsed = tape_circuit(tape)
        own = {slot: place for place, slot in enumerate(parsed.slots)}
        operator_parameters = sum(len(operator.data) for operator in tape.operations)
        if any(slot >= operator_parameters for slot in tape.trainable_params):
            raise DeviceError(
                f"{self.name} differentiates by gate parameters only, and a coefficient of an observable is trainable. "
                "Measure the words apart and combine them outside of the circuit."
            )
        vectors = [cotangent] if len(parsed.measurements) == 1 else list(cotangent)
        # A product is often asked for within torch's own way back, where recording is off.
        with torch.enable_grad():
            tensors = self._tensors(parsed.parameters)
            leaves = {}
            for slot in tape.trainable_params:
                if slot in own:
                    leaves[slot] = tensors[own[slot]] = tensors[own[slot]].detach().requires_grad_()
            values = self._values(parsed, tape.batch_size, tensors)
            total = torch.zeros((), dtype=self._dtype)
            for vector, value in zip(vectors, values, strict=True):
                total = total + (torch.as_tensor(np.asarray(vector), dtype=value.dtype) * value).sum()
        found: tuple[Any, ...] = (None,) * len(leaves)
        if leaves and total.requires_grad:
            found = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
        parameters = tape.get_parameters(trainable_only=True)
        gradients = dict(zip(leaves, found, strict=True))
        return tuple(
            np.zeros(np.shape(parameter)) if gradients.get(slot) is None else gradients[slot].numpy()
            for slot, parameter in zip(tape.trainable_params, parameters, strict=True)
        )

    def _tensors(self, parameters: Sequence[Any]) -> list[Any]:
        import torch  # noqa: PLC0415

        return [
            value if isinstance(value, torch.Tensor) else torch.as_tensor(np.asarray(value)) for value in parameters
        ]

    def _values(self, parsed: TapeCircuit, batch: int | None, tensors: Sequence[Any]) -> list[Any]:
        from contraction.torch_execution import expectation_values  # noqa: PLC0415  (imports torch)

        words = expectation_values(parsed.circuit, self._plan(parsed, batch or 1), tensors, dtype=self._dtype)
        values = []
        for terms in parsed.measurements:
            value = sum(coefficient * words[number] for coefficient, number in terms)
            values.append(value if terms else words.new_zeros(words.shape[1:]))
        return [getattr(value, "real", value) if value.is_complex() else value for value in values]

    def _plan(self, parsed: TapeCircuit, batch: int) -> CircuitPlan:
        key = (parsed.circuit, (max(batch, 1) - 1).bit_length())
        plan = self._plans.get(key)
        if plan is None:
            plan = plan_circuit(parsed.circuit, batch, memory_limit=self._memory_limit, plan_folder=self._plan_folder)
            self._plans[key] = plan
            if len(self._plans) > _PLANS_IN_MEMORY:
                self._plans.popitem(last=False)
        else:
            self._plans.move_to_end(key)
        return plan


def _interface(config: ExecutionConfig) -> str:
    return str(getattr(config.interface, "value", config.interface))
