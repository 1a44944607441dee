"""Each gap of the emulator is still there without its workaround, and closed with it.

A test of the bare emulator that fails is good news: the workaround is obsolete and can be deleted.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from botocore.exceptions import ClientError

from hybridjobs.local.cloud import LocalCloud
from hybridjobs.local.environment import aws_environment, client_session, process_environment
from hybridjobs.local.run_folder import RunFolder
from tests.local.tiny_cloud import create_function, eventually

STOCK = {"registryId": "292282985366", "repositoryName": "amazon-braket-base-jobs"}


class BareEmulator(LocalCloud):
    """The part of LocalCloud that makes clients, for the emulator alone."""

    def __init__(self, port: int) -> None:
        super().__init__(Path.cwd())
        self._port = port

    def client(self, service: str) -> Any:
        variables = aws_environment(self._port)
        session: Any = client_session(variables)
        return session.client(service, endpoint_url=variables["AWS_ENDPOINT_URL"])


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    root = tmp_path_factory.mktemp("bare")
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("bare_emulator.py")), str(root)],
        env=process_environment(RunFolder(root)),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    yield BareEmulator(int(process.stdout.readline()))
    process.kill()
    process.communicate()


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    with LocalCloud(tmp_path_factory.mktemp("cloud")).session() as cloud:
        yield cloud


def describe_missing_image(cloud: LocalCloud) -> Any:
    ecr = cloud.client("ecr")
    ecr.create_repository(repositoryName="amazon-braket-tiny")
    return ecr.describe_images(repositoryName="amazon-braket-tiny", imageIds=[{"imageTag": "absent"}])


def test_the_bare_emulator_describes_an_image_that_is_not_there(bare: LocalCloud) -> None:
    assert describe_missing_image(bare)["imageDetails"] == []


def test_an_image_that_is_not_there_is_refused(cloud: LocalCloud) -> None:
    with pytest.raises(ClientError) as refusal:
        describe_missing_image(cloud)
    assert refusal.value.response["Error"]["Code"] == "ImageNotFoundException"
    ecr = cloud.client("ecr")
    ecr.put_image(repositoryName="amazon-braket-tiny", imageTag="present", imageManifest='{"schemaVersion": 2}')
    found = ecr.describe_images(repositoryName="amazon-braket-tiny", imageIds=[{"imageTag": "present"}])
    assert [image["imageTags"] for image in found["imageDetails"]] == [["present"]]
    assert len(ecr.describe_images(repositoryName="amazon-braket-tiny")["imageDetails"]) == 1


def push_configuration(cloud: LocalCloud, repository: str) -> str:
    """Push the configuration of an image as an engine does; returns its digest."""
    cloud.client("ecr").create_repository(repositoryName=repository)
    content = b'{"os": "linux", "architecture": "arm64"}'
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    endpoint = cloud.client("ecr").meta.endpoint_url
    upload = Request(f"{endpoint}/v2/{repository}/blobs/uploads/?digest={digest}", data=content, method="POST")
    with urlopen(upload) as answer:
        assert answer.status == 201
    return digest


def test_the_bare_emulator_names_an_address_in_aws_for_any_layer(bare: LocalCloud) -> None:
    pushed = push_configuration(bare, "amazon-braket-layers")
    for layer in (pushed, f"sha256:{'0' * 64}"):
        answer = bare.client("ecr").get_download_url_for_layer(repositoryName="amazon-braket-layers", layerDigest=layer)
        assert urlsplit(answer["downloadUrl"]).hostname == "000000000000.dkr.ecr.us-east-1.amazonaws.com"


def test_a_layer_that_was_pushed_can_be_downloaded_and_no_other(cloud: LocalCloud) -> None:
    repository = "amazon-braket-layers"
    pushed = push_configuration(cloud, repository)
    ecr = cloud.client("ecr")
    address = ecr.get_download_url_for_layer(repositoryName=repository, layerDigest=pushed)["downloadUrl"]
    with urlopen(address) as answer:
        assert json.load(answer)["architecture"] == "arm64"
    for unknown, layer, code in (
        (repository, f"sha256:{'0' * 64}", "LayersNotFoundException"),
        ("amazon-braket-unknown", pushed, "RepositoryNotFoundException"),
    ):
        with pytest.raises(ClientError) as refusal:
            ecr.get_download_url_for_layer(repositoryName=unknown, layerDigest=layer)
        assert refusal.value.response["Error"]["Code"] == code


def stack_events(cloud: LocalCloud) -> list[dict[str, Any]]:
    """The events of a stack of many quick resources, newest first."""
    parameter = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "x"}}
    client = cloud.client("cloudformation")
    resources = {f"Parameter{number}": parameter for number in range(50)}
    client.create_stack(StackName="quick", TemplateBody=json.dumps({"Resources": resources}))
    client.get_waiter("stack_create_complete").wait(StackName="quick", WaiterConfig={"Delay": 1})
    pages = client.get_paginator("describe_stack_events").paginate(StackName="quick")
    return [event for page in pages for event in page["StackEvents"]]


def test_the_bare_emulator_gives_several_stack_events_the_same_time(bare: LocalCloud) -> None:
    times = [event["Timestamp"] for event in stack_events(bare)]
    assert len(set(times)) < len(times)


def test_stack_events_have_the_order_in_which_they_happened(cloud: LocalCloud) -> None:
    events = stack_events(cloud)
    times = [event["Timestamp"] for event in events]
    assert times == sorted(set(times), reverse=True)
    assert events[0]["ResourceStatus"] == "CREATE_COMPLETE"
    assert events[-1]["ResourceStatus"] == "CREATE_IN_PROGRESS"


def test_the_bare_emulator_has_no_s3_client_for_the_function_that_empties_buckets(bare: LocalCloud) -> None:
    source = "const s3 = require('@aws-sdk/client-s3'); exports.handle = async () => Object.keys(s3).length;"
    create_function(bare, "s3-client", source, runtime="nodejs24.x")
    answer = bare.client("lambda").invoke(FunctionName="s3-client", Payload=b"{}")
    assert "FunctionError" in answer
    assert "@aws-sdk/client-s3" in answer["Payload"].read().decode()


def test_the_bare_emulator_knows_no_images_of_other_accounts(bare: LocalCloud) -> None:
    with pytest.raises(ClientError, match="RepositoryNotFoundException"):
        bare.client("ecr").batch_get_image(**STOCK, imageIds=[{"imageTag": "latest"}])


def test_stock_images_are_known_by_their_tags_and_others_are_not(cloud: LocalCloud) -> None:
    ecr = cloud.client("ecr")
    answer = ecr.batch_get_image(**STOCK, imageIds=[{"imageTag": "latest"}, {"imageTag": "0.1"}])
    assert [failure["imageId"]["imageTag"] for failure in answer["failures"]] == ["0.1"]
    (digest,) = [image["imageId"]["imageDigest"] for image in answer["images"]]
    same = ecr.batch_get_image(**STOCK, imageIds=[{"imageDigest": digest}])["images"]
    assert [image["imageId"]["imageTag"][:4] for image in same] == ["late", "1.0-"]
    with pytest.raises(ClientError, match="RepositoryNotFoundException"):
        ecr.batch_get_image(repositoryName=STOCK["repositoryName"], imageIds=[{"imageTag": "latest"}])


_FAILING = "def handle(event, context):\n    raise ValueError(event['detail']['number'])\n"


def failed_event(cloud: LocalCloud) -> list[dict[str, Any]]:
    """What the dead-letter queue of a function behind a rule holds, once the function has failed in every attempt."""
    arn = create_function(cloud, "failing", _FAILING)
    sqs, function, events = cloud.client("sqs"), cloud.client("lambda"), cloud.client("events")
    url = sqs.create_queue(QueueName="dead-letters")["QueueUrl"]
    queue = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    function.update_function_configuration(FunctionName="failing", DeadLetterConfig={"TargetArn": queue})
    function.put_function_event_invoke_config(FunctionName="failing", MaximumRetryAttempts=1)
    events.put_rule(Name="numbers", EventPattern=json.dumps({"source": ["tiny"]}))
    events.put_targets(Rule="numbers", Targets=[{"Id": "failing", "Arn": arn}])
    events.put_events(Entries=[{"Source": "tiny", "DetailType": "number", "Detail": '{"number": 7}'}])
    found: list[Any] = []
    # The second attempt comes after a second.
    eventually(lambda: bool(found.extend(sqs.receive_message(QueueUrl=url).get("Messages", [])) or found), seconds=4)
    return [dict(json.loads(message["Body"])) for message in found]


def template_function(cloud: LocalCloud) -> dict[str, Any]:
    """The configuration of a function that a template has made, with a dead-letter queue."""
    code = {"ZipFile": _FAILING}
    role = "arn:aws:iam::000000000000:role/tiny"
    queue = {"Fn::GetAtt": ["Queue", "Arn"]}
    properties = {"Code": code, "Handler": "index.handle", "Runtime": "python3.13", "Role": role}
    resources = {
        "Queue": {"Type": "AWS::SQS::Queue"},
        "Function": {
            "Type": "AWS::Lambda::Function",
            "Properties": {**properties, "FunctionName": "made", "DeadLetterConfig": {"TargetArn": queue}},
        },
    }
    client = cloud.client("cloudformation")
    client.create_stack(StackName="letters", TemplateBody=json.dumps({"Resources": resources}))
    client.get_waiter("stack_create_complete").wait(StackName="letters", WaiterConfig={"Delay": 1})
    return dict(cloud.client("lambda").get_function_configuration(FunctionName="made"))


def test_the_bare_emulator_loses_an_event_that_a_function_fails_to_process(bare: LocalCloud) -> None:
    assert failed_event(bare) == []
    assert "DeadLetterConfig" not in template_function(bare)


def test_an_event_that_a_function_fails_to_process_comes_into_its_dead_letter_queue(cloud: LocalCloud) -> None:
    (event,) = failed_event(cloud)
    assert (event["source"], event["detail"]) == ("tiny", {"number": 7})
    assert ":sqs:" in template_function(cloud)["DeadLetterConfig"]["TargetArn"]
