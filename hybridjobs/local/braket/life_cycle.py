"""A job's life as data and pure transitions: which states follow which, which events are noted, when time counts.

QUEUED -> RUNNING -> COMPLETED or FAILED; on a cancel CANCELLING -> CANCELLED (a job that no worker has taken is
CANCELLED at once). No transition leaves a terminal state, and one that would go backwards returns the job unchanged.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from hybridjobs.local.runners.base import Outcome, Phase

Status = Literal["QUEUED", "RUNNING", "COMPLETED", "FAILED", "CANCELLING", "CANCELLED"]

TERMINAL: frozenset[Status] = frozenset({"COMPLETED", "FAILED", "CANCELLED"})
MAXIMUM_REASON_LENGTH = 1024
DEFAULT_MAXIMUM_RUNTIME_SECONDS = 432_000


@dataclass(frozen=True)
class JobEvent:
    """One entry of a job's `events`, named as in the service model."""

    type: str
    time: datetime
    message: str


@dataclass(frozen=True)
class Job:
    """One job; `request` is what CreateJob accepted with its defaults filled in, `taken` is true once a worker has it.

    `job_token` ties quantum tasks to the job; `sequence` is its place in the queue (0 until stored).
    """

    job_id: str
    arn: str
    job_token: str
    client_token: str
    fingerprint: str
    request: Mapping[str, Any]
    created_at: datetime
    status: Status = "QUEUED"
    taken: bool = False
    started_at: datetime | None = None
    ended_at: datetime | None = None
    failure_reason: str | None = None
    events: tuple[JobEvent, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    sequence: int = 0

    @property
    def name(self) -> str:
        """The name that the user gave."""
        return str(self.request["jobName"])

    @property
    def device(self) -> str:
        """The device string that the user gave."""
        return str(self.request["deviceConfig"]["device"])

    @property
    def is_terminal(self) -> bool:
        """Whether the job has ended."""
        return self.status in TERMINAL

    @property
    def billable_seconds(self) -> int | None:
        """Whole seconds from start to end, as billed for each instance; None before both are known."""
        if self.started_at is None or self.ended_at is None:
            return None
        return math.ceil((self.ended_at - self.started_at).total_seconds())

    @property
    def maximum_runtime_seconds(self) -> int:
        """The limit after which the job is ended."""
        return int(self.request["stoppingCondition"]["maxRuntimeInSeconds"])


def now() -> datetime:
    """Return the time in the resolution that the service's answers have: milliseconds, UTC."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def queued(job: Job) -> Job:
    """Put a new job into the queue."""
    return _noted(job, "QUEUED_FOR_EXECUTION", job.created_at, "The job waits for execution.")


def taken(job: Job, moment: datetime) -> Job:
    """Give a queued job to a worker."""
    if job.status != "QUEUED" or job.taken:
        return job
    kind = job.request["instanceConfig"]["instanceType"]
    return _noted(replace(job, taken=True), "STARTING_INSTANCE", moment, f"Starting {kind}.")


def started(job: Job, moment: datetime) -> Job:
    """Mark a taken job as RUNNING; time is billed from here."""
    if job.status != "QUEUED" or not job.taken:
        return job
    return replace(job, status="RUNNING", started_at=_not_before(job, moment))


_PHASE_MESSAGES: Mapping[Phase, str] = {
    "DOWNLOADING_DATA": "Downloading sources and input data.",
    "RUNNING": "The job is running.",
    "UPLOADING_RESULTS": "Uploading results.",
}


def entered(job: Job, phase: Phase, moment: datetime) -> Job:
    """Note that the runner entered `phase`; only the first of several hosts counts."""
    job = started(job, moment)
    if job.status != "RUNNING" or any(event.type == phase for event in job.events):
        return job
    return _noted(job, phase, moment, _PHASE_MESSAGES[phase])


def timed_out(job: Job, moment: datetime) -> Job:
    """Note that the job has used up its maximum runtime; it fails as soon as its processes have ended."""
    if job.status != "RUNNING" or _exceeded(job):
        return job
    limit = job.maximum_runtime_seconds
    return _noted(job, "MAX_RUNTIME_EXCEEDED", moment, f"The job ran longer than its limit of {limit} s.")


def cancel_requested(job: Job, moment: datetime) -> Job:
    """Cancel: a job that only waits is CANCELLED at once, a taken one becomes CANCELLING until its processes ended."""
    if job.status == "QUEUED" and not job.taken:
        return _ended(job, "CANCELLED", moment, "The job was cancelled.")
    if job.status in {"QUEUED", "RUNNING"}:
        return replace(job, status="CANCELLING")
    return job


def ended(job: Job, outcome: Outcome, moment: datetime) -> Job:
    """Settle a job whose processes have ended; a cancel or a passed limit outweighs what the runner says."""
    if job.is_terminal:
        return job
    if job.status == "CANCELLING":
        return _ended(job, "CANCELLED", moment, "The job was cancelled.")
    if _exceeded(job):
        limit = job.maximum_runtime_seconds
        # What the runner says tells a program that still computed from one that had returned and left a child behind.
        detail = f"; {outcome.failure_reason}" if outcome.failure_reason else ""
        reason = f"MAX_RUNTIME_EXCEEDED: the job ran longer than maxRuntimeInSeconds = {limit}{detail}"
        return _failed(job, reason, moment)
    if outcome.failure_reason is not None:
        return _failed(job, outcome.failure_reason, moment)
    return _ended(started(job, moment), "COMPLETED", moment, "The job completed.")


def interrupted(job: Job, reason: str, moment: datetime) -> Job:
    """Settle a job that a worker had when the endpoint stopped; one that only waits goes on waiting."""
    if job.status == "QUEUED" and not job.taken:
        return job
    return ended(job, Outcome(failure_reason=reason), moment)


def _exceeded(job: Job) -> bool:
    return any(event.type == "MAX_RUNTIME_EXCEEDED" for event in job.events)


def _failed(job: Job, reason: str, moment: datetime) -> Job:
    text = reason.strip()[:MAXIMUM_REASON_LENGTH] or "The job failed without saying why."
    return _ended(replace(job, failure_reason=text), "FAILED", moment, text)


def _ended(job: Job, status: Status, moment: datetime, message: str) -> Job:
    return _noted(replace(job, status=status, ended_at=_not_before(job, moment)), status, moment, message)


def _noted(job: Job, kind: str, moment: datetime, message: str) -> Job:
    event = JobEvent(kind, _not_before(job, moment), message)
    return replace(job, events=(*job.events, event))


def _not_before(job: Job, moment: datetime) -> datetime:
    """The clock of a machine can be set back; a job's times can't."""
    return max(moment, job.events[-1].time if job.events else job.created_at)
