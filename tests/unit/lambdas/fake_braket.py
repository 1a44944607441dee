"""Braket's jobs in memory, behind a real boto3 client: requests and answers go through botocore's own service model."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import unquote, urlsplit

import boto3
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.validate import ParamValidator

TERMINAL = ("COMPLETED", "FAILED", "CANCELLED")
STATUS_OF = {
    "ValidationException": 400,
    "ServiceQuotaExceededException": 402,
    "AccessDeniedException": 403,
    "ResourceNotFoundException": 404,
    "ConflictException": 409,
    "DeviceRetiredException": 410,
    "DeviceOfflineException": 424,
    "ThrottlingException": 429,
    "InternalServiceException": 500,
}


class RefusedError(Exception):
    """An error that the service answers with."""

    def __init__(self, code: str, message: str = "refused") -> None:
        self.code = code
        super().__init__(message)


class Raw:
    """The body of an answer, as botocore reads it."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, **_: Any) -> Any:
        yield self._content

    def read(self, *_: Any) -> bytes:
        return self._content


@dataclass
class FakeBraket:
    """The service. Set `max_concurrent_jobs` to the account's quota; `quota_of` to that of an instance type."""

    now: Callable[[], datetime]
    region: str = "us-east-1"
    number: int = 0
    max_concurrent_jobs: int = 1000
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    tokens: dict[str, tuple[str, str]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    quota_of: dict[str, int] = field(default_factory=dict)
    most_at_once: int = 0

    def close(self) -> None:
        """Nothing is held."""

    # What a test asks and does.

    def active(self) -> list[dict[str, Any]]:
        return [job for job in self.jobs.values() if job["status"] not in (*TERMINAL, "CANCELLING")]

    def named(self, name: str) -> list[dict[str, Any]]:
        return [job for job in self.jobs.values() if job["jobName"] == name]

    def arn(self, name: str) -> str:
        (job,) = self.named(name)
        return str(job["jobArn"])

    def run(self, name: str) -> None:
        (job,) = self.named(name)
        job["status"] = "RUNNING"
        job["startedAt"] = self.now()

    def end(self, name: str, status: str, *, reason: str | None = None, billable: int | None = None) -> str:
        (job,) = self.named(name)
        job.setdefault("startedAt", self.now())
        job["status"] = status
        job["endedAt"] = self.now()
        if reason:
            job["failureReason"] = reason
        if billable is not None:
            job["billableDuration"] = billable
        return str(job["jobArn"])

    # The service.

    def answer(self, request: Any, **_: Any) -> AWSResponse:
        path = urlsplit(request.url).path
        operation, argument = self._route(request.method, path)
        try:
            self.calls.append(operation)
            body = json.loads(request.body) if request.body else {}
            answer = getattr(self, f"_{operation}")(argument, body)
        except RefusedError as refusal:
            headers = HTTPHeaders.from_dict({"x-amzn-ErrorType": refusal.code, "content-type": "application/json"})
            content = json.dumps({"message": str(refusal)}).encode()
            return AWSResponse(request.url, STATUS_OF[refusal.code], headers, Raw(content))
        content = json.dumps(answer, default=lambda value: value.isoformat().replace("+00:00", "Z")).encode()
        headers = HTTPHeaders.from_dict({"content-type": "application/json"})
        return AWSResponse(request.url, 200, headers, Raw(content))

    @staticmethod
    def _route(method: str, path: str) -> tuple[str, str]:
        if (method, path) == ("POST", "/job"):
            return "CreateJob", ""
        if (method, path) == ("POST", "/jobs"):
            return "SearchJobs", ""
        if method == "GET" and path.startswith("/job/"):
            return "GetJob", unquote(path.removeprefix("/job/"))
        if method == "PUT" and path.endswith("/cancel"):
            return "CancelJob", unquote(path.removeprefix("/job/").removesuffix("/cancel"))
        raise AssertionError(f"the fake Braket does not know {method} {path}")

    def _CreateJob(self, _: str, body: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if not re.fullmatch(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,49}", body["jobName"]):
            raise RefusedError("ValidationException", f"jobName {body['jobName']}")
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        known = self.tokens.get(body["clientToken"])
        if known:
            if known[0] != digest:
                raise RefusedError("ConflictException", "the token was used for another request")
            return {"jobArn": known[1]}
        living = [job for job in self.jobs.values() if job["status"] not in TERMINAL]
        if any(job["jobName"] == body["jobName"] for job in living):
            raise RefusedError("ConflictException", f"a job named {body['jobName']} runs")
        if len(living) >= self.max_concurrent_jobs:
            raise RefusedError("ServiceQuotaExceededException", "too many concurrent jobs")
        instance_type = body["instanceConfig"]["instanceType"]
        alike = sum(job["instanceConfig"]["instanceType"] == instance_type for job in living)
        if alike >= self.quota_of.get(instance_type, 1000):
            raise RefusedError("ServiceQuotaExceededException", f"too many {instance_type}")
        arn = f"arn:aws:braket:{self.region}:000000000000:job/{len(self.jobs):08d}-0000-0000-0000-{self.number:012d}"
        self.jobs[arn] = {
            **{key: value for key, value in body.items() if key != "clientToken"},
            "jobArn": arn,
            "status": "QUEUED",
            "createdAt": self.now(),
        }
        self.tokens[body["clientToken"]] = (digest, arn)
        self.most_at_once = max(self.most_at_once, len(living) + 1)
        return self._valid("CreateJob", {"jobArn": arn})

    def _GetJob(self, arn: str, _: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return self._valid("GetJob", self._job(arn))

    def _CancelJob(self, arn: str, _: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        job = self._job(arn)
        if job["status"] in TERMINAL:
            raise RefusedError("ConflictException", f"the job is {job['status']}")
        job["status"] = "CANCELLING"
        return self._valid("CancelJob", {"jobArn": arn, "cancellationStatus": "CANCELLING"})

    def _SearchJobs(self, _: str, body: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        found = list(self.jobs.values())
        for condition in body["filters"]:
            if (condition["name"], condition["operator"]) == ("jobName", "EQUAL"):
                found = [job for job in found if job["jobName"] in condition["values"]]
            elif (condition["name"], condition["operator"]) == ("createdAt", "GTE"):
                since = datetime.fromisoformat(condition["values"][0])
                found = [job for job in found if job["createdAt"] >= since]
            else:
                raise RefusedError("ValidationException", f"filter {condition}")
        kept = ("jobArn", "jobName", "status", "createdAt", "startedAt", "endedAt", "tags")
        jobs = [
            {key: job[key] for key in kept if key in job} | {"device": job["deviceConfig"]["device"]} for job in found
        ]
        start = int(body.get("nextToken", "0"))
        page: dict[str, Any] = {"jobs": jobs[start : start + 2]}
        if start + 2 < len(jobs):
            page["nextToken"] = str(start + 2)
        return self._valid("SearchJobs", page)

    def _job(self, arn: str) -> dict[str, Any]:
        try:
            return self.jobs[arn]
        except KeyError:
            raise RefusedError("ResourceNotFoundException", f"no job {arn}") from None

    def _valid(self, operation: str, answer: dict[str, Any]) -> dict[str, Any]:
        shape = _MODEL.operation_model(operation).output_shape
        assert shape is not None
        report = ParamValidator().validate(answer, shape)
        assert not report.has_errors(), report.generate_report()
        return answer


_MODEL = boto3.client(
    "braket", region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
).meta.service_model
