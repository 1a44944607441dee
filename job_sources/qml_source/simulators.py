"""Which simulators the job knows, and what each can do: known without loading any of them."""

import difflib
from dataclasses import dataclass

from qml_source.hyperparameters import Hyperparameters

CONTRACTION = "local:hybridjobs/contraction"
SIMULATORS = {
    "local:pennylane/lightning.qubit": "pennylane-lightning",
    "local:pennylane/lightning.gpu": "pennylane-lightning-gpu",
    "local:pennylane/lightning.kokkos": "pennylane-lightning-kokkos",
    "local:pennylane/default.qubit": "pennylane",
    CONTRACTION: "",
}
DEVICE_NAMES = {CONTRACTION: "hybridjobs.contraction"}
# Up to here the state vectors of a batch are small, and need no plan.
MOST_QUBITS_OF_A_STATE = 16


class DeviceError(RuntimeError):
    """The device asked for can't be used: says which, why, and the remedy."""


@dataclass(frozen=True)
class DeviceRequest:
    """A device string, taken apart. `name` is PennyLane's name of the device."""

    text: str
    name: str

    @property
    def is_lightning(self) -> bool:
        """Whether it holds one state vector at a time and differentiates by the adjoint method."""
        return self.name.startswith("lightning.")

    @property
    def uses_gpu(self) -> bool:
        """Whether it runs on a GPU and nowhere else."""
        return self.name == "lightning.gpu"

    @property
    def differentiation(self) -> str:
        """The device's own way to gradients."""
        return "adjoint" if self.is_lightning else "backprop"


def parse_device(text: str) -> DeviceRequest:
    """Reads `local:<provider>/<simulator>`.

    Raises:
        DeviceError: The string names no embedded simulator that this job knows.
    """
    if text in SIMULATORS:
        return DeviceRequest(text, DEVICE_NAMES.get(text) or text.rpartition("/")[2])
    if text.startswith("arn:"):
        raise DeviceError(
            f"device {text}: this job needs exact gradients of every sample in every step, which only embedded "
            f"simulators give. Use one of {', '.join(SIMULATORS)}."
        )
    near = difflib.get_close_matches(text, SIMULATORS, n=1, cutoff=0.8)
    hint = f"Did you mean {near[0]}?" if near else f"Use one of {', '.join(SIMULATORS)}."
    raise DeviceError(f"device {text!r} is unknown to this job. {hint}")


def device_for(nwires: int) -> str:
    """The simulator to evaluate a trained model of this many qubits on, on any machine; all give the same outputs."""
    return "local:pennylane/default.qubit" if nwires <= MOST_QUBITS_OF_A_STATE else CONTRACTION


def check_method(request: DeviceRequest, settings: Hyperparameters) -> None:
    """Refuses what the device can't do, before anything is computed.

    Raises:
        DeviceError: Names the hyperparameter, its value and the remedy.
    """
    if settings.diff_method not in ("auto", request.differentiation):
        raise DeviceError(
            f"diff_method = {settings.diff_method!r} doesn't work on {request.name}: give {request.differentiation}, "
            "or leave it out"
        )
    if settings.precision == "single" and not request.is_lightning:
        raise DeviceError(
            f"precision = 'single' doesn't work on {request.name}: leave it out, or use a lightning device"
        )
