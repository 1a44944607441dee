"""A device that doesn't work ends the job at once with the remedy; GPUs are played by a program named nvidia-smi."""

from pathlib import Path
from typing import Any

import pennylane as qml
import pytest

from qaoa_source.devices import DeviceError, open_device, parse_device
from qaoa_source.hyperparameters import Hyperparameters
from qaoa_source.preflight import find_gpu, try_device
from tests.jobs.qaoa.conftest import RunJob

LIGHTNING = parse_device("local:pennylane/lightning.qubit")


def nvidia_smi(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_gpu_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia_smi(tmp_path, monkeypatch, "echo 'NVIDIA L4, 22000'; echo 'NVIDIA L4, 100'")
    gpu = find_gpu()
    assert (gpu.name, gpu.free) == ("NVIDIA L4", 22000 * 2**20)


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(DeviceError, match=r"no NVIDIA driver.*Use a GPU instance such as ml.g6"):
        find_gpu()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'No devices were found'", "not a name and free memory"),
        ("echo 'driver mismatch' >&2; exit 18", "no GPU answers (driver mismatch)"),
        ("exit 0", "no GPU answers (no output)"),
    ],
)
def test_driver_without_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, message: str) -> None:
    nvidia_smi(tmp_path, monkeypatch, script)
    with pytest.raises(DeviceError) as error:
        find_gpu()
    assert message in str(error.value)


def test_job_on_a_machine_without_gpu_fails_with_the_remedy(run_job: RunJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(DeviceError, match="Use a GPU instance"):
        run_job(device="local:pennylane/lightning.gpu")


def test_gpu_that_is_too_small(run_job: RunJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia_smi(tmp_path, monkeypatch, "echo 'NVIDIA L4, 1'")
    edges = "\n".join(f"{node} {node + 1}" for node in range(20))
    with pytest.raises(RuntimeError, match=r"needs 0.125 GiB for 21 qubits.*the GPU has 0.000977 GiB free"):
        run_job(edges, device="local:pennylane/lightning.gpu")


def test_missing_library_names_the_package(run_job: RunJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia_smi(tmp_path, monkeypatch, "echo 'NVIDIA L4, 22000'")

    def device(name: str, **options: Any) -> Any:
        raise ImportError("libcustatevec.so.1: cannot open shared object file")

    monkeypatch.setattr(qml, "device", device)
    with pytest.raises(DeviceError, match=r"libcustatevec.*Install pennylane-lightning-gpu"):
        run_job(device="local:pennylane/lightning.gpu")


@pytest.mark.parametrize(
    ("failure", "remedy"),
    [("CUDA driver version is insufficient", "Check the image"), ("out of memory", "Another process holds")],
)
def test_device_that_does_not_run(failure: str, remedy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device = open_device(LIGHTNING, Hyperparameters(), wires=2)

    def execute(*arguments: Any, **options: Any) -> Any:
        raise RuntimeError(failure)

    monkeypatch.setattr(qml, "execute", execute)
    with pytest.raises(DeviceError) as error:
        try_device(LIGHTNING, device)
    assert failure in str(error.value)
    assert remedy in str(error.value)


def test_device_that_answers_wrongly(monkeypatch: pytest.MonkeyPatch) -> None:
    device = open_device(LIGHTNING, Hyperparameters(), wires=2)
    monkeypatch.setattr(qml, "execute", lambda *arguments, **options: (0.1,))
    with pytest.raises(DeviceError, match=r"gives 0.1 where the answer is 0.73"):
        try_device(LIGHTNING, device)


def test_driver_too_old_for_the_library(run_job: RunJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia_smi(tmp_path, monkeypatch, "echo 'NVIDIA L4, 22000'")

    def device(name: str, **options: Any) -> Any:
        raise RuntimeError("CUDA driver version is insufficient for CUDA runtime version")

    monkeypatch.setattr(qml, "device", device)
    with pytest.raises(DeviceError, match=r"insufficient.*with libraries that fit its driver"):
        run_job(device="local:pennylane/lightning.gpu")
