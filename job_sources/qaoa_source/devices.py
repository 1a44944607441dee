"""Opens the device that the job was asked to run on, and no other."""

import difflib
import importlib.metadata
import importlib.util
from dataclasses import dataclass
from typing import Any

import numpy as np

from qaoa_source.hyperparameters import Hyperparameters
from qaoa_source.pennylane_later import qml

CONTRACTION = "local:hybridjobs/contraction"
EMBEDDED = ("lightning.qubit", "lightning.gpu", "lightning.kokkos", "default.qubit")
DISTRIBUTIONS = {
    "lightning.qubit": "pennylane-lightning",
    "lightning.gpu": "pennylane-lightning-gpu",
    "lightning.kokkos": "pennylane-lightning-kokkos",
    "default.qubit": "pennylane",
    "braket.aws.qubit": "amazon-braket-pennylane-plugin",
    "contraction": "numba",
}


class DeviceError(RuntimeError):
    """The device asked for can't be used: says which, why, and the remedy."""


@dataclass(frozen=True)
class DeviceRequest:
    """A device string, taken apart. `name` is PennyLane's name of the device; `arn` is given for a remote one.

    The contraction simulator is no PennyLane device; its name is "contraction".
    """

    text: str
    name: str
    arn: str | None = None

    @property
    def contracts(self) -> bool:
        """Whether it is the contraction simulator."""
        return self.text == CONTRACTION

    @property
    def embedded(self) -> bool:
        """Whether the device is a simulator inside the job's own instance."""
        return self.arn is None


def parse_device(text: str) -> DeviceRequest:
    """Reads `local:pennylane/<simulator>`, `local:hybridjobs/contraction` or a Braket device ARN.

    Raises:
        DeviceError: The string names neither, or a simulator that this job doesn't know.
    """
    if text.startswith("arn:"):
        return DeviceRequest(text, "braket.aws.qubit", text)
    if text == CONTRACTION:
        return DeviceRequest(text, "contraction")
    scheme, _, rest = text.partition(":")
    provider, _, name = rest.partition("/")
    if scheme == "local" and provider == "pennylane" and name in EMBEDDED:
        return DeviceRequest(text, name)
    near = difflib.get_close_matches(
        text, [CONTRACTION, *(f"local:pennylane/{known}" for known in EMBEDDED)], n=1, cutoff=0.8
    )
    hint = f"Did you mean {near[0]}?" if near else f"Use local:pennylane/ and one of {', '.join(EMBEDDED)}, or an ARN."
    raise DeviceError(f"device {text!r} is unknown to this job. {hint}")


def check_method(request: DeviceRequest, settings: Hyperparameters) -> None:
    """Refuses what the device can't do, before anything is computed.

    Raises:
        DeviceError: Names the hyperparameter, its value and the remedy.
    """
    if request.contracts:
        for name, value, kept in (
            ("diff_method", settings.diff_method, {"adjoint"}),
            ("interface", settings.interface, {"auto"}),
            ("reduction", settings.reduction, {"none", "auto"}),
            ("precision", settings.precision, {"double"}),
        ):
            if value not in kept:
                raise DeviceError(f"{name} = {value!r} doesn't apply to the contraction simulator: leave it out")
        return
    if settings.diff_method == "backprop" and request.name != "default.qubit":
        raise DeviceError(
            f"diff_method = 'backprop' doesn't work on {request.name}: give adjoint, or the device default.qubit"
        )
    if settings.precision == "single" and not request.name.startswith("lightning."):
        raise DeviceError(
            f"precision = 'single' doesn't work on {request.name}: leave it out, or use a lightning device"
        )
    if not request.embedded and (settings.diff_method != "parameter-shift" or settings.shots is None):
        raise DeviceError(f"device {request.text} needs diff_method = parameter-shift and shots")
    if settings.interface == "torch" and importlib.util.find_spec("torch") is None:
        raise DeviceError("interface = 'torch' but PyTorch isn't installed: give autograd, or an image with PyTorch")


def open_device(request: DeviceRequest, settings: Hyperparameters, *, wires: int, seed: int | None = None) -> Any:
    """Creates the device.

    An embedded simulator takes its number of qubits from each circuit, so one device serves circuits of every size;
    `wires` is what a remote one is opened with.

    Raises:
        DeviceError: It isn't installed or doesn't load, or PennyLane gave another device than the one asked for.
    """
    options: dict[str, Any] = {"wires": None, "seed": seed}
    if request.arn is not None:
        options = {
            "wires": wires,
            "device_arn": request.arn,
            "shots": settings.shots,
            "parallel": True,
            "max_parallel": settings.max_parallel,
            "parametrize_differentiable": settings.parametrize_differentiable,
        }
    elif request.name.startswith("lightning."):
        options["c_dtype"] = np.complex64 if settings.precision == "single" else np.complex128
    try:
        device = qml.device(request.name, **options)
    except (qml.exceptions.DeviceError, ImportError, OSError, RuntimeError) as error:
        raise DeviceError(
            f"{request.name} can't be opened: {error}. "
            f"Install {DISTRIBUTIONS[request.name]} in the job's image, with libraries that fit its driver."
        ) from error
    if device.name != request.name:
        raise DeviceError(f"asked for {request.name} but PennyLane opened {device.name}. Check the image's packages.")
    return device


def versions(request: DeviceRequest) -> dict[str, str]:
    """The versions of the libraries that a result depends on."""
    names = {"pennylane", "networkx", "numpy", "scipy", "autograd", DISTRIBUTIONS[request.name]}
    found = {}
    for name in sorted(names):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
