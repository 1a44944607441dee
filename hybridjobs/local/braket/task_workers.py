"""Computes queued quantum tasks and stores their results in the emulated S3."""

import json
import threading
from collections.abc import Mapping
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from hybridjobs.local.braket import life_cycle, task_life_cycle
from hybridjobs.local.braket.cloud_facts import emulated_client
from hybridjobs.local.braket.devices import DEVICES
from hybridjobs.local.braket.simulators import SimulationError, Simulator
from hybridjobs.local.braket.task_life_cycle import QuantumTask
from hybridjobs.local.braket.task_store import TaskStore

STOPPED_REASON = "The local Braket endpoint was stopped while the task was computed"


class ResultStore(Protocol):
    """Where results go."""

    def put(self, bucket: str, key: str, body: bytes) -> None:
        """Store one object; OSError with the reason where that fails."""
        ...


class S3ResultStore:
    """The emulated S3 behind AWS_ENDPOINT_URL of `aws_environment`."""

    def __init__(self, aws_environment: Mapping[str, str]):
        self._environment = aws_environment

    def put(self, bucket: str, key: str, body: bytes) -> None:
        """See ResultStore."""
        if "AWS_ENDPOINT_URL" not in self._environment:
            raise OSError("the endpoint was started without an emulated cloud (AWS_ENDPOINT_URL)")
        try:
            emulated_client("s3", self._environment).put_object(
                Bucket=bucket, Key=key, Body=body, ContentType="application/json"
            )
        except (BotoCoreError, ClientError) as error:
            raise OSError(f"s3://{bucket}/{key} could not be written: {error}") from error


class TaskWorkers:
    """A bounded number of workers, each with a simulating process of its own that starts with its first task."""

    def __init__(self, store: TaskStore, results: ResultStore, *, count: int):
        self._store = store
        self._results = results
        self._condition = threading.Condition()
        self._stopping = False
        self._simulators = [Simulator() for _ in range(count)]
        self._computing: dict[str, Simulator] = {}
        self._threads = [
            threading.Thread(target=self._work, args=[simulator], name=f"braket-task-{number}", daemon=True)
            for number, simulator in enumerate(self._simulators)
        ]

    def start(self) -> None:
        """Begin with the tasks that wait in the store."""
        for thread in self._threads:
            thread.start()

    def notify(self) -> None:
        """Say that a task has been stored."""
        with self._condition:
            self._condition.notify()

    def end(self, arn: str) -> None:
        """Stop the computation of a task, if it has begun; its worker then settles the state."""
        with self._condition:
            simulator = self._computing.get(arn)
            # Within the lock, so that the worker can't have gone on to another task in the meantime.
            if simulator is not None:
                simulator.stop()

    def stop(self) -> None:
        """End all computations; tasks that only wait stay queued in the store."""
        with self._condition:
            self._stopping = True
            self._condition.notify_all()
        for thread, simulator in zip(self._threads, self._simulators, strict=True):
            simulator.close()
            thread.join()
        self._store.interrupt_all(STOPPED_REASON, life_cycle.now())

    def _work(self, simulator: Simulator) -> None:
        while task := self._next(simulator):
            reason = self._compute(task, simulator)
            with self._condition:
                self._computing.pop(task.arn)
            self._settle(task.arn, STOPPED_REASON if reason and self._stopping else reason)

    def _settle(self, arn: str, reason: str | None) -> None:
        self._store.update(arn, lambda task: task_life_cycle.ended(task, reason, life_cycle.now()))

    def _next(self, simulator: Simulator) -> QuantumTask | None:
        with self._condition:
            while not self._stopping:
                task = self._store.take_next()
                if task is not None:
                    self._computing[task.arn] = simulator
                    return task
                self._condition.wait()
        return None

    def _compute(self, task: QuantumTask, simulator: Simulator) -> str | None:
        """Return why it failed, or None."""
        device = DEVICES[task.request["deviceArn"]]
        try:
            result = simulator.simulate(device.name, task.action, task.request["shots"])
            document = _with_task(result, task)
            key = f"{task.output_directory}/results.json"
            self._results.put(task.request["outputS3Bucket"], key, json.dumps(document).encode())
        except (SimulationError, OSError) as error:
            return str(error)
        return None


def _with_task(result: Mapping[str, Any], task: QuantumTask) -> dict[str, Any]:
    """Name the task in its result, where the simulator has put names of its own."""
    metadata = {
        **result["taskMetadata"],
        "id": task.arn,
        "deviceId": task.request["deviceArn"],
        "createdAt": task.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "endedAt": life_cycle.now().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    return {**result, "taskMetadata": metadata}
