"""Decides how a job's cost is evaluated: which circuits, on which device, differentiated how."""

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from qaoa_source import memory
from qaoa_source.contracted import ContractedObjective, priced
from qaoa_source.devices import DeviceRequest, open_device
from qaoa_source.evaluation import AdjointMethod, GradientMethod, InterfaceMethod, Objective, ParameterShiftMethod
from qaoa_source.hyperparameters import REDUCTIONS, Hyperparameters
from qaoa_source.preflight import Gpu, find_gpu, try_device
from qaoa_source.problem import MaxCutProblem
from qaoa_source.reductions import Plan, plan


class CostFunction(Protocol):
    """The cost of a problem as a function of the parameters, which have shape (2, p)."""

    def value_and_gradient(self, parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The cost and its derivatives, shape (2, p)."""

    def value(self, parameters: NDArray[np.float64]) -> float:
        """The cost alone."""

    def correlations(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """<Z_i Z_j> of each edge, shape (edges,)."""


@dataclass(frozen=True)
class CostModel:
    """What evaluates the cost, chosen and checked once at the start of a job."""

    problem: MaxCutProblem
    settings: Hyperparameters
    request: DeviceRequest
    plan: Plan
    need: memory.MemoryNeed
    gpu: Gpu | None
    contracted: ContractedObjective | None = None

    def device(self, draw: int) -> Any:
        """A device whose measurements follow from the job's seed and this number alone, so restarts repeat them."""
        seed = int(np.random.SeedSequence((self.settings.seed, draw)).generate_state(1)[0])
        return open_device(self.request, self.settings, wires=self.problem.nodes, seed=seed)

    def objective(self, draw: int) -> CostFunction:
        """The cost, on a device of its own where it runs on a PennyLane device."""
        if self.contracted is not None:
            return self.contracted
        settings, device = self.settings, self.device(draw)
        method: GradientMethod
        if settings.interface != "auto":
            method = InterfaceMethod(device, settings.interface, settings.diff_method, settings.shots)
        elif settings.diff_method == "adjoint":
            method = AdjointMethod(device)
        else:
            method = ParameterShiftMethod(device, settings.shots)
        return Objective(self.problem, self.plan.circuits, device, method, settings.shots)

    @property
    def device_name(self) -> str:
        """The simulator's or device's own name; a PennyLane device was compared with it when it was opened."""
        return self.request.name

    @property
    def circuit_executions(self) -> int:
        """Circuits that one iteration executes: one each with adjoint, two a gate and one more by parameter shifts."""
        circuits = self.plan.circuits
        if self.settings.diff_method != "parameter-shift":
            return len(circuits)
        return sum(2 * len(circuit.gates) + 1 for circuit in circuits)


def choose(problem: MaxCutProblem, settings: Hyperparameters, request: DeviceRequest) -> CostModel:
    """Plans the circuits, checks that they fit, and tries the device.

    Raises:
        DeviceError: The device doesn't work here.
        MemoryEstimateError: The circuits don't fit.
    """
    if request.contracts:
        contracted = ContractedObjective(problem, settings.p)
        need = memory.check_bytes(contracted.bytes_needed, memory.available())
        return CostModel(problem, settings, request, contracted.plan(), need, None, contracted)
    gpu = find_gpu() if request.name == "lightning.gpu" else None
    chosen = plan(problem, settings.p, settings.reduction, functools.partial(priced, problem, settings.p))
    if request.embedded:
        free = memory.available() if gpu is None else gpu.free
        need = memory.check(
            chosen,
            request,
            settings,
            free,
            lambda: {name: plan(problem, settings.p, name) for name in REDUCTIONS if name != "auto"},
        )
    else:
        need = dataclasses.replace(memory.need(chosen, request, settings), total=0.0)
    model = CostModel(problem, settings, request, chosen, need, gpu)
    if request.embedded:
        try_device(request, model.device(0))
    return model
