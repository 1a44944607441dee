"""The sweep: what no event told of, what belongs to nobody."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from aws.stacks import Stacks
from collect_result.handler import CollectError
from launches import State
from tests.unit.lambdas.stage import STACK, Stage, StageClients, document_of, properties_of


@pytest.fixture
def stage(clients: StageClients) -> Stage:
    return Stage(clients, in_memory=True)


@pytest.mark.parametrize("cancels", [True, False])
@pytest.mark.parametrize("holds", [None, "another-launch"])
def test_a_launch_that_no_stack_resource_holds_is_reported_and_ended_if_the_stage_says_so(
    clients: StageClients, cancels: bool, holds: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = Stage(clients, in_memory=True, cancel_orphans=cancels)
    name = stage.create()
    if holds:
        stage.memory.held[STACK, "JobA"] = holds
    stage.sweep()
    assert len(stage.braket.active()) == 1, "CloudFormation may still be waiting for the answer"
    stage.clock.pass_time(16 * 60)
    capsys.readouterr()
    stage.sweep()
    output = capsys.readouterr().out
    assert f'"job_name": "{name}", "message": "orphan: no stack resource holds this launch"' in output
    assert '"Orphans": 1.0' in output
    assert len(stage.braket.active()) == (0 if cancels else 1)


def test_while_a_stack_changes_it_may_go_back_to_a_launch_so_that_is_no_orphan(clients: StageClients) -> None:
    stage = Stage(clients, in_memory=True, cancel_orphans=True)
    stage.create()
    stage.memory.stack_status = "UPDATE_IN_PROGRESS"
    stage.clock.pass_time(3600)
    stage.sweep()
    assert len(stage.braket.active()) == 1


def test_a_launch_that_its_stack_holds_is_no_orphan(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.memory.held[STACK, "JobA"] = stage.create()
    stage.clock.pass_time(3600)
    capsys.readouterr()
    stage.sweep()
    output = capsys.readouterr().out
    assert '"Orphans": 0.0' in output
    assert '"RunningJobs": 1.0' in output


def test_a_waiting_orphan_is_withdrawn(clients: StageClients) -> None:
    stage = Stage(clients, in_memory=True, cancel_orphans=True, max_concurrent_jobs=1)
    names = [stage.create(properties_of(document_of(f"job-{n}")), logical_id=f"Job{n}") for n in range(2)]
    stage.memory.held[STACK, "Job0"] = names[0]
    stage.clock.pass_time(3600)
    stage.sweep()
    assert [stage.ledger(name).state for name in names] == [State.STARTED, State.WITHDRAWN]


def test_a_job_with_our_tag_that_the_ledger_does_not_know_is_reported(
    clients: StageClients, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = Stage(clients, in_memory=True)
    for number in range(5):
        stage.create(properties_of(document_of(f"job-{number}")), logical_id=f"Job{number}")
    stage.memory.launches.clear()
    stage.braket.jobs[next(iter(stage.braket.jobs))]["tags"]["hybrid-jobs:stage"] = "another"
    capsys.readouterr()
    stage.sweep()
    assert capsys.readouterr().out.count("orphan: the ledger does not know this job") == 2
    assert len(stage.braket.active()) == 3
    object.__setattr__(stage.settings, "cancel_orphans", True)
    stage.sweep()
    assert len(stage.braket.active()) == 1, "the other stage's job goes on"


def test_a_second_job_of_a_launch_is_ended(stage: Stage) -> None:
    name = stage.create()
    first = stage.braket.jobs[stage.braket.arn(name)]
    second = {**first, "jobArn": first["jobArn"].replace("00000000-", "99999999-"), "createdAt": stage.clock.now()}
    stage.braket.jobs[second["jobArn"]] = second
    stage.sweep()
    assert [job["jobArn"] for job in stage.braket.active()] == [stage.ledger(name).job_arn]


def test_a_lost_table_is_not_taken_for_a_job_that_braket_has_forgotten(stage: Stage) -> None:
    name = stage.create()
    arn = stage.braket.end(name, "COMPLETED")
    stage.plan.refuse("GetItem", "ResourceNotFoundException")
    with pytest.raises(ClientError):
        stage.changed(arn)
    with pytest.raises(CollectError):
        stage.sweep()


# The look at CloudFormation.


def looked_up(clients: StageClients, operation: str, answer: dict[str, Any] | None) -> Stubber:
    stubber = Stubber(clients.cloudformation)
    if answer is None:
        stubber.add_client_error(operation, "ValidationError", "Stack with id x does not exist")
    else:
        stubber.add_response(operation, answer)
    return stubber


@pytest.mark.parametrize(
    ("status", "changing"),
    [("UPDATE_IN_PROGRESS", True), ("UPDATE_ROLLBACK_IN_PROGRESS", True), ("UPDATE_COMPLETE", False), (None, False)],
)
def test_a_stack_changes_while_its_status_says_so(clients: StageClients, status: str | None, changing: bool) -> None:
    created = Stage(clients, in_memory=True).clock.now()
    answer = status and {"Stacks": [{"StackName": "x", "StackStatus": status, "CreationTime": created}]}
    with looked_up(clients, "describe_stacks", answer or None):
        assert Stacks(clients.cloudformation).is_changing("x") is changing


@pytest.mark.parametrize(
    ("status", "physical_id"), [("CREATE_COMPLETE", "job-1"), ("DELETE_COMPLETE", None), (None, None)]
)
def test_a_resource_holds_its_physical_id_until_it_is_deleted(
    clients: StageClients, status: str | None, physical_id: str | None
) -> None:
    detail = {
        "LogicalResourceId": "JobA",
        "PhysicalResourceId": "job-1",
        "ResourceType": "Custom::BraketHybridJob",
        "LastUpdatedTimestamp": Stage(clients, in_memory=True).clock.now(),
        "ResourceStatus": status,
    }
    answer = {"StackResourceDetail": detail} if status else None
    with looked_up(clients, "describe_stack_resource", answer):
        assert Stacks(clients.cloudformation).physical_id("x", "JobA") == physical_id
