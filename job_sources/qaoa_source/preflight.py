"""Finds out within seconds whether the device works, so that a job on the wrong instance ends at once."""

import math
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any

from qaoa_source.devices import DISTRIBUTIONS, DeviceError, DeviceRequest
from qaoa_source.pennylane_later import qml


@dataclass(frozen=True)
class Gpu:
    """A GPU as its driver describes it; memory in bytes."""

    name: str
    free: float


_QUERY = ("--query-gpu=name,memory.free", "--format=csv,noheader,nounits")


def find_gpu() -> Gpu:
    """Asks the NVIDIA driver for the first GPU.

    Raises:
        DeviceError: There is no driver, it doesn't answer, or it has no GPU.
    """
    remedy = "Use a GPU instance such as ml.g6.2xlarge, or the device local:pennylane/lightning.qubit."
    program = shutil.which("nvidia-smi")
    if program is None:
        raise DeviceError(f"lightning.gpu: this instance has no NVIDIA driver (nvidia-smi isn't there). {remedy}")
    try:
        answer = subprocess.run([program, *_QUERY], capture_output=True, text=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        raise DeviceError("lightning.gpu: the NVIDIA driver doesn't answer within 20 s. Run the job again.") from None
    lines = [line for line in answer.stdout.splitlines() if line.strip()]
    if answer.returncode != 0 or not lines:
        said = (answer.stderr or answer.stdout).strip().splitlines()
        raise DeviceError(f"lightning.gpu: no GPU answers ({said[0] if said else 'no output'}). {remedy}")
    name, _, mebibytes = lines[0].rpartition(",")
    try:
        return Gpu(name.strip(), float(mebibytes) * 2**20)
    except ValueError:
        raise DeviceError(f"lightning.gpu: nvidia-smi answered {lines[0]!r}, not a name and free memory.") from None


def try_device(request: DeviceRequest, device: Any) -> None:
    """Runs a circuit of two qubits whose answer is known.

    Raises:
        DeviceError: It doesn't run, or gives another answer.
    """
    angle = 0.75
    script = qml.tape.QuantumScript([qml.RX(angle, wires=0), qml.CNOT(wires=(0, 1))], [qml.expval(qml.PauliZ(1))])
    package = DISTRIBUTIONS[request.name]
    try:
        (value,) = qml.execute([script], device, diff_method=None)
    except (RuntimeError, ImportError, OSError) as error:
        reason = str(error).strip() or type(error).__name__
        remedy = f"Install the {package} that belongs to this image's CUDA" if "gpu" in package else "Check the image"
        if "memory" in reason.lower():
            remedy = "Another process holds the device's memory: end it, or use a larger instance"
        raise DeviceError(f"{request.name} doesn't run a circuit of two qubits: {reason}. {remedy}.") from error
    if not math.isclose(float(value), math.cos(angle), abs_tol=1e-5):
        raise DeviceError(
            f"{request.name} gives {float(value)} where the answer is {math.cos(angle)}. "
            f"Use another version of {package}."
        )
