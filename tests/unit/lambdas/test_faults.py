"""Each call of AWS goes wrong once, in each way: no job is lost or doubled, and a retry repairs it.

`FAULT_TABLE=<file>` writes what came of each fault.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from errors import LaunchError
from launch_job.records import RESOURCE_TYPE
from launches import State
from tests.unit.lambdas.faults import FOR_GOOD, LOST, Fault, Killed, Table, faults_of, suffer
from tests.unit.lambdas.stage import (
    ACCOUNT,
    REGION,
    REPOSITORY,
    STACK,
    Stage,
    StageClients,
    document_of,
    name_of,
    properties_of,
)

IMAGE = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/{REPOSITORY}:pennylane-0123456789abcdef"
A = properties_of(document_of(image="asset:pennylane"), ImageUri=IMAGE)
B = properties_of(document_of(image="asset:pennylane", source={"sha256": "b" * 64}), ImageUri=IMAGE)
STOCK = properties_of()
LOOKS_AT_THE_IMAGE = {"DescribeImages", "BatchGetImage", "GetDownloadUrlForLayer"}
LAUNCHES = {"HeadObject", "CopyObject", *LOOKS_AT_THE_IMAGE, "GetItem", "PutItem", "UpdateItem", "Query", "CreateJob"}
NAME = name_of(A)


@pytest.fixture(scope="module")
def table() -> Iterator[Table]:
    made = Table()
    yield made
    if "FAULT_TABLE" in os.environ:
        Path(os.environ["FAULT_TABLE"]).write_text(made.markdown())


def calls_of(stage: Stage, act: Callable[[], object]) -> list[str]:
    """The operations that an undisturbed run calls."""
    stage.plan.calls.clear()
    act()
    return list(stage.plan.calls)


def runs(
    clients: StageClients, make: Callable[[], Stage], act: Callable[[Stage], object], expected: set[str]
) -> Iterator[tuple[Stage, str, Fault, BaseException | None]]:
    """A new stage for each call of the event and each of its faults, after the event has met it."""
    stage = make()
    operations = calls_of(stage, lambda: act(stage))
    assert expected <= set(operations)
    for at, operation in enumerate(operations):
        for fault in faults_of(clients, operation):
            suffering = make()
            error = suffer(suffering, fault, at, lambda: act(suffering))  # noqa: B023
            if isinstance(error, LaunchError):
                assert fault.cause in str(error), f"{fault.name} at call {at}, {operation}"
            yield suffering, operation, fault, error


def in_memory(clients: StageClients) -> Stage:
    return Stage(clients, in_memory=True)


def launched(clients: StageClients) -> Stage:
    stage = in_memory(clients)
    stage.create(A)
    return stage


def test_a_create_through_the_real_clients(clients: StageClients) -> None:
    stage = Stage(clients)
    operations = calls_of(stage, lambda: stage.create(STOCK))
    assert {"HeadObject", "CopyObject", "GetItem", "PutItem", "UpdateItem", "Query", "CreateJob"} <= set(operations)
    for at, operation in enumerate(operations):
        stage = Stage(clients)
        error = suffer(stage, LOST, at, lambda: stage.create(STOCK))  # noqa: B023
        check_created(stage, error, f"{operation}, call {at}", STOCK)


def test_a_create(clients: StageClients, table: Table) -> None:
    for stage, operation, fault, error in runs(
        clients, lambda: in_memory(clients), lambda stage: stage.create(A), LAUNCHES
    ):
        check_created(stage, error, f"{fault.name} at {operation}")
        table.note("Create", operation, fault, error)


def check_created(stage: Stage, error: BaseException | None, where: str, properties: dict[str, Any] = A) -> None:
    assert len(stage.braket.active()) <= 1, where
    if isinstance(error, LaunchError):
        assert stage.braket.active() == [], f"{where}: a failed create leaves no job"
    elif error is None:
        assert stage.ledger(name_of(properties)).is_open, where
    if error is not None:
        # The next deploy. Before it the dispatcher that was killed has lost its lease.
        stage.clock.pass_time(61)
        stage.create(properties)
    stage.sweep()
    (job,) = stage.braket.active()
    assert stage.ledger(job["jobName"]).state is State.STARTED, where
    assert stage.ledger(job["jobName"]).job_arn == job["jobArn"], where


def test_an_update_and_the_rollback_after_a_failed_one(clients: StageClients, table: Table) -> None:
    for stage, operation, fault, error in runs(
        clients,
        lambda: launched(clients),
        lambda stage: stage.launch(stage.event("Update", B, physical_id=NAME, old=A)),
        LAUNCHES,
    ):
        where = f"{fault.name} at {operation}"
        if isinstance(error, LaunchError):
            assert [job["jobName"] for job in stage.braket.active()] == [NAME], where
        if error is None:
            stage.launch(stage.event("Delete", A, physical_id=NAME))
        else:
            stage.launch(stage.event("Update", A, physical_id=NAME, old=B))
            assert stage.ledger(NAME).state is State.STARTED, where
        stage.clock.pass_time(61)
        stage.sweep()
        (job,) = stage.braket.active()
        assert job["jobName"] == (name_of(B) if error is None else NAME), where
        table.note("Update", operation, fault, error)


def test_a_delete(clients: StageClients, table: Table) -> None:
    def delete(stage: Stage) -> None:
        stage.launch(stage.event("Delete", A, physical_id=NAME))

    expected = {"GetItem", "PutItem", "CancelJob"}
    for stage, operation, fault, error in runs(clients, lambda: launched(clients), delete, expected):
        where = f"{fault.name} at {operation}"
        if error is None:
            assert stage.braket.active() == [], f"{where}: a delete that succeeds leaves no job"
        delete(stage)
        assert stage.braket.active() == [], where
        table.note("Delete", operation, fault, error)


def test_a_collection(clients: StageClients, table: Table) -> None:
    def ended() -> Stage:
        stage = Stage(clients, in_memory=True, max_concurrent_jobs=1)
        stage.create(A)
        stage.create(A, logical_id="Next")
        stage.save_results(NAME, {"a": 1})
        stage.braket.end(NAME, "FAILED", reason="no")
        return stage

    def told(stage: Stage) -> None:
        stage.changed(stage.braket.arn(NAME))

    expected = {
        "GetJob",
        "GetItem",
        "GetObject",
        "DescribeLogStreams",
        "GetLogEvents",
        "PutObject",
        "PutItem",
        "CreateJob",
    }
    for stage, operation, fault, error in runs(clients, ended, told, expected):
        if isinstance(error, Killed) or error is None:
            # Lambda may have delivered it as often as it does, or have taken it for served: the sweep comes.
            stage.clock.pass_time(61)
        else:
            stage.clock.pass_time(61)
            told(stage)
        check_collected(stage, operation, fault)
        table.note("job ended", operation, fault, error)


def check_collected(stage: Stage, operation: str, fault: Fault) -> None:
    where = f"{fault.name} at {operation}"
    stage.sweep()
    assert json.loads(stage.memory.objects[f"records/{NAME}.json"])["results"] == {"a": 1}, where
    assert stage.ledger(NAME).state is State.FAILED, where
    following = stage.ledger(name_of(A, logical_id="Next"))
    if operation == "CreateJob" and fault.name in FOR_GOOD:
        assert following.state is State.REJECTED, "such an error won't heal"
        assert fault.cause in (following.reason or "")
    else:
        assert [job["jobArn"] for job in stage.braket.active()] == [following.job_arn], where


def test_a_sweep(clients: StageClients, table: Table) -> None:
    """One job has ended unheard, one waits for its place, one is held by nobody."""

    def unheard() -> Stage:
        stage = Stage(clients, in_memory=True, max_concurrent_jobs=2, cancel_orphans=True)
        for logical_id in ("JobA", "Orphan", "Next"):
            stage.memory.held[STACK, logical_id] = stage.create(A, logical_id=logical_id)
        del stage.memory.held[STACK, "Orphan"]
        stage.save_results(NAME, {"a": 1})
        stage.braket.end(NAME, "FAILED", reason="no")
        stage.clock.pass_time(16 * 60)
        return stage

    expected = {"GetJob", "GetObject", "PutObject", "CreateJob", "SearchJobs", "DescribeStacks", "CancelJob"}
    for stage, operation, fault, error in runs(clients, unheard, lambda stage: stage.sweep(), expected):
        # One that was killed holds the dispatcher's lease for a minute.
        stage.clock.pass_time(301)
        check_collected(stage, operation, fault)
        table.note("sweep", operation, fault, error)


def test_the_end_of_a_stack(clients: StageClients, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def going() -> Stage:
        stage = launched(clients)
        stage.create(A, logical_id="Other")
        stage.memory.stack_status = "DELETE_IN_PROGRESS"
        # No job ends here, so the wait for the records is long: it passes in a few looks.
        monkeypatch.setattr(stage.clock, "sleep", lambda _: stage.clock.pass_time(50))
        return stage

    def close(stage: Stage) -> None:
        stage.launch(stage.event("Delete", {}, physical_id="records-local", resource_type=RESOURCE_TYPE))

    expected = {"DescribeStacks", "Query", "GetItem", "PutItem", "CancelJob"}
    for stage, operation, fault, error in runs(clients, going, close, expected):
        where = f"{fault.name} at {operation}"
        if error is not None:
            close(stage)
        assert stage.braket.active() == [], where
        table.note("stack deleted", operation, fault, error)
