"""A small project in an embedded cloud of its own, and what can be asked about it."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hybridjobs.deployment import Deployment, Launch
from hybridjobs.local.cloud import LocalCloud
from tests.local.small_project import SmallProject

JOBS_STACK = "HybridJobs-local-Jobs"


class World:
    """The project and its cloud."""

    def __init__(self, cloud: LocalCloud, project: SmallProject) -> None:
        self.cloud = cloud
        self.project = project

    @property
    def deployment(self) -> Deployment:
        return Deployment.connect("local", self.cloud.environment())

    def braket_jobs(self) -> dict[str, str]:
        """Every job that Braket knows, name -> status."""
        pages = self.cloud.client("braket").get_paginator("search_jobs").paginate(filters=[])
        return {job["jobName"]: job["status"] for page in pages for job in page["jobs"]}

    def active_jobs(self) -> set[str]:
        """The names of the jobs that nobody has asked to end."""
        return {name for name, status in self.braket_jobs().items() if status in {"QUEUED", "RUNNING"}}

    def launches(self, prefix: str) -> list[Launch]:
        """The launches of the job `prefix`, the oldest first."""
        return [each for each in self.deployment.launches() if each.job_name.startswith(f"{prefix}-")]

    def wait(self, prefix: str, *states: str) -> Launch:
        """The latest launch of the job `prefix` once it is in one of `states`."""
        self.until(lambda: self.launches(prefix)[-1].state in states, f"{prefix} is {states}")
        return self.launches(prefix)[-1]

    def until(self, condition: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"after {seconds:g} s still not: {what}"
            time.sleep(0.3)

    def object(self, key: str) -> bytes:
        bucket = self.deployment.parameters["job-bucket"]
        return bytes(self.cloud.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read())

    def record(self, job_name: str) -> dict[str, Any]:
        return dict(json.loads(self.object(f"records/{job_name}.json")))

    def deploy_plainly(self) -> None:
        """Run `cdk deploy --all` as somebody types it, with the CLI's own prebuild of images."""
        cli = self.cloud._cli("local", None)
        environment = {name: value for name, value in cli.environment.items() if name != "CDK_ASSET_PREBUILD"}
        replace(cli, environment=environment).deploy({"stage": "local"})

    def age(self, launch: Launch) -> None:
        """Let the ledger say that the launch was asked for an hour ago."""
        then = (datetime.now(UTC) - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        self.cloud.client("dynamodb").update_item(
            TableName=self.deployment.parameters["ledger-table"],
            Key={"kind": {"S": "launch"}, "name": {"S": launch.job_name}},
            UpdateExpression="SET requested_at = :then",
            ConditionExpression="attribute_exists(requested_at)",
            ExpressionAttributeValues={":then": {"S": then}},
        )

    def stack_status(self) -> str:
        (stack,) = self.cloud.client("cloudformation").describe_stacks(StackName=JOBS_STACK)["Stacks"]
        return str(stack["StackStatus"])

    def resource(self, kind: str, prefix: str) -> str:
        """The physical id of the Jobs stack's resource of this kind whose logical id begins with `prefix`."""
        pages = self.cloud.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=JOBS_STACK)
        (found,) = [
            each["PhysicalResourceId"]
            for page in pages
            for each in page["StackResourceSummaries"]
            if each["ResourceType"] == kind and each["LogicalResourceId"].startswith(prefix)
        ]
        return str(found)

    def kept_event(self, queue: str) -> dict[str, Any]:
        """The first event that reaches the dead-letter queue whose logical id begins with `queue`."""
        sqs, url = self.cloud.client("sqs"), self.resource("AWS::SQS::Queue", queue)
        found: list[dict[str, Any]] = []

        def look() -> bool:
            found.extend(sqs.receive_message(QueueUrl=url).get("Messages", []))
            return bool(found)

        self.until(look, f"an event in {queue}")
        return dict(json.loads(found[0]["Body"]))
