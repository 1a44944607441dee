"""The devices that Braket has, and what an account without access to hardware may do with them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from hybridjobs.local.braket.errors import ServiceError

NOT_AUTHORIZED = "This account is not authorized to use this resource."
MAXIMUM_SHOTS = 100_000


@dataclass(frozen=True)
class Device:
    """One device; `maximum_qubits` is set for the simulators that are computed here."""

    arn: str
    name: str
    provider: str
    type: Literal["QPU", "SIMULATOR"]
    status: Literal["ONLINE", "RETIRED"] = "ONLINE"
    maximum_qubits: int | None = None


def _simulator(name: str, maximum_qubits: int | None, *, retired: bool = False) -> Device:
    return Device(
        arn=f"arn:aws:braket:::device/quantum-simulator/amazon/{name.lower()}",
        name=name,
        provider="Amazon Braket",
        type="SIMULATOR",
        status="RETIRED" if retired else "ONLINE",
        maximum_qubits=maximum_qubits,
    )


def _qpus(provider: str, region: str, *names: str, retired: bool = False) -> Iterator[Device]:
    for name in names:
        yield Device(
            arn=f"arn:aws:braket:{region}::device/qpu/{provider.lower()}/{name}",
            name=name,
            provider=provider,
            type="QPU",
            status="RETIRED" if retired else "ONLINE",
        )


# As listed by the Braket SDK's `Devices`, 2026.
DEVICES: Mapping[str, Device] = {
    device.arn: device
    for device in (
        _simulator("SV1", 34),
        _simulator("DM1", 17),
        _simulator("TN1", None, retired=True),
        *_qpus("AQT", "eu-north-1", "Ibex-Q1"),
        *_qpus("IonQ", "us-east-1", "Forte-1", "Forte-Enterprise-1"),
        *_qpus("IQM", "eu-north-1", "Garnet", "Emerald"),
        *_qpus("QuEra", "us-east-1", "Aquila"),
        *_qpus("Rigetti", "us-west-1", "Cepheus-1-108Q"),
        *_qpus("IonQ", "us-east-1", "Harmony", "Aria-1", "Aria-2", retired=True),
        *_qpus("OQC", "eu-west-2", "Lucy", retired=True),
        *_qpus("Rigetti", "us-west-1", "Aspen-M-1", "Aspen-M-2", "Aspen-M-3", "Ankaa-2", "Ankaa-3", retired=True),
        *_qpus("Xanadu", "us-east-1", "Borealis", retired=True),
        *_qpus("D-Wave", "us-west-2", "Advantage_system6", retired=True),
    )
}


def usable_device(arn: str, field: str) -> Device:
    """Return a device that a job or task may use here.

    Raises ServiceError: ValidationException for an unknown ARN (`field` names where it stood),
    DeviceRetiredException, and AccessDeniedException for hardware.
    """
    device = DEVICES.get(arn)
    if device is None:
        simulators = ", ".join(each.arn for each in DEVICES.values() if each.maximum_qubits)
        raise ServiceError(
            "ValidationException",
            f"Value '{arn}' at '{field}' is no Braket device; the simulators that are computed here are {simulators}",
        )
    if device.status == "RETIRED":
        raise ServiceError("DeviceRetiredException", f"Value '{arn}' at '{field}': {device.name} is retired")
    if device.type == "QPU":
        raise ServiceError("AccessDeniedException", f"{NOT_AUTHORIZED} Value '{arn}' at '{field}' is hardware.")
    return device
