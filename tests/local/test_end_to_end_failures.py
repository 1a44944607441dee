"""What fails, in the real CDK CLI, the real Lambdas and with jobs that really run: no job is left, doubled or lost.

IAM is enforced, as in test_end_to_end: what fails has to be put right with the rights of the roles alone.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from hybridjobs.local.cdk_cli import CdkCliError
from hybridjobs.local.cloud import LocalCloud
from hybridjobs.local.environment import ACCOUNT, REGION
from tests.local.recorded_calls import deployed_account, recorded_calls, refused
from tests.local.small_project import SmallProject
from tests.local.world import World

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    project = SmallProject(tmp_path_factory.mktemp("project"))
    daemon = Path(__file__).with_name("enforcing_daemon.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(project.programs), prepend=os.pathsep)
        with LocalCloud(project.root, daemon=(str(daemon),)).session() as cloud:
            yield World(cloud, project)


def refused_deploy(world: World) -> str:
    with pytest.raises(CdkCliError) as refusal:
        world.cloud.deploy("local")
    return str(refusal.value)


def test_a_failed_create_rolls_back_and_leaves_no_job_but_its_record(world: World) -> None:
    world.project.declare(sleeper="sleep", impossible="no image")
    assert "image amazon-braket-hybrid-jobs-local:absent is not in the registry" in refused_deploy(world)
    assert world.stack_status() == "ROLLBACK_COMPLETE"
    ((name, status),) = world.braket_jobs().items()
    assert name.startswith("sleeper-")
    assert status == "CANCELLED"
    assert world.record(name)["status"] == "CANCELLED"
    assert not any(launch.is_open for launch in world.deployment.launches())


def test_the_next_deploy_launches_what_the_rollback_cancelled(world: World) -> None:
    world.project.declare(sleeper="sleep", other="sleep")
    world.cloud.deploy("local")
    jobs = {world.wait("sleeper", "STARTED").job_name, world.wait("other", "STARTED").job_name}
    assert world.active_jobs() == jobs


def test_an_event_that_cannot_be_processed_is_kept_and_the_sweep_repairs_what_it_would_have_done(world: World) -> None:
    launch = world.wait("other", "STARTED")
    collector = world.resource("AWS::Lambda::Function", "CollectorFunction")
    function = world.cloud.client("lambda")
    variables = function.get_function_configuration(FunctionName=collector)["Environment"]["Variables"]
    broken = {**variables, "LEDGER_TABLE": "no-such-table"}
    function.update_function_configuration(FunctionName=collector, Environment={"Variables": broken})
    world.cloud.client("braket").cancel_job(jobArn=launch.job_arn)

    kept = world.kept_event("CollectorUnprocessed")
    assert kept["detail"] == {**kept["detail"], "jobArn": launch.job_arn, "status": "CANCELLED"}
    assert world.launches("other")[-1].state == "STARTED"
    with pytest.raises(ClientError, match="NoSuchKey"):
        world.record(launch.job_name)

    sweep = world.resource("AWS::Lambda::Function", "CollectorSweepFunction")
    answer = function.invoke(FunctionName=sweep, Payload=json.dumps({"sweep": True}).encode())
    assert json.loads(answer["Payload"].read()) == {"swept": True}
    assert world.record(launch.job_name)["status"] == "CANCELLED"
    assert world.launches("other")[-1].state == "CANCELLED"
    function.update_function_configuration(FunctionName=collector, Environment={"Variables": variables})


def test_a_failed_update_rolls_back_to_the_old_job_without_a_relaunch(world: World) -> None:
    held = world.deployment.parameters["jobs/sleeper"]
    before = world.braket_jobs()
    # Its configuration says so, which the launcher downloads with the rights of its role.
    world.project.push_for("arm64")
    world.project.declare(layers=2, sleeper="sleep", impossible="sleep", packaged="impossible")
    assert "is for linux/arm64, while every instance of Braket runs linux/amd64" in refused_deploy(world)
    assert world.stack_status() == "UPDATE_ROLLBACK_COMPLETE"

    (update,) = world.braket_jobs().keys() - before.keys()
    assert update.startswith("sleeper-")
    world.until(lambda: world.braket_jobs()[update] == "CANCELLED", "the job of the update is cancelled")
    assert world.active_jobs() == {held}
    assert world.deployment.parameters["jobs/sleeper"] == held
    world.until(lambda: not world.launches("sleeper")[-1].is_open, "the collector has seen it")
    assert world.record(update)["status"] == "CANCELLED"


def test_deleting_the_stack_during_a_run_cancels_the_job_and_leaves_its_record(world: World) -> None:
    (running,) = world.active_jobs()
    world.cloud.destroy("local", stacks=["Jobs"])
    assert world.braket_jobs()[running] == "CANCELLED"
    assert world.record(running)["status"] == "CANCELLED"


def test_every_call_was_allowed_by_the_policies_of_its_role(world: World) -> None:
    account = deployed_account(world.project.root / ".hybridjobs" / "cdk.out" / "local", "local", ACCOUNT, REGION)
    calls = set(recorded_calls(world.project.root / "calls.jsonl", account))
    missing = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/no-such-table"
    # The collector was pointed at a table that its role doesn't know.
    assert {call.resource for call in refused(calls, account)} <= {missing}
    assert {"braket:CancelJob", "s3:PutObject"} <= {call.action for call in calls}
