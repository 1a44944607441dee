"""The job runs on the device it was asked for, or not at all."""

import pytest

from qaoa_source.devices import DeviceError, check_method, open_device, parse_device
from qaoa_source.hyperparameters import Hyperparameters

SV1 = "arn:aws:braket:::device/quantum-simulator/amazon/sv1"


@pytest.mark.parametrize("name", ["lightning.qubit", "lightning.gpu", "lightning.kokkos", "default.qubit"])
def test_embedded_simulators(name: str) -> None:
    request = parse_device(f"local:pennylane/{name}")
    assert (request.name, request.embedded) == (name, True)


def test_arn_is_a_braket_device() -> None:
    request = parse_device(SV1)
    assert (request.name, request.arn, request.embedded) == ("braket.aws.qubit", SV1, False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("local:pennylane/lightning.qbit", "Did you mean local:pennylane/lightning.qubit?"),
        ("local:none/none", "Use local:pennylane/ and one of"),
        ("local:other/lightning.qubit", "unknown to this job"),
        ("lightning.qubit", "unknown to this job"),
        ("", "unknown to this job"),
    ],
)
def test_unknown_device_string(text: str, message: str) -> None:
    with pytest.raises(DeviceError) as error:
        parse_device(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("device", "settings", "message"),
    [
        ("local:pennylane/lightning.qubit", Hyperparameters(diff_method="backprop", interface="autograd"), "backprop"),
        ("local:pennylane/default.qubit", Hyperparameters(precision="single"), "precision = 'single'"),
        (SV1, Hyperparameters(), "needs diff_method = parameter-shift and shots"),
    ],
)
def test_what_a_device_cannot_do_is_refused(device: str, settings: Hyperparameters, message: str) -> None:
    with pytest.raises(DeviceError) as error:
        check_method(parse_device(device), settings)
    assert message in str(error.value)


def test_device_that_is_not_installed_names_its_package() -> None:
    with pytest.raises(DeviceError, match="Install amazon-braket-pennylane-plugin"):
        open_device(parse_device(SV1), Hyperparameters(shots=10, diff_method="parameter-shift"), wires=2)
