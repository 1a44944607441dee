"""The operations on quantum tasks: CreateQuantumTask, GetQuantumTask, CancelQuantumTask, SearchQuantumTasks."""

import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from hybridjobs.local.braket import life_cycle, task_life_cycle
from hybridjobs.local.braket.devices import MAXIMUM_SHOTS, Device, usable_device
from hybridjobs.local.braket.errors import ServiceError, validation_error, violation
from hybridjobs.local.braket.job_store import JobStore
from hybridjobs.local.braket.jobs import fingerprint_of
from hybridjobs.local.braket.programs import JAQCD, OPENQASM, qubit_count
from hybridjobs.local.braket.rules import BUCKET_RULE, RuleContext, association_violations, is_open_to_braket
from hybridjobs.local.braket.search import EQUAL, TIME, FilterRule, search
from hybridjobs.local.braket.tags import tag_violations
from hybridjobs.local.braket.task_life_cycle import QuantumTask
from hybridjobs.local.braket.task_store import TaskStore
from hybridjobs.local.braket.task_workers import TaskWorkers
from hybridjobs.local.braket.wsgi import Handler

LAST_SHOWN_POSITION = 2000

SEARCH_RULES: Mapping[str, FilterRule] = {
    "quantumTaskArn": FilterRule(EQUAL, lambda task: task.arn),
    "deviceArn": FilterRule(EQUAL, lambda task: task.request["deviceArn"]),
    "jobArn": FilterRule(EQUAL, lambda task: task.job_arn),
    "status": FilterRule(EQUAL, lambda task: task.status),
    "createdAt": FilterRule(TIME, lambda task: task.created_at),
}


class TaskOperations:
    """Answers the operations on quantum tasks from the store, and wakes and stops the workers."""

    def __init__(self, store: TaskStore, jobs: JobStore, workers: TaskWorkers, context: RuleContext):
        self._store = store
        self._jobs = jobs
        self._workers = workers
        self._context = context

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers by operation name."""
        return {
            "CreateQuantumTask": self.create,
            "GetQuantumTask": self.get,
            "CancelQuantumTask": self.cancel,
            "SearchQuantumTasks": self.search,
        }

    def create(self, request: dict[str, Any]) -> Mapping[str, Any]:
        """Accept a task, once for each client token."""
        client_token = request.pop("clientToken")
        fingerprint = fingerprint_of(request)
        task = self._store.repeated(client_token, fingerprint)
        if task is None:
            device = usable_device(request["deviceArn"], "deviceArn")
            action = _action(request["action"])
            violations = list(self._violations(request, action, device))
            if violations:
                raise validation_error(violations)
            task = self._store.create(self._new_task(client_token, fingerprint, request, action))
            self._workers.notify()
        return {"quantumTaskArn": task.arn}

    def _violations(self, request: Mapping[str, Any], action: Mapping[str, Any], device: Device) -> Iterator[str]:
        kind = _kind(action)
        if kind not in {OPENQASM, JAQCD}:
            yield violation("action", kind, f"{device.name} runs programs of the kinds {OPENQASM} and {JAQCD}")
        elif device.maximum_qubits is not None and qubit_count(action) > device.maximum_qubits:
            limit = f"{device.name} has {device.maximum_qubits} qubits"
            yield violation("action", f"{qubit_count(action)} qubits", limit)
        if request["shots"] > MAXIMUM_SHOTS:
            yield violation("shots", request["shots"], f"{device.name} takes at most {MAXIMUM_SHOTS} shots")
        if not is_open_to_braket(request["outputS3Bucket"], self._context.facts):
            yield violation("outputS3Bucket", request["outputS3Bucket"], BUCKET_RULE)
        yield from tag_violations(request.get("tags", {}))
        yield from association_violations(request)

    def _new_task(
        self, client_token: str, fingerprint: str, request: dict[str, Any], action: Mapping[str, Any]
    ) -> QuantumTask:
        settings = self._context.settings
        task_id = str(uuid.uuid4())
        kept = {name: value for name, value in request.items() if name not in {"action", "jobToken", "tags"}}
        return QuantumTask(
            task_id=task_id,
            arn=f"arn:aws:braket:{settings.region}:{settings.account}:quantum-task/{task_id}",
            client_token=client_token,
            fingerprint=fingerprint,
            request=kept,
            action=request["action"],
            action_type=_kind(action),
            job_arn=self._job_arn(request.get("jobToken")),
            created_at=life_cycle.now(),
            tags=request.get("tags", {}),
        )

    def _job_arn(self, job_token: str | None) -> str | None:
        if job_token is None:
            return None
        job = self._jobs.with_token(job_token)
        if job is None or job.is_terminal:
            raise validation_error([violation("jobToken", job_token, "Member must be the token of a running job")])
        return job.arn

    def get(self, request: dict[str, Any]) -> Mapping[str, Any]:
        """Describe a task; where it stands in the queue only on request."""
        task = self._store.get(request["quantumTaskArn"])
        return {
            **_summary(task),
            "failureReason": task.failure_reason,
            "deviceParameters": task.request.get("deviceParameters", "{}"),
            "jobArn": task.job_arn,
            "associations": task.request.get("associations"),
            "experimentalCapabilities": task.request.get("experimentalCapabilities"),
            "numSuccessfulShots": task.request["shots"] if task.status == "COMPLETED" else None,
            "actionMetadata": {"actionType": task.action_type},
            "queueInfo": (
                self._queue_info(task) if "QueueInfo" in request.get("additionalAttributeNames", ()) else None
            ),
        }

    def _queue_info(self, task: QuantumTask) -> Mapping[str, Any]:
        common = {"queue": "QUANTUM_TASKS_QUEUE", "queuePriority": task.priority}
        if task.status == "QUEUED":
            position = max(1, self._store.position(task))
            shown = str(position) if position <= LAST_SHOWN_POSITION else f">{LAST_SHOWN_POSITION}"
            return {**common, "position": shown}
        message = f"Task is in {task.status} status. AmazonBraket does not show queue position for this status."
        return {**common, "position": "None", "message": message}

    def cancel(self, request: dict[str, Any]) -> Mapping[str, Any]:
        """Cancel a task; one that has ended otherwise is a conflict, one that is cancelled already is not."""
        arn = request["quantumTaskArn"]
        task = self._store.update(arn, lambda task: task_life_cycle.cancel_requested(task, life_cycle.now()))
        if task.status in {"COMPLETED", "FAILED"}:
            raise ServiceError("ConflictException", f"Quantum task '{arn}' is {task.status}, too late to cancel it")
        if task.status == "CANCELLING":
            self._workers.end(arn)
        return {"quantumTaskArn": arn, "cancellationStatus": task.status}

    def search(self, request: dict[str, Any]) -> Mapping[str, Any]:
        """Find tasks, newest first, a page at a time."""
        page = search(request, SEARCH_RULES, self._store.newest_first)
        return {"quantumTasks": [_summary(task) for task in page.found], "nextToken": page.next_token}


def _action(text: str) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise validation_error([violation("action", text, f"Member must be a JSON document: {error}")]) from error
    if not isinstance(document, dict) or not _kind(document):
        raise validation_error([violation("action", text, "Member must be a program with a braketSchemaHeader")])
    return document


def _kind(action: Mapping[str, Any]) -> str:
    header = action.get("braketSchemaHeader")
    return str(header.get("name", "")) if isinstance(header, dict) else ""


def _summary(task: QuantumTask) -> dict[str, Any]:
    return {
        "quantumTaskArn": task.arn,
        "status": task.status,
        "deviceArn": task.request["deviceArn"],
        "shots": task.request["shots"],
        "outputS3Bucket": task.request["outputS3Bucket"],
        "outputS3Directory": task.output_directory,
        "createdAt": task.created_at,
        "endedAt": task.ended_at,
        "tags": task.tags,
    }
