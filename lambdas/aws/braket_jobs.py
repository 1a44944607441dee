"""Braket's jobs: create, look up, find by name, cancel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from mypy_boto3_braket import BraketClient

TERMINAL = frozenset({"COMPLETED", "FAILED", "CANCELLED"})


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job as Braket knows it. `billable` is GetJob's billableDuration, whose unit Braket doesn't state."""

    arn: str
    name: str
    status: str
    device: str
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    failure_reason: str | None = None
    output_path: str | None = None
    billable: int | None = None
    instance: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def is_terminal(self) -> bool:
        """Whether the job has ended."""
        return self.status in TERMINAL

    @property
    def is_active(self) -> bool:
        """Whether the job runs or waits, and nobody has cancelled it."""
        return not self.is_terminal and self.status != "CANCELLING"


class BraketJobs:
    """The calls of the Braket API that concern jobs. botocore's errors pass through."""

    def __init__(self, client: BraketClient) -> None:
        self._client = client

    def create(self, request: dict[str, Any]) -> str:
        """Create a job; returns its ARN. The same request again returns the same job, by its client token."""
        return self._client.create_job(**request)["jobArn"]

    def get(self, arn: str) -> Job | None:
        """Return the job of that ARN; None if Braket doesn't know it."""
        try:
            answer = self._client.get_job(jobArn=arn)
        except ClientError as error:
            if error.response["Error"]["Code"] == "ResourceNotFoundException":
                return None
            raise
        return Job(
            arn=answer["jobArn"],
            name=answer["jobName"],
            status=answer["status"],
            device=answer.get("deviceConfig", {}).get("device", ""),
            created_at=answer["createdAt"],
            started_at=answer.get("startedAt"),
            ended_at=answer.get("endedAt"),
            failure_reason=answer.get("failureReason"),
            output_path=answer["outputDataConfig"]["s3Path"],
            billable=answer.get("billableDuration"),
            instance=dict(answer["instanceConfig"]),
            tags=dict(answer.get("tags", {})),
        )

    def find(self, name: str) -> list[Job]:
        """Return the jobs of exactly that name, the newest first."""
        found = self._search([{"name": "jobName", "operator": "EQUAL", "values": [name]}])
        return sorted((job for job in found if job.name == name), key=lambda job: job.created_at, reverse=True)

    def since(self, moment: datetime) -> Iterator[Job]:
        """Return the jobs that were created at that moment or later."""
        return self._search(
            [{"name": "createdAt", "operator": "GTE", "values": [moment.strftime("%Y-%m-%dT%H:%M:%SZ")]}]
        )

    def cancel(self, arn: str) -> None:
        """Ask for the end of a job; it comes later."""
        self._client.cancel_job(jobArn=arn)

    def _search(self, filters: list[Any]) -> Iterator[Job]:
        for page in self._client.get_paginator("search_jobs").paginate(filters=filters):
            for summary in page["jobs"]:
                yield Job(
                    arn=summary["jobArn"],
                    name=summary["jobName"],
                    status=summary["status"],
                    device=summary["device"],
                    created_at=summary["createdAt"],
                    started_at=summary.get("startedAt"),
                    ended_at=summary.get("endedAt"),
                    tags=dict(summary.get("tags", {})),
                )
