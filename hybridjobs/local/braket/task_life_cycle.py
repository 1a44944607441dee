"""A quantum task's life as data and pure transitions: QUEUED -> RUNNING -> COMPLETED or FAILED; CANCELLED."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from hybridjobs.local.braket.events import state_change

TaskStatus = Literal["CREATED", "QUEUED", "RUNNING", "COMPLETED", "FAILED", "CANCELLING", "CANCELLED"]

TERMINAL: frozenset[TaskStatus] = frozenset({"COMPLETED", "FAILED", "CANCELLED"})


@dataclass(frozen=True)
class QuantumTask:
    """One quantum task; `request` is what CreateQuantumTask accepted, `job_arn` the job it belongs to, if any.

    `action` is the program document, kept until the task has ended.
    """

    task_id: str
    arn: str
    client_token: str
    fingerprint: str
    request: Mapping[str, Any]
    action: str
    action_type: str
    job_arn: str | None
    created_at: datetime
    status: TaskStatus = "QUEUED"
    ended_at: datetime | None = None
    failure_reason: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    sequence: int = 0

    @property
    def output_directory(self) -> str:
        """The key prefix of the task's results."""
        return f"{self.request['outputS3KeyPrefix'].rstrip('/')}/{self.task_id}"

    @property
    def is_terminal(self) -> bool:
        """Whether the task has ended."""
        return self.status in TERMINAL

    @property
    def priority(self) -> Literal["Normal", "Priority"]:
        """Tasks of jobs run before the others."""
        return "Priority" if self.job_arn else "Normal"


def running(task: QuantumTask) -> QuantumTask:
    """Begin to compute a queued task."""
    return replace(task, status="RUNNING") if task.status == "QUEUED" else task


def cancel_requested(task: QuantumTask, moment: datetime) -> QuantumTask:
    """Cancel: a waiting task is CANCELLED at once, one that is computed becomes CANCELLING until it is stopped."""
    if task.status == "QUEUED":
        return _ended(task, "CANCELLED", moment)
    return replace(task, status="CANCELLING") if task.status == "RUNNING" else task


def ended(task: QuantumTask, failure_reason: str | None, moment: datetime) -> QuantumTask:
    """Settle a task whose computation has ended; a cancel outweighs its outcome."""
    if task.is_terminal:
        return task
    if task.status == "CANCELLING":
        return _ended(task, "CANCELLED", moment)
    if failure_reason is not None:
        return _ended(replace(task, failure_reason=failure_reason), "FAILED", moment)
    return _ended(task, "COMPLETED", moment)


def interrupted(task: QuantumTask, reason: str, moment: datetime) -> QuantumTask:
    """Settle a task that was computed when the endpoint stopped; one that waits goes on waiting."""
    return task if task.status == "QUEUED" else ended(task, reason, moment)


def _ended(task: QuantumTask, status: TaskStatus, moment: datetime) -> QuantumTask:
    return replace(task, status=status, ended_at=max(moment, task.created_at), action="")


def task_state_change(task: QuantumTask, moment: datetime) -> dict[str, Any]:
    """Return the EventBridge entry for the state `task` is in now, with the documented detail."""
    detail = {
        "quantumTaskArn": task.arn,
        "status": task.status,
        "deviceArn": task.request["deviceArn"],
        "shots": str(task.request["shots"]),
        "outputS3Bucket": task.request["outputS3Bucket"],
        "outputS3Directory": task.output_directory,
        "createdAt": task.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "endedAt": task.ended_at and task.ended_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "eventName": "INSERT" if task.status == "QUEUED" else "MODIFY",
    }
    return state_change("Braket Task State Change", task.arn, detail, moment)
