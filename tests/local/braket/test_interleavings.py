"""Random orders of create, cancel, end, restart and read; and an endpoint that is killed."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import boto3
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from hybridjobs.local.braket.endpoint import EndpointSettings
from tests.local.braket.fake_cloud import REGION, VALID_REQUEST, Cloud
from tests.local.braket.fake_runner import FakeRunner

RANK = {"QUEUED": 0, "RUNNING": 1, "CANCELLING": 2, "COMPLETED": 3, "FAILED": 3, "CANCELLED": 3}
FEW_JOBS = EndpointSettings(max_workers=2, max_concurrent_jobs=8, instance_quotas={"ml.m5.large": 100})


class Jobs(RuleBasedStateMachine):
    """Whatever happens in whatever order: no job is lost, none goes backwards, none is started twice."""

    created = Bundle("created")

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.runner = FakeRunner()
        self.cloud = Cloud(Path(self.folder.name), runner=self.runner, settings=FEW_JOBS)
        self.seen: dict[str, dict[str, Any]] = {}
        self.tokens: dict[str, str] = {}

    @rule(target=created, token=st.integers(0, 30))
    def create(self, token: int) -> Any:
        try:
            arn = self.cloud.create(clientToken=f"token-{token}")
        except self.cloud.braket.exceptions.ServiceQuotaExceededException:
            assert sum(not is_ended(job) for job in self.described().values()) >= FEW_JOBS.max_concurrent_jobs
            return multiple()
        assert self.tokens.setdefault(f"token-{token}", arn) == arn
        self.seen.setdefault(arn, {"status": "QUEUED"})
        return arn

    @rule(arn=created)
    def cancel(self, arn: str) -> None:
        try:
            answer = self.cloud.braket.cancel_job(jobArn=arn)["cancellationStatus"]
        except self.cloud.braket.exceptions.ConflictException:
            assert self.cloud.status(arn) in {"COMPLETED", "FAILED"}
        else:
            self.cloud.wait(arn, "CANCELLED")
            assert answer in {"CANCELLING", "CANCELLED"}

    @rule(arn=consumes(created), reason=st.sampled_from([None, "AlgorithmError: ValueError: no"]))
    def end(self, arn: str, reason: str | None) -> None:
        job = self.runner.jobs.get(arn)
        if job is not None:
            job.finish(reason)
            self.cloud.wait(arn, "COMPLETED", "FAILED", "CANCELLED")

    @rule()
    def restart(self) -> None:
        self.cloud.restart()
        assert self.runner.alive() == [] or all(
            self.described()[job.run.job_arn]["status"] in {"QUEUED", "RUNNING"} for job in self.runner.alive()
        )

    @invariant()
    def nothing_is_lost_or_goes_backwards(self) -> None:
        if not hasattr(self, "cloud"):
            return
        found = self.described()
        assert found.keys() == self.seen.keys()
        for arn, now in found.items():
            before = self.seen[arn]
            assert RANK[now["status"]] >= RANK[before["status"]], (before, now)
            if is_ended(before):
                assert now == before
            self.seen[arn] = now
        assert len(self.runner.alive()) <= FEW_JOBS.max_workers

    def described(self) -> dict[str, dict[str, Any]]:
        pages = self.cloud.braket.get_paginator("search_jobs").paginate(filters=[], PaginationConfig={"PageSize": 5})
        return {job["jobArn"]: dict(job) for page in pages for job in page["jobs"]}

    def teardown(self) -> None:
        if hasattr(self, "cloud"):
            self.cloud.stop()
            assert self.runner.alive() == []
            for arn in self.seen:
                told = [json.loads(e["Detail"])["status"] for e in self.cloud.events if e["Resources"] == [arn]]
                assert told[0] == "QUEUED"
                assert [RANK[status] for status in told] == sorted(RANK[status] for status in told)
            self.folder.cleanup()


def is_ended(job: dict[str, Any]) -> bool:
    return RANK[job["status"]] == 3


TestJobs = Jobs.TestCase
TestJobs.settings = settings(
    max_examples=10, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

ENDPOINT = """
import sys, threading
from pathlib import Path
from hybridjobs.local.braket.endpoint import BraketEndpoint
from tests.local.braket.fake_runner import FakeRunner
print(BraketEndpoint(Path(sys.argv[1]), FakeRunner(), {}, lambda event: None).start(), flush=True)
threading.Event().wait()
"""


def test_jobs_of_a_killed_endpoint_are_failed_with_a_reason_by_the_next_one(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", ENDPOINT, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert process.stdout is not None
    client = boto3.client(
        "braket",
        region_name=REGION,
        endpoint_url=process.stdout.readline().strip(),
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )
    arn = client.create_job(**VALID_REQUEST)["jobArn"]
    while client.get_job(jobArn=arn)["status"] != "RUNNING":
        pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    cloud = Cloud(tmp_path)
    try:
        failed = cloud.braket.get_job(jobArn=arn)
        assert failed["status"] == "FAILED"
        assert "endpoint ended while the job was running" in failed["failureReason"]
        assert failed["hyperParameters"] == VALID_REQUEST["hyperParameters"]
        assert cloud.published(arn)[-1] == "FAILED"
    finally:
        cloud.stop()


def test_two_hundred_jobs_at_once_all_end(tmp_path: Path) -> None:
    many = EndpointSettings(max_workers=2, max_concurrent_jobs=200, instance_quotas={"ml.m5.large": 200})
    runner = FakeRunner(finish_at_once=True)
    cloud = Cloud(tmp_path, runner=runner, settings=many)
    try:
        for arn in cloud.create_many(200):
            cloud.wait(arn, "COMPLETED")
        assert len(runner.jobs) == 200
        assert runner.most_at_once <= 2
    finally:
        cloud.stop()
