"""Deploy, compare, redeploy, change, fail, destroy: with the real CDK CLI, the real Lambdas and jobs that really run.

IAM is enforced: every function and job acts with its own role, and nothing but what the role's policies allow goes
through.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybridjobs.local.cdk_cli import CdkCliError
from hybridjobs.local.cloud import LocalCloud
from hybridjobs.local.environment import ACCOUNT, REGION
from hybridjobs.schemas import SCHEMA_FILES
from hybridjobs.schemas.documents import Record
from tests.infra.policies import Account
from tests.local.recorded_calls import Call, deployed_account, granted, recorded_calls, refused
from tests.local.small_project import ROOT, SmallProject
from tests.local.tiny_cloud import invoke
from tests.local.world import World

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    project = SmallProject(tmp_path_factory.mktemp("project"))
    daemon = Path(__file__).with_name("enforcing_daemon.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(project.programs), prepend=os.pathsep)
        with LocalCloud(project.root, daemon=(str(daemon),)).session() as cloud:
            project.declare(quick="save", broken="raise", packaged="quick")
            cloud.deploy("local")
            yield World(cloud, project)


def test_a_deployed_job_runs_and_leaves_a_record_with_its_results(world: World) -> None:
    launch = world.wait("quick", "COMPLETED")
    record = world.record(launch.job_name)
    assert record["status"] == "COMPLETED"
    assert record["results"] == {"seen": {"behaviour": "save", "layers": "1"}}
    assert record["job_arn"] == launch.job_arn
    assert record["worst_case_usd"] == pytest.approx(0.00768 * 700 / 60)
    assert 0 < record["cost_usd"] < record["worst_case_usd"]
    # From nothing, the image came into the repository that the same command made.
    assert world.project.builds() == ["build", "push"]
    assert re.fullmatch("sha256:[0-9a-f]{64}", record["image_digest"])


def test_a_job_that_raises_is_a_failed_record_with_its_message_while_the_deploy_is_green(world: World) -> None:
    launch = world.wait("broken", "FAILED")
    record = world.record(launch.job_name)
    assert record["status"] == "FAILED"
    assert "ValueError: the ansatz has no layers" in record["reason"]
    assert any("ValueError: the ansatz has no layers" in line for line in record["log_tail"])
    stacks = world.cloud.client("cloudformation").describe_stacks()["Stacks"]
    assert {stack["StackStatus"] for stack in stacks} == {"CREATE_COMPLETE"}


def test_the_contract_names_what_was_deployed(world: World) -> None:
    parameters = world.deployment.parameters
    schema = json.loads((ROOT / "docs" / "contract.schema.json").read_text())
    assert set(schema["required"]) <= parameters.keys()
    for name, value in parameters.items():
        [described] = (
            [schema["properties"].get(name)]
            if name in schema["properties"]
            else [described for pattern, described in schema["patternProperties"].items() if re.search(pattern, name)]
        )
        assert re.search(described["pattern"], value), f"{name} = {value}"
    assert parameters["jobs/quick"] == world.wait("quick", "COMPLETED").job_name
    bucket = world.cloud.client("s3").list_objects_v2(Bucket=parameters["job-bucket"], Prefix="records/")
    assert bucket["KeyCount"] == 2
    role = parameters["job-role-arn"].rsplit("/", 1)[1]
    assert world.cloud.client("iam").get_role(RoleName=role)["Role"]["Path"] == "/service-role/"


def test_the_records_are_what_their_published_schema_says(world: World) -> None:
    for file in SCHEMA_FILES:
        assert world.object(f"schemas/{file.name}") == file.read_bytes()
    for name in ("quick", "broken"):
        launch = world.wait(name, "COMPLETED", "FAILED")
        Record.model_validate_json(world.object(f"records/{launch.job_name}.json"))


def test_another_team_s_stack_reads_the_contract_and_holds_nothing_back(world: World, tmp_path: Path) -> None:
    launch = world.wait("quick", "COMPLETED")
    consumer = shutil.copytree(ROOT / "docs" / "examples" / "consumer", tmp_path / "consumer")
    settings = json.loads((consumer / "cdk.json").read_text())
    (consumer / "cdk.json").write_text(json.dumps(settings | {"context": {"job": "quick"}}))
    world.cloud.deploy("local", app=consumer)

    [stack] = world.cloud.client("cloudformation").describe_stacks(StackName="HybridJobs-local-Consumer")["Stacks"]
    [reader] = [output["OutputValue"] for output in stack["Outputs"]]
    assert invoke(world.cloud, reader) == world.record(launch.job_name)
    # It stays deployed: the tests below change and destroy the stacks that it reads from.


def test_the_deployed_stacks_are_what_the_app_says(world: World) -> None:
    assert "Number of stacks with differences: 0" in world.cloud.diff("local")


def test_deploying_again_launches_nothing_and_a_changed_or_added_job_is_launched_once(world: World) -> None:
    world.wait("quick", "COMPLETED")
    world.wait("broken", "FAILED")
    before = world.braket_jobs()

    world.cloud.deploy("local")
    assert world.braket_jobs() == before

    world.project.declare(layers=2, quick="save", sleeper="sleep", packaged="quick")
    world.project.dockerfile.write_text("FROM scratch AS changed\n")
    world.deploy_plainly()
    assert world.project.builds() == ["build", "push"] * 2
    launch = world.wait("quick", "COMPLETED")
    added = world.wait("sleeper", "STARTED")
    after = world.braket_jobs()
    assert after.keys() - before.keys() == {launch.job_name, added.job_name}
    assert {name: after[name] for name in before} == before
    assert world.record(launch.job_name)["results"]["seen"]["layers"] == "2"


def test_a_spec_that_braket_would_refuse_fails_at_synth_and_changes_nothing(world: World) -> None:
    before = world.braket_jobs().keys()
    world.project.declare(layers=3, quick="save", instance="ml.p3.2xlarge")
    with pytest.raises(CdkCliError) as refusal:
        world.cloud.deploy("local")
    for part in ("jobs.toml", "jobs.quick.instance.type", "ml.p3.2xlarge", "ml.g6.xlarge"):
        assert part in str(refusal.value)
    assert world.braket_jobs().keys() == before


def test_destroying_the_stacks_cancels_the_job_that_runs(world: World) -> None:
    launch = world.wait("sleeper", "STARTED")
    assert world.active_jobs() == {launch.job_name}
    world.age(launch)
    swept = invoke(world.cloud, world.resource("AWS::Lambda::Function", "CollectorSweepFunction"), {"sweep": True})
    assert "errorType" not in (swept or {})
    assert world.active_jobs() == {launch.job_name}

    world.cloud.destroy("local")

    assert world.braket_jobs()[launch.job_name] == "CANCELLED", "the stack waits for the job's record"
    stacks = world.cloud.client("cloudformation").describe_stacks()["Stacks"]
    assert {stack["StackName"] for stack in stacks} == {"CDKToolkit", "HybridJobs-local-Consumer"}


@pytest.fixture(scope="module")
def account(world: World) -> Account:
    return deployed_account(world.project.root / ".hybridjobs" / "cdk.out" / "local", "local", ACCOUNT, REGION)


@pytest.fixture(scope="module")
def calls(world: World, account: Account) -> list[Call]:
    return list(dict.fromkeys(recorded_calls(world.project.root / "calls.jsonl", account)))


def test_every_call_was_allowed_by_the_policies_of_its_role(calls: list[Call], account: Account) -> None:
    assert {call.role for call in calls} == {name for name in account.roles if "S3AutoDelete" not in name}
    assert refused(calls, account) == []
    assert {"braket:CreateJob", "iam:PassRole"} <= {call.action for call in calls if call.decision == "NotDecided"}


# The dispatcher runs in all three functions, whichever is called first; the collector's code runs in two.
_LAUNCHER, _COLLECTOR, _SWEEP = "LauncherRole", "CollectorRole", "CollectorSweepRole"
_SHARED = {
    ("braket:", "dynamodb:", "iam:PassRole"): {_LAUNCHER, _COLLECTOR, _SWEEP},
    ("s3:", "logs:"): {_COLLECTOR, _SWEEP},
}
# What no call of this run needs, because AWS itself acts with the role.
_AWS_ITSELF = {
    "cloudwatch:PutMetricData": "Braket sends the metrics that a job logs; here a job has none",
    "ecr:BatchCheckLayerAvailability": "Braket pulls the job's image; here a job is a process",
    "ecr:BatchGetImage": "Braket pulls the job's image; here a job is a process",
    "ecr:GetAuthorizationToken": "Braket pulls the job's image; here a job is a process",
    "ecr:GetDownloadUrlForLayer": "Braket pulls the job's image; here a job is a process",
    "lambda:GetFunction": "the provider framework asks for the launcher's state while that is not active yet",
    "logs:CreateLogStream": "Lambda writes a function's log with the function's role; the emulator writes none",
    "logs:DescribeLogStreams": "Braket looks for the stream that it appends a job's log to",
    "logs:PutLogEvents": "Lambda writes a function's log with the function's role; the emulator writes none",
    "s3:ListBucket": "nothing is listed: without it S3 answers 403 for an object that is not there, not 404",
    "sqs:SendMessage": "Lambda sends events that failed to the dead letters with the function's role",
}


def test_no_role_may_do_what_nothing_ever_does(calls: list[Call], account: Account) -> None:
    made = {(call.role[:-8], call.action) for call in calls}
    made |= {
        (role, action)
        for prefixes, roles in _SHARED.items()
        for caller, action in made
        if caller in roles and action.startswith(prefixes)
        for role in roles
    }
    unseen = {(name[:-8], action) for name, action in granted(account)} - made
    assert {action for _, action in unseen} == _AWS_ITSELF.keys()
    # Its actions are also those with which Braket pulls: only in the job role are they for AWS itself.
    assert {role for role, action in unseen if action.startswith("ecr:")} == {"JobRole"}
