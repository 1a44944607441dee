"""The real CDK CLI deploys, compares and destroys in an embedded cloud, reports each step, leaves nothing behind."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybridjobs.local.cdk_cli import CdkCliError, DeployEvent, parse_event
from hybridjobs.local.cloud import LocalCloud
from tests.local.tiny_cloud import eventually, start_job, tiny_project

_APP = """
import aws_cdk as cdk
from aws_cdk import aws_events as events, aws_events_targets as targets, aws_lambda, aws_s3 as s3, aws_ssm as ssm

app = cdk.App()
stage = app.node.try_get_context("stage")

storage = cdk.Stack(app, "Storage", stack_name=f"Tiny-{stage}-Storage")
bucket = s3.Bucket(
    storage, "Bucket", versioned=True, auto_delete_objects=True, removal_policy=cdk.RemovalPolicy.DESTROY
)
ssm.StringParameter(storage, "Name", parameter_name=f"/tiny/{stage}/bucket", string_value=bucket.bucket_name)

jobs = cdk.Stack(app, "Jobs", stack_name=f"Tiny-{stage}-Jobs")
jobs.add_dependency(storage)
name = ssm.StringParameter.value_for_string_parameter(jobs, f"/tiny/{stage}/bucket")
collector = aws_lambda.Function(
    jobs,
    "Collector",
    runtime=aws_lambda.Runtime.PYTHON_3_14,
    handler="index.handle",
    environment={"BUCKET": name},
    code=aws_lambda.Code.from_inline(
        "import boto3, json, os\\n"
        "def handle(event, context):\\n"
        "    boto3.client('s3').put_object(Bucket=os.environ['BUCKET'], Key='event', Body=json.dumps(event))\\n"
    ),
)
events.Rule(
    jobs,
    "JobEnded",
    event_pattern=events.EventPattern(source=["aws.braket"], detail={"status": ["COMPLETED"]}),
    targets=[targets.LambdaFunction(collector)],
)
app.synth()
"""


def write_app(folder: Path, source: str) -> Path:
    folder.mkdir()
    (folder / "app.py").write_text(source)
    (folder / "cdk.json").write_text(json.dumps({"app": "python3 app.py"}))
    return folder


class World:
    """A tiny project with its embedded cloud, and what the caller's own folders hold."""

    def __init__(self, cloud: LocalCloud, app: Path) -> None:
        self.cloud = cloud
        self.app = app

    def bucket(self) -> str:
        return str(self.cloud.client("ssm").get_parameter(Name="/tiny/local/bucket")["Parameter"]["Value"])

    def stacks(self) -> set[str]:
        stacks = self.cloud.client("cloudformation").describe_stacks()["Stacks"]
        return {stack["StackName"] for stack in stacks if stack["StackStatus"].endswith("_COMPLETE")}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    root = tiny_project(tmp_path_factory.mktemp("project"))
    app = write_app(root / "tiny", _APP)
    own = tmp_path_factory.mktemp("own")
    before = sorted(path for path in root.rglob("*") if "__pycache__" not in path.parts)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            patch.setenv(name, str(own))
        with LocalCloud(root).session() as cloud:
            yield World(cloud, app)
    assert list(own.iterdir()) == [], "the caller's own folders got files"
    assert sorted(path for path in root.rglob("*") if "__pycache__" not in path.parts) == before


pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(600)]


def test_a_deployment_reports_each_resource_in_the_order_in_which_it_happened(world: World) -> None:
    events: list[DeployEvent] = []
    world.cloud.deploy(on_event=events.append, app=world.app)
    assert world.stacks() == {"CDKToolkit", "Tiny-local-Storage", "Tiny-local-Jobs"}
    bucket = [event.status for event in events if event.resource == "Storage/Bucket"]
    assert bucket == ["CREATE_IN_PROGRESS", "CREATE_COMPLETE"]
    assert {event.stack for event in events} == world.stacks()
    last = [event for event in events if event.stack == "Tiny-local-Jobs"][-1]
    assert (last.resource_type, last.status) == ("AWS::CloudFormation::Stack", "CREATE_COMPLETE")


def test_a_deployed_app_has_no_differences(world: World) -> None:
    assert "Number of stacks with differences: 0" in world.cloud.diff(app=world.app)


def test_a_job_event_of_the_endpoint_reaches_the_function_of_a_rule(world: World) -> None:
    arn = start_job(world.cloud, "quick", "print('done')")
    s3 = world.cloud.client("s3")
    assert eventually(lambda: s3.list_objects_v2(Bucket=world.bucket()).get("KeyCount") == 1)
    event = json.loads(s3.get_object(Bucket=world.bucket(), Key="event")["Body"].read())
    assert event["source"] == "aws.braket"
    assert event["detail-type"] == "Braket Job State Change"
    assert event["detail"]["jobArn"] == arn
    assert (event["account"], event["region"], event["resources"]) == ("000000000000", "us-east-1", [arn])


def test_a_failing_app_is_an_error_with_its_own_words(world: World, tmp_path: Path) -> None:
    before = world.stacks()
    app = write_app(tmp_path / "failing", "import sys\nsys.exit('stages/local.toml: launch: no such job')\n")
    with pytest.raises(CdkCliError, match="no such job"):
        world.cloud.deploy(app=app)
    assert world.stacks() == before


def test_destroying_empties_versioned_buckets_and_leaves_no_stack(world: World) -> None:
    bucket = world.bucket()
    s3 = world.cloud.client("s3")
    for body in (b"first", b"second"):
        s3.put_object(Bucket=bucket, Key="again", Body=body)
    events: list[DeployEvent] = []
    world.cloud.destroy(on_event=events.append, app=world.app)
    assert world.stacks() == {"CDKToolkit"}
    assert bucket not in {each["Name"] for each in s3.list_buckets()["Buckets"]}
    s3.create_bucket(Bucket=bucket)
    assert "Versions" not in s3.list_object_versions(Bucket=bucket)
    assert DeployEvent("Tiny-local-Storage", "Storage/Bucket", "AWS::S3::Bucket", "DELETE_COMPLETE") in events


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (
            "Tiny-local-Storage |  3/10 | 9:21:33 PM | CREATE_COMPLETE      | AWS::S3::Bucket | "
            "Storage/Bucket (Bucket83908E77) ",
            DeployEvent("Tiny-local-Storage", "Storage/Bucket", "AWS::S3::Bucket", "CREATE_COMPLETE"),
        ),
        (
            "Tiny |   0 | 9:21:33 AM | CREATE_FAILED        | Custom::BraketHybridJob | Jobs/quick/Launch/Default "
            "(quickLaunch1A) Received response status [FAILED] from custom resource. (RequestId: 1-2)",
            DeployEvent(
                "Tiny",
                "Jobs/quick/Launch/Default",
                "Custom::BraketHybridJob",
                "CREATE_FAILED",
                "Received response status [FAILED] from custom resource. (RequestId: 1-2)",
            ),
        ),
        (
            "CDKToolkit | 12/12 | 21:21:33 | CREATE_COMPLETE      | AWS::CloudFormation::Stack | CDKToolkit ",
            DeployEvent("CDKToolkit", "CDKToolkit", "AWS::CloudFormation::Stack", "CREATE_COMPLETE"),
        ),
        ("Tiny-local-Storage: deploying... [1/2]", None),
        ("| a | table | of | the | diff |", None),
        ("", None),
    ],
)
def test_a_line_of_the_cli_is_read_as_an_event_or_not_at_all(line: str, event: DeployEvent | None) -> None:
    assert parse_event(line) == event
