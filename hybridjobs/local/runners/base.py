"""What the Braket endpoint asks of a runner, whatever isolates the job."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

Phase = Literal["DOWNLOADING_DATA", "RUNNING", "UPLOADING_RESULTS"]


@dataclass(frozen=True)
class JobRun:
    """One job to execute.

    `request` is the CreateJob request as the service accepted it, `folder` is the job's private folder,
    `aws_environment` holds the variables that point AWS clients at the embedded cloud.
    """

    job_name: str
    job_id: str
    job_arn: str
    request: Mapping[str, Any]
    folder: Path
    aws_environment: Mapping[str, str]


@dataclass(frozen=True)
class Outcome:
    """How a job ended; `failure_reason` is None exactly when it succeeded."""

    failure_reason: str | None


class RunningJob(Protocol):
    """A job that has been started."""

    def wait(self) -> Outcome:
        """Block until the job has ended on all hosts and its results are stored."""
        ...

    def stop(self) -> None:
        """End the job's whole process tree on all hosts; safe to call twice and after the end."""
        ...


class Runner(Protocol):
    """Executes jobs."""

    def start(self, run: JobRun, on_phase: Callable[[Phase], None]) -> RunningJob:
        """Start `run` without waiting for it; `on_phase` is called, from any thread, as the job enters each phase."""
        ...
