"""The resource between the jobs and the collector: schemas when it comes, the last records before the stack goes."""

from __future__ import annotations

import json

import pytest

from errors import LaunchError
from hybridjobs.schemas import SCHEMA_FILES
from hybridjobs.schemas.documents import DOCUMENTS, schema_text
from launch_job.records import LONGEST_WAIT_SECONDS, RESOURCE_TYPE
from launches import Released, State
from tests.unit.lambdas.stage import ASSETS, Stage, StageClients, properties_of, sha256

OTHER_STACK = "arn:aws:cloudformation:us-east-1:000000000000:stack/HybridJobs-other-Jobs/1"


@pytest.fixture
def going(clients: StageClients) -> Stage:
    stage = Stage(clients, in_memory=True)
    stage.memory.stack_status = "DELETE_IN_PROGRESS"
    return stage


def close(stage: Stage) -> None:
    stage.launch(stage.event("Delete", {}, physical_id="records-local", resource_type=RESOURCE_TYPE))


def publish(stage: Stage, content: bytes, *, digest: str | None = None, kind: str = "Create") -> str:
    stage.clients.s3.put_object(Bucket=ASSETS, Key="schema", Body=content)
    properties = {
        "Schemas": {"record-1.json": f"s3://{ASSETS}/schema"},
        "SchemaHashes": {"record-1.json": digest or sha256(content)},
    }
    event = stage.event(kind, properties, resource_type=RESOURCE_TYPE)
    return str(stage.launch(event)["PhysicalResourceId"])


def published(stage: Stage) -> bytes:
    read = stage.services.artifacts.read("schemas/record-1.json")
    assert read is not None
    return read[0]


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_the_schema_files_are_those_of_the_published_types(name: str) -> None:
    (file,) = [each for each in SCHEMA_FILES if each.stem == name]
    assert file.read_text() == schema_text(name), "write them anew: python -m hybridjobs.schemas"
    schema = json.loads(file.read_text())
    assert schema["properties"]["schema"]["const"] == f"hybrid-jobs/{name.rpartition('-')[0]}/1"
    assert set(schema["required"]) == set(schema["properties"]), "what is not known is null, not absent"


def test_schemas_are_published_and_a_wider_one_replaces_them(stage: Stage) -> None:
    assert publish(stage, b"{}") == "records-local"
    assert published(stage) == b"{}"
    publish(stage, b'{"title": "wider"}', kind="Update")
    assert published(stage) == b'{"title": "wider"}'


def test_a_schema_that_is_not_what_was_synthesized_fails_the_deploy(stage: Stage) -> None:
    with pytest.raises(LaunchError, match="SHA-256"):
        publish(stage, b"{}", digest="0" * 64)


def test_a_stack_goes_only_when_its_cancelled_job_has_left_its_record(
    going: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = going.create()
    going.launch(going.event("Delete", properties_of(), physical_id=name))

    def braket_ends_it(seconds: float) -> None:
        going.clock.pass_time(seconds)
        going.changed(going.braket.end(name, "CANCELLED"), "CANCELLED")

    monkeypatch.setattr(going.clock, "sleep", braket_ends_it)
    close(going)
    assert going.record(name)["status"] == "CANCELLED"
    assert going.services.ledger.open_launches() == []


def test_a_job_whose_delete_never_came_ends_with_its_stack(going: Stage) -> None:
    name = going.create()
    close(going)
    assert going.braket.named(name)[0]["status"] == "CANCELLING"
    assert going.ledger(name).released is Released.DELETED
    assert going.braket.calls.count("CancelJob") == 1, "CancelJob allows two calls a second"


def test_a_start_that_was_interrupted_is_looked_for_until_it_is_seen(
    going: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = going.create()
    launch = going.ledger(name)
    (arn,) = going.braket.jobs
    hidden = going.braket.jobs.pop(arn)
    going.services.ledger.replace(launch.moved(State.STARTING, launch.updated_at, job_arn=None))

    def braket_shows_it(seconds: float) -> None:
        going.clock.pass_time(seconds)
        going.braket.jobs[arn] = hidden

    monkeypatch.setattr(going.clock, "sleep", braket_shows_it)
    close(going)
    assert hidden["status"] == "CANCELLING"


def test_a_job_that_does_not_end_holds_the_stack_for_minutes_only(going: Stage) -> None:
    going.create()
    close(going)
    assert going.clock.slept <= LONGEST_WAIT_SECONDS
    assert len(going.services.ledger.open_launches()) == 1, "the next deployment's sweep writes the record"


def test_jobs_of_other_stacks_go_on(going: Stage) -> None:
    going.create(stack_id=OTHER_STACK)
    close(going)
    assert len(going.braket.active()) == 1
    assert going.clock.slept == 0


@pytest.mark.parametrize("status", ["UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS"])
def test_without_its_stack_the_resource_ends_no_job(going: Stage, status: str) -> None:
    going.memory.stack_status = status
    going.create()
    close(going)
    assert len(going.braket.active()) == 1


def test_only_a_missing_permission_fails_the_delete(going: Stage) -> None:
    for number in range(2):
        going.create(logical_id=f"Job{number}")
    going.plan.refuse("CancelJob", "AccessDeniedException")
    with pytest.raises(LaunchError, match=r"CancelJob: AccessDeniedException.*permission for CancelJob"):
        close(going)
    going.plan.refuse("CancelJob", "ValidationException", times=5)
    close(going)
    assert going.braket.active() == []
