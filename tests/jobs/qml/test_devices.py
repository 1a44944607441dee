"""The job runs on the simulator it was asked for, or not at all."""

from typing import Any

import pennylane as qml
import pytest

from qml_source import devices
from qml_source.devices import check_memory, open_device
from qml_source.hyperparameters import Hyperparameters
from qml_source.simulators import DeviceError, check_method, parse_device
from tests.jobs.qml.job_run import DEFAULT_QUBIT, LIGHTNING

SV1 = "arn:aws:braket:::device/quantum-simulator/amazon/sv1"


def test_each_simulator_has_its_own_way_to_gradients() -> None:
    assert parse_device(LIGHTNING).differentiation == "adjoint"
    assert parse_device(DEFAULT_QUBIT).differentiation == "backprop"
    assert parse_device("local:hybridjobs/contraction").name == "hybridjobs.contraction"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("local:pennylane/lightning.qbit", "Did you mean local:pennylane/lightning.qubit?"),
        (SV1, "only embedded simulators give"),
        ("lightning", "Use one of local:pennylane/lightning.qubit"),
    ],
)
def test_unknown_device(text: str, message: str) -> None:
    with pytest.raises(DeviceError) as error:
        parse_device(text)
    assert message in str(error.value)


def test_method_or_precision_that_the_device_lacks_is_refused() -> None:
    check_method(parse_device(LIGHTNING), Hyperparameters(diff_method="adjoint", precision="single"))
    with pytest.raises(DeviceError, match=r"diff_method = 'backprop' doesn't work on lightning.qubit: give adjoint"):
        check_method(parse_device(LIGHTNING), Hyperparameters(diff_method="backprop"))
    with pytest.raises(DeviceError, match=r"precision = 'single' doesn't work on default.qubit"):
        check_method(parse_device(DEFAULT_QUBIT), Hyperparameters(precision="single"))


@pytest.mark.parametrize("device", [LIGHTNING, DEFAULT_QUBIT])
def test_state_that_does_not_fit_is_refused_before_it_is_allocated(device: str) -> None:
    with pytest.raises(DeviceError, match=r"nwires = 45 on .* needs .*iB of memory a worker and .* are there"):
        check_memory(parse_device(device), Hyperparameters(nwires=45), sharers=1)


def test_workers_of_a_host_share_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "available_bytes", lambda: 5 * 16 * 2**10)
    check_memory(parse_device(LIGHTNING), Hyperparameters(nwires=10), sharers=1)
    with pytest.raises(DeviceError, match="fewer qubits or workers"):
        check_memory(parse_device(LIGHTNING), Hyperparameters(nwires=10), sharers=2)


def test_device_that_pennylane_does_not_give_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    real = qml.device
    monkeypatch.setattr(qml, "device", lambda name, **options: real("default.qubit", wires=options["wires"]))
    with pytest.raises(DeviceError, match=r"asked for lightning.qubit but PennyLane opened default.qubit"):
        open_device(parse_device(LIGHTNING), Hyperparameters(nwires=4))


def test_gpu_simulator_without_a_gpu_ends_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_driver(name: str, **options: Any) -> Any:
        raise ImportError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(qml, "device", no_driver)
    with pytest.raises(DeviceError, match=r"lightning.gpu can't be used: ImportError.*an instance with a GPU"):
        open_device(parse_device("local:pennylane/lightning.gpu"), Hyperparameters(nwires=4))
