"""What a deployed stage holds, read through its published contract: the launch ledger and the records of ended jobs.

The only file of the command line that calls AWS. The names come from the SSM parameters below `/hybrid-jobs/<stage>/`,
so the same code reads a stage in an account and one in the embedded cloud.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any, Self

import boto3
from boto3.dynamodb.conditions import Key
from botocore.exceptions import BotoCoreError, ClientError

from hybridjobs.local.environment import client_session
from hybridjobs.model.errors import ProjectError

OPEN_STATES = frozenset({"PENDING", "STARTING", "STARTED"})


class DeploymentError(ProjectError):
    """A stage that can't be read, with what to do about it."""


@dataclass(frozen=True)
class Launch:
    """One launch in the ledger; `reason` says why it waits or why it ended without a result."""

    job_name: str
    state: str
    device: str
    requested_at: str
    job_arn: str | None
    reason: str | None

    @property
    def is_open(self) -> bool:
        """Whether the launch still waits or runs."""
        return self.state in OPEN_STATES


@dataclass(frozen=True)
class Deployment:
    """A stage's contract values and the session that reads what they name."""

    stage: str
    session: boto3.Session
    endpoint_url: str | None
    parameters: Mapping[str, str]

    @classmethod
    def connect(cls, stage: str, environment: Mapping[str, str] | None = None) -> Self:
        """Read the contract of `stage`.

        Args:
            stage: The stage's name, as in stages/<stage>.toml.
            environment: Variables that point AWS clients at the embedded cloud; None uses the caller's own credentials.

        Raises:
            DeploymentError: The stage is not deployed, or AWS can't be reached.
        """
        if environment is None:
            session, endpoint_url = boto3.Session(), None
        else:
            session, endpoint_url = client_session(environment), environment["AWS_ENDPOINT_URL"]
        prefix = f"/hybrid-jobs/{stage}/"
        try:
            pages = (
                session.client("ssm", endpoint_url=endpoint_url)
                .get_paginator("get_parameters_by_path")
                .paginate(Path=prefix, Recursive=True)
            )
            parameters = {
                parameter["Name"].removeprefix(prefix): parameter["Value"]
                for page in pages
                for parameter in page["Parameters"]
            }
        except (BotoCoreError, ClientError) as error:
            raise DeploymentError(
                f"stage {stage!r} can't be read: {error}. "
                "Check the credentials, the region, and that ssm:GetParametersByPath is allowed"
            ) from error
        if "ledger-table" not in parameters:
            raise DeploymentError(
                f"stage {stage!r} is not deployed in {session.region_name}: "
                f"no SSM parameter below {prefix}. Deploy it first (make deploy STAGE={stage}), or name another --stage"
            )
        return cls(stage=stage, session=session, endpoint_url=endpoint_url, parameters=parameters)

    def launches(self) -> list[Launch]:
        """Every launch of the stage, in the order in which they were requested."""
        table = self.session.resource("dynamodb", endpoint_url=self.endpoint_url).Table(self.parameters["ledger-table"])
        query: dict[str, Any] = {"KeyConditionExpression": Key("kind").eq("launch"), "ConsistentRead": True}
        items: list[dict[str, Any]] = []
        while True:
            page = table.query(**query)
            items += page["Items"]
            if "LastEvaluatedKey" not in page:
                break
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        return sorted(map(_launch, items), key=lambda launch: (launch.requested_at, launch.job_name))

    def results_archive(self, job_name: str, target: IO[bytes]) -> None:
        """Write a job's model.tar.gz, in which Braket keeps what the job saved, to `target`.

        Raises:
            DeploymentError: There is none, or it can't be read.
        """
        bucket, key = self.parameters["job-bucket"], f"jobs/{job_name}/data/output/model.tar.gz"
        s3 = self.session.client("s3", endpoint_url=self.endpoint_url)
        try:
            shutil.copyfileobj(s3.get_object(Bucket=bucket, Key=key)["Body"], target)
        except (BotoCoreError, ClientError) as error:
            raise DeploymentError(
                f"the results of {job_name} can't be read: s3://{bucket}/{key}: {error}. "
                "Check that the object is still there and that s3:GetObject is allowed"
            ) from error

    def records(self) -> list[dict[str, Any]]:
        """The records of all ended jobs, by the time at which the jobs were created."""
        records = self._documents("records/")
        return sorted(records, key=lambda record: (record["created_at"], record["job_name"]))

    def published(self) -> dict[str, list[dict[str, Any]]]:
        """The published figures of each benchmark that has run to its end, from its latest summary."""
        summaries = self._documents("benchmarks/", "/latest.json")
        return {summary["benchmark"]: summary["published"] for summary in summaries}

    def _documents(self, prefix: str, suffix: str = ".json") -> list[dict[str, Any]]:
        s3 = self.session.client("s3", endpoint_url=self.endpoint_url)
        bucket = self.parameters["job-bucket"]
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
        wanted = [key for key in keys if key.endswith(suffix)]
        return [json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read()) for key in wanted]


def _launch(item: Mapping[str, Any]) -> Launch:
    # A launch that was withdrawn before its Create arrived has no spec.
    spec = json.loads(item["spec"]) if item.get("spec") else {}
    return Launch(
        job_name=item["name"],
        state=item["state"],
        device=spec.get("device", ""),
        requested_at=item.get("requested_at", ""),
        job_arn=item.get("job_arn"),
        reason=item.get("reason"),
    )
