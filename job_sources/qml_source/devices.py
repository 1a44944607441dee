"""Opens the simulator that the job was asked to run on, and no other."""

import importlib.metadata
import platform
from typing import Any

import numpy as np
import pennylane as qml

from qml_source.hyperparameters import Hyperparameters
from qml_source.memory import available_bytes, readable
from qml_source.simulators import CONTRACTION, SIMULATORS, DeviceError, DeviceRequest

BYTES_PER_AMPLITUDE = {"double": 16, "single": 8}
# The state, its adjoint, and the copy that each derivative is taken on, with one to spare for the device's own work.
STATES_OF_ADJOINT = 4


def check_memory(request: DeviceRequest, settings: Hyperparameters, sharers: int) -> None:
    """Refuses a state vector that this worker's share of the memory can't hold, before it is allocated.

    `sharers` is the number of workers on this host. A GPU's memory is left to the device to check.

    Raises:
        DeviceError: Says how much is needed, how much there is, and the remedy.
    """
    if request.text == CONTRACTION or request.uses_gpu:
        return
    states = STATES_OF_ADJOINT if request.is_lightning else bytes_of_batch_in_states(settings.nwires)
    needed = states * BYTES_PER_AMPLITUDE[settings.precision] * 2**settings.nwires
    available = available_bytes() // sharers
    if needed > available:
        raise DeviceError(
            f"nwires = {settings.nwires} on {request.name} needs {readable(needed)} of memory a worker and "
            f"{readable(available)} are there. Use fewer qubits or workers, a larger instance, or {CONTRACTION}, "
            "whose memory hardly grows with the qubits."
        )


def bytes_of_batch_in_states(nwires: int) -> int:
    """How many state vectors backpropagation keeps for one sample: two a fused gate, and the first."""
    return 2 * (2 * nwires + 1) + 2


def open_device(request: DeviceRequest, settings: Hyperparameters) -> Any:
    """Creates the device and runs one small circuit on it.

    Raises:
        DeviceError: It isn't installed, doesn't load or can't compute, or PennyLane gave another device.
    """
    options: dict[str, Any] = {}
    if request.is_lightning:
        options["c_dtype"] = np.complex64 if settings.precision == "single" else np.complex128
    try:
        device = _make(request, settings.nwires, options)
        if device.name != request.name:
            raise DeviceError(f"asked for {request.name} but PennyLane opened {device.name}. Check the image.")
        # One qubit more than is needed would double the state: the trial runs on a wire of the job's own device.
        trial = qml.tape.QuantumScript([qml.RX(0.5, wires=0)], [qml.expval(qml.PauliZ(0))])
        (value,) = qml.execute([trial], device, diff_method=None)
    except (qml.exceptions.DeviceError, ImportError, OSError, RuntimeError, MemoryError) as error:
        if isinstance(error, DeviceError):
            raise
        package = SIMULATORS[request.text] or "the folder contraction"
        raise DeviceError(
            f"{request.name} can't be used: {type(error).__name__}: {error}. Use an image or an archive with {package}"
            f"{' and an instance with a GPU' if request.uses_gpu else ''}."
        ) from error
    if abs(float(value) - np.cos(0.5)) > 1e-5:
        raise DeviceError(f"{request.name} computes cos(0.5) as {float(value)}. Check the image's packages.")
    return device


def _make(request: DeviceRequest, wires: int, options: dict[str, Any]) -> Any:
    if request.text != CONTRACTION:
        return qml.device(request.name, wires=wires, **options)
    from contraction.device import ContractionDevice  # noqa: PLC0415 - only this simulator's jobs take it along

    return ContractionDevice(wires=wires)


def versions(request: DeviceRequest) -> dict[str, str]:
    """The versions of what a result depends on."""
    found = {"python": platform.python_version()}
    for name in sorted({"pennylane", "numpy", "torch", SIMULATORS[request.text]} - {""}):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
