"""What CloudFormation can send to the launcher, and what must come of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clock import timestamp
from errors import LaunchError
from launches import Released, State
from tests.unit.lambdas.stage import (
    Stage,
    StageClients,
    document_of,
    name_of,
    properties_of,
)

INVENTED = "HybridJobs-local-Jobs-JobA-1ABCDEFGHIJKL"
A = properties_of(document_of(hyperparameters={"p": "2"}))
B = properties_of(document_of(hyperparameters={"p": "3"}))


def test_two_deliveries_of_one_create_launch_one_job(stage: Stage) -> None:
    event = stage.event("Create", A)
    assert stage.launch(event) == stage.launch(event)
    assert len(stage.braket.jobs) == 1


def test_the_event_is_logged_without_the_url_that_answers_it(
    stage: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from launch_job import handler

    monkeypatch.setattr(handler, "services", lambda: stage.services)
    handler.handle(stage.event("Create", A), None)
    output = capsys.readouterr().out
    assert json.loads(output.splitlines()[0])["event"]["LogicalResourceId"] == "JobA"
    assert "pre-signed" not in output


def test_an_update_of_the_spec_launches_the_new_one_and_the_delete_that_follows_cancels_the_old_one(
    stage: Stage,
) -> None:
    old = stage.create(A)
    new = stage.launch(stage.event("Update", B, physical_id=old, old=A))["PhysicalResourceId"]
    assert new != old
    assert len(stage.braket.active()) == 2, "an update itself cancels nothing: it may be rolled back"
    stage.launch(stage.event("Delete", A, physical_id=old))
    assert [job["jobName"] for job in stage.braket.active()] == [new]


def test_an_update_of_something_else_launches_nothing(stage: Stage) -> None:
    name = stage.create(A)
    changed = {**A, "Price": "null", "SourceArchive": "s3://elsewhere/source.tar.gz"}
    assert stage.launch(stage.event("Update", changed, physical_id=name, old=A))["PhysicalResourceId"] == name
    assert len(stage.braket.jobs) == 1


def test_a_raised_run_launches_the_same_spec_again(stage: Stage) -> None:
    name = stage.create(A)
    again = stage.launch(stage.event("Update", {**A, "Run": "2"}, physical_id=name, old=A))["PhysicalResourceId"]
    assert again != name
    assert len(stage.braket.jobs) == 2


def test_the_rollback_of_a_finished_update_goes_back_without_a_relaunch(stage: Stage) -> None:
    old = stage.create(A)
    stage.changed(stage.braket.end(old, "COMPLETED"))
    new = stage.launch(stage.event("Update", B, physical_id=old, old=A))["PhysicalResourceId"]
    back = stage.launch(stage.event("Update", A, physical_id=new, old=B))
    assert back["PhysicalResourceId"] == old
    stage.launch(stage.event("Delete", B, physical_id=new))
    assert len(stage.braket.jobs) == 2
    assert stage.braket.active() == []


def test_the_rollback_of_an_update_that_was_never_answered_ends_its_job(stage: Stage) -> None:
    old = stage.create(A)
    new = stage.launch(stage.event("Update", B, physical_id=old, old=A))["PhysicalResourceId"]
    # The answer was lost: CloudFormation holds the old id, and no Delete of the new one will ever come.
    back = stage.launch(stage.event("Update", A, physical_id=old, old=B))
    assert back["PhysicalResourceId"] == old
    assert [job["jobName"] for job in stage.braket.active()] == [old]
    assert stage.braket.named(new)[0]["status"] == "CANCELLING"


def test_an_update_that_arrives_after_its_own_rollback_starts_nothing(stage: Stage) -> None:
    old = stage.create(A)
    late = stage.event("Update", B, physical_id=old, old=A)
    stage.launch(stage.event("Update", A, physical_id=old, old=B))
    with pytest.raises(LaunchError, match="overtaken"):
        stage.launch(late)
    assert len(stage.braket.jobs) == 1


def test_a_delete_that_overtakes_the_create_leaves_no_job(stage: Stage) -> None:
    late = stage.event("Create", A)
    stage.launch(stage.event("Delete", A, physical_id=INVENTED))
    with pytest.raises(LaunchError, match="overtaken"):
        stage.launch(late)
    assert stage.braket.jobs == {}


def test_a_delete_with_an_invented_id_after_a_lost_answer_cancels(stage: Stage) -> None:
    stage.create(A)
    stage.launch(stage.event("Delete", A, physical_id=INVENTED))
    assert stage.braket.active() == []


def test_a_delete_in_the_middle_of_create_job_leaves_no_active_job(stage: Stage) -> None:
    def before(name: str, _: int) -> None:
        if name == "CreateJob":
            stage.plan.heal()
            stage.launch(stage.event("Delete", A, physical_id=INVENTED))

    stage.plan.before = before
    with pytest.raises(LaunchError, match="overtaken"):
        stage.launch(stage.event("Create", A))
    assert len(stage.braket.jobs) == 1
    assert stage.braket.active() == []


@pytest.mark.parametrize("lives", [0, 1])
def test_a_delete_while_the_files_are_copied_leaves_no_job(stage: Stage, lives: int) -> None:
    for _ in range(lives):
        name = stage.create(A)
        stage.launch(stage.event("Delete", A, physical_id=name))

    def before(name: str, _: int) -> None:
        if name == "HeadObject":
            stage.plan.heal()
            stage.launch(stage.event("Delete", A, physical_id=INVENTED))

    stage.plan.before = before
    with pytest.raises(LaunchError, match="overtaken"):
        stage.launch(stage.event("Create", A))
    assert len(stage.braket.jobs) == lives
    assert stage.braket.active() == []


def test_a_late_create_is_refused_also_when_an_interrupted_start_has_freed_an_older_name(stage: Stage) -> None:
    first = stage.create(A)
    launch = stage.ledger(first)
    # The start was interrupted before CreateJob, and its Delete couldn't know that yet.
    stage.braket.jobs.clear()
    starting = launch.moved(State.STARTING, launch.updated_at, job_arn=None, released=Released.DELETED)
    stage.services.ledger.replace(starting)
    late = stage.event("Create", A)
    stage.launch(stage.event("Delete", A, physical_id=INVENTED))
    stage.clock.pass_time(300)
    stage.sweep()
    assert stage.ledger(first).state is State.WITHDRAWN
    with pytest.raises(LaunchError, match="overtaken"):
        stage.launch(late)
    assert stage.braket.jobs == {}


def test_a_job_that_a_delete_cancelled_is_launched_again_when_it_is_added_again(stage: Stage) -> None:
    first = stage.create(A)
    stage.launch(stage.event("Delete", A, physical_id=first))
    stage.changed(stage.braket.end(first, "CANCELLED"))
    second = stage.create(A)
    assert second == name_of(A, generation=1)
    assert [job["jobName"] for job in stage.braket.active()] == [second]
    stage.launch(stage.event("Delete", A, physical_id=second))
    assert stage.braket.active() == []


def test_deliveries_that_are_late_by_a_whole_life_change_nothing(stage: Stage) -> None:
    create, name = stage.event("Create", A), name_of(A)
    stage.launch(create)
    delete = stage.event("Delete", A, physical_id=name)
    stage.launch(delete)
    again = stage.create(A)
    stage.launch(delete)
    with pytest.raises(LaunchError, match="overtaken"):
        stage.launch(create)
    assert [job["jobName"] for job in stage.braket.active()] == [again]


def test_a_second_delivery_of_a_delete_spares_a_waiting_launch_that_was_made_since(clients: StageClients) -> None:
    stage = Stage(clients, in_memory=True, max_concurrent_jobs=1)
    stage.create(B, logical_id="Other")
    name = stage.create(A)
    delete = stage.event("Delete", A, physical_id=name)
    stage.launch(delete)
    assert stage.ledger(name).state is State.WITHDRAWN
    assert stage.create(A) == name, "it never had a job, so its name is free"
    stage.launch(delete)
    assert stage.ledger(name).state is State.PENDING


def test_a_second_delivery_of_a_delete_with_an_invented_id_spares_the_next_launch(stage: Stage) -> None:
    stage.create(A)
    delete = stage.event("Delete", A, physical_id=INVENTED)
    stage.launch(delete)
    again = stage.create(A)
    stage.launch(delete)
    assert [job["jobName"] for job in stage.braket.active()] == [again]


def test_what_a_dying_function_let_go_is_ended_before_it_is_launched_again(stage: Stage) -> None:
    first = stage.create(A)
    launch = stage.ledger(first)
    stage.services.ledger.replace(launch.moved(State.STARTED, launch.updated_at, released=Released.FAILED))
    second = stage.create(A)
    assert [job["jobName"] for job in stage.braket.active()] == [second]
    assert second != first


@pytest.mark.parametrize("status", ["COMPLETED", "FAILED", "CANCELLED", "CANCELLING"])
def test_deleting_a_job_that_has_ended_or_is_ending_succeeds(stage: Stage, status: str) -> None:
    name = stage.create(A)
    stage.braket.named(name)[0]["status"] = status
    stage.launch(stage.event("Delete", A, physical_id=name))
    assert stage.braket.named(name)[0]["status"] == status


def test_deleting_a_job_that_braket_does_not_know_succeeds(stage: Stage) -> None:
    name = stage.create(A)
    stage.braket.jobs.clear()
    stage.launch(stage.event("Delete", A, physical_id=name))


def test_a_job_of_ours_that_the_ledger_has_lost_is_found_by_its_name_and_cancelled(stage: Stage) -> None:
    name = stage.create(A)
    stage.clients.dynamodb.delete_item(TableName=stage.table, Key={"kind": {"S": "launch"}, "name": {"S": name}})
    stage.launch(stage.event("Delete", A, physical_id=name))
    assert stage.braket.active() == []


def test_a_stranger_job_of_the_same_name_is_left_alone(stage: Stage) -> None:
    name = stage.create(A)
    stage.clients.dynamodb.delete_item(TableName=stage.table, Key={"kind": {"S": "launch"}, "name": {"S": name}})
    stage.braket.named(name)[0]["tags"]["hybrid-jobs:stack-id"] = "another stack"
    stage.launch(stage.event("Delete", A, physical_id=name))
    assert len(stage.braket.active()) == 1


def test_the_physical_id_of_another_resource_deletes_nothing_of_it(stage: Stage) -> None:
    name = stage.create(A, logical_id="JobA")
    stage.launch(stage.event("Delete", B, physical_id=name, logical_id="JobB"))
    assert len(stage.braket.active()) == 1


def test_only_a_missing_permission_fails_a_delete_and_says_which(stage: Stage) -> None:
    name = stage.create(A)
    stage.plan.refuse("CancelJob", "AccessDeniedException")
    with pytest.raises(LaunchError, match=r"CancelJob: AccessDeniedException.*permission for CancelJob"):
        stage.launch(stage.event("Delete", A, physical_id=name))
    stage.plan.heal()
    stage.launch(stage.event("Delete", A, physical_id=name))
    assert stage.braket.active() == []


def test_a_throttled_cancel_is_tried_again_and_the_delete_succeeds(stage: Stage) -> None:
    name = stage.create(A)
    stage.plan.refuse("CancelJob", "ThrottlingException", times=2)
    stage.launch(stage.event("Delete", A, physical_id=name))
    assert stage.braket.active() == []
    assert stage.clock.slept < 30


def test_an_old_property_format_is_deleted_by_its_physical_id(stage: Stage) -> None:
    name = stage.create(A)
    stage.launch(stage.event("Delete", {"SpecVersion": "0", "Job": "?"}, physical_id=name))
    assert stage.braket.active() == []
    stage.launch(stage.event("Delete", {"SpecVersion": "0", "Job": "?"}, physical_id=INVENTED))


def test_files_are_copied_once(stage: Stage) -> None:
    stage.create(A)
    copied = stage.plan.calls.count("CopyObject")
    stage.create(B, logical_id="JobB")
    assert copied == 2
    assert stage.plan.calls.count("CopyObject") == copied


def test_a_job_is_found_by_the_launch_it_was_asked_for_with(stage: Stage) -> None:
    name = stage.create(A)
    launch = stage.ledger(name)
    assert launch.state is State.STARTED
    assert launch.job_arn == stage.braket.arn(name)
    assert launch.requested_at < timestamp(stage.clock.now())


@settings(max_examples=60, deadline=None)
@given(physical_id=st.text(max_size=200))
def test_no_physical_id_whatever_fails_a_delete(clients: StageClients, physical_id: str) -> None:
    stage = Stage(clients)
    stage.launch(stage.event("Delete", {}, physical_id=physical_id))
    assert not {"CancelJob", "GetJob"} & set(stage.plan.calls)
