"""The operations on devices: GetDevice, SearchDevices."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from hybridjobs.local.braket.devices import DEVICES, MAXIMUM_SHOTS, NOT_AUTHORIZED, Device
from hybridjobs.local.braket.errors import ServiceError
from hybridjobs.local.braket.job_store import JobStore
from hybridjobs.local.braket.programs import JAQCD, OPENQASM
from hybridjobs.local.braket.search import EQUAL, FilterRule, search
from hybridjobs.local.braket.simulators import Simulator
from hybridjobs.local.braket.task_store import TaskStore
from hybridjobs.local.braket.wsgi import Handler


@dataclass(frozen=True)
class _Listed:
    device: Device
    sequence: int


# Hardware is not listed: an account without access to it can't use what it would find.
_LISTED = tuple(
    _Listed(device, number)
    for number, device in enumerate(each for each in DEVICES.values() if each.type == "SIMULATOR")
)

SEARCH_RULES: Mapping[str, FilterRule] = {"deviceArn": FilterRule(EQUAL, lambda listed: listed.device.arn)}


class DeviceOperations:
    """Describes the simulators; hardware answers as it does to an account without access."""

    def __init__(self, jobs: JobStore, tasks: TaskStore):
        self._jobs = jobs
        self._tasks = tasks

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers by operation name."""
        return {"GetDevice": self.get, "SearchDevices": self.search}

    def get(self, request: dict[str, Any]) -> Mapping[str, Any]:
        """Describe a simulator with its capabilities and the lengths of its queues."""
        arn = request["deviceArn"]
        device = DEVICES.get(arn)
        if device is None or device.status == "RETIRED":
            raise ServiceError("ResourceNotFoundException", f"Device '{arn}' not found")
        if device.type == "QPU":
            raise ServiceError("AccessDeniedException", f"{NOT_AUTHORIZED} Value '{arn}' at 'deviceArn' is hardware.")
        return {**_summary(device), "deviceCapabilities": capabilities(device), "deviceQueueInfo": self._queues(device)}

    def _queues(self, device: Device) -> list[Mapping[str, Any]]:
        tasks = "QUANTUM_TASKS_QUEUE"
        return [
            {"queue": tasks, "queuePriority": "Normal", "queueSize": str(self._tasks.waiting(of_jobs=False))},
            {"queue": tasks, "queuePriority": "Priority", "queueSize": str(self._tasks.waiting(of_jobs=True))},
            {"queue": "JOBS_QUEUE", "queueSize": str(self._jobs.waiting(device.arn))},
        ]

    def search(self, request: dict[str, Any]) -> Mapping[str, Any]:
        """Find devices by ARN, a page at a time."""
        page = search(request, SEARCH_RULES, _newest_first)
        return {"devices": [_summary(each.device) for each in page.found], "nextToken": page.next_token}


def _newest_first(before: int | None) -> Iterator[_Listed]:
    return (each for each in reversed(_LISTED) if before is None or each.sequence < before)


def _summary(device: Device) -> dict[str, Any]:
    return {
        "deviceArn": device.arn,
        "deviceName": device.name,
        "providerName": device.provider,
        "deviceType": device.type,
        "deviceStatus": device.status,
    }


@cache
def capabilities(device: Device) -> str:
    """Return the capabilities document of a simulator: the local simulator's, within the limits of the service."""
    simulator = Simulator()
    try:
        document = simulator.capabilities(device.name)
    finally:
        simulator.close()
    document["service"]["shotsRange"] = [0, MAXIMUM_SHOTS]
    document["action"] = {kind: document["action"][kind] for kind in (JAQCD, OPENQASM) if kind in document["action"]}
    document["paradigm"]["qubitCount"] = device.maximum_qubits
    return json.dumps(document)
