"""Random orders of create, cancel, restart, read and SIGKILL (of the endpoint, a job, a job's child), all real."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import psutil
import pytest
from botocore.config import Config
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from hybridjobs.local.braket.cloud_facts import emulated_client
from tests.local.braket.fake_cloud import BUCKET, REGION, changed
from tests.local.braket.test_hostile_inputs import member, packed
from tests.local.braket.test_interleavings import RANK, is_ended

ROOT = Path(__file__).parents[3]
SOURCE = "interleavings/source.tar.gz"
PATIENCE_SECONDS = 60.0
# A child that left its session, so that only the whole tree's end ends it; then work, for ever or not at all.
PROGRAM = b"""
import os, time
def fork():
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
def long():
    fork()
    time.sleep(600)
def short():
    fork()
"""


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.05)


def processes_below(folder: Path) -> list[psutil.Process]:
    """Return the living processes of all jobs whose folders are below `folder`."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            marked = process.environ().get("BRAKET_ML_ROOT", "").startswith(f"{folder}/")
            if marked and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


class RealEndpoint:
    """The endpoint's process on its folder."""

    def __init__(self, folder: Path, aws: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("real_endpoint.py")), str(folder), json.dumps(aws)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert self._process.stdout is not None
        url = self._process.stdout.readline().strip()
        self.braket: Any = boto3.session.Session("any", "any", region_name=REGION).client(
            "braket", endpoint_url=url, config=Config(retries={"total_max_attempts": 1})
        )

    def stop(self) -> None:
        self._process.communicate("")

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()


class RealJobs(RuleBasedStateMachine):
    """Whatever happens in whatever order: no job is lost, none goes backwards, none leaves a process."""

    aws: dict[str, str]

    @initialize()
    def start(self) -> None:
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name).resolve()
        self.endpoint = RealEndpoint(self.folder, self.aws)
        self.seen: dict[str, dict[str, Any]] = {}

    @rule(function=st.sampled_from(["long", "long", "short"]))
    def create(self, function: str) -> None:
        script = {"entryPoint": f"job.work:{function}", "s3Uri": f"s3://{BUCKET}/{SOURCE}", "compressionType": "GZIP"}
        request = changed("algorithmSpecification.scriptModeConfig", script)
        for absent in ("inputDataConfig", "hyperParameters", "checkpointConfig"):
            request = changed(absent, None, request)
        with contextlib.suppress(self.endpoint.braket.exceptions.ServiceQuotaExceededException):
            arn = self.endpoint.braket.create_job(**{**request, "jobName": function})["jobArn"]
            self.seen[arn] = {"status": "QUEUED"}

    # What is drawn must not depend on what has happened: real processes don't repeat themselves exactly.
    @rule(choice=st.integers(0, 5))
    def cancel(self, choice: int) -> None:
        jobs = self.open_jobs()
        if jobs:
            with contextlib.suppress(self.endpoint.braket.exceptions.ConflictException):
                self.endpoint.braket.cancel_job(jobArn=jobs[choice % len(jobs)])

    @rule(choice=st.integers(0, 11), wait=st.booleans())
    def kill_a_process_of_a_job(self, choice: int, wait: bool) -> None:
        """Any process of any job: its supervisor, its entry point, its program, or the child that it forked."""
        if wait:
            until(lambda: len(processes_below(self.folder)) >= 3 or not self.running())
        found = processes_below(self.folder)
        if found:
            with contextlib.suppress(psutil.NoSuchProcess):
                found[choice % len(found)].kill()

    @rule()
    def restart(self) -> None:
        self.endpoint.stop()
        assert processes_below(self.folder) == [], "a stopped endpoint leaves no process"
        self.start_again()

    @rule()
    def kill_the_endpoint(self) -> None:
        self.endpoint.kill()
        self.start_again()

    @rule()
    def wait_for_one_end(self) -> None:
        short = [arn for arn in self.running() if self.seen[arn]["jobName"] == "short"]
        if short:
            until(lambda: not set(short) <= set(self.look()))

    @invariant()
    def nothing_is_lost_or_goes_backwards(self) -> None:
        if hasattr(self, "endpoint"):
            self.look()

    def look(self) -> list[str]:
        """Compare all jobs with what was last seen of them, and return those that haven't ended."""
        pages = self.endpoint.braket.get_paginator("search_jobs").paginate(filters=[])
        found = {job["jobArn"]: dict(job) for page in pages for job in page["jobs"]}
        assert found.keys() == self.seen.keys()
        for arn, now in found.items():
            before = self.seen[arn]
            assert RANK[now["status"]] >= RANK[before["status"]], (before, now)
            if is_ended(before):
                assert now == before
            if now["status"] == "FAILED" and not is_ended(before):
                assert self.endpoint.braket.get_job(jobArn=arn)["failureReason"]
            self.seen[arn] = now
        return self.open_jobs()

    def open_jobs(self) -> list[str]:
        return [arn for arn, job in self.seen.items() if not is_ended(job)] if hasattr(self, "endpoint") else []

    def running(self) -> list[str]:
        return [arn for arn in self.look() if self.seen[arn]["status"] == "RUNNING"]

    def start_again(self) -> None:
        before = {arn: job for arn, job in self.seen.items() if not is_ended(job)}
        self.endpoint = RealEndpoint(self.folder, self.aws)
        self.look()
        for arn in before:
            # What waited still waits or has been taken; what ran can't be taken up again.
            assert before[arn]["status"] == "QUEUED" or is_ended(self.seen[arn])

    def teardown(self) -> None:
        if not hasattr(self, "endpoint"):
            return
        try:
            for arn in self.open_jobs():
                with contextlib.suppress(self.endpoint.braket.exceptions.ConflictException):
                    self.endpoint.braket.cancel_job(jobArn=arn)
            until(lambda: not self.look())
            until(lambda: processes_below(self.folder) == [])
        finally:
            self.endpoint.stop()
            for process in processes_below(self.folder):
                process.kill()
            self.temporary.cleanup()


@pytest.mark.timeout(600)
def test_no_order_of_events_loses_a_job_or_leaves_a_process(aws: dict[str, str]) -> None:
    emulated_client("s3", aws).put_object(Bucket=BUCKET, Key=SOURCE, Body=packed((member("job/work.py"), PROGRAM)))
    RealJobs.aws = aws
    run_state_machine_as_test(
        RealJobs,
        settings=settings(
            max_examples=3,
            stateful_step_count=8,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
