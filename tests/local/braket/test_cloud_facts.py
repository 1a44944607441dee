"""What CreateJob checks against the resources of the embedded cloud."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hybridjobs.local.braket.cloud_facts import EmulatedCloudFacts, allows_braket, emulated_client
from hybridjobs.local.braket.endpoint import EndpointSettings
from tests.local.braket.fake_cloud import ACCOUNT, BUCKET, IMAGE, VALID_REQUEST, Cloud, changed
from tests.local.braket.fake_runner import FakeRunner

IMAGE_FIELD = "algorithmSpecification.containerImage.uri"


@pytest.fixture
def cloud(start_cloud: Callable[..., Cloud], aws: dict[str, str]) -> Cloud:
    return start_cloud(
        aws_environment=aws,
        runner=FakeRunner(finish_at_once=True),
        settings=EndpointSettings(max_concurrent_jobs=50),
    )


def test_the_role_must_exist_and_trust_braket(cloud: Cloud, aws: dict[str, str]) -> None:
    cloud.create()
    absent = f"arn:aws:iam::{ACCOUNT}:role/service-role/AmazonBraketJobsExecutionRole-absent"
    with pytest.raises(ClientError, match=rf"{absent}.*trust policy must allow sts:AssumeRole"):
        cloud.create(roleArn=absent)
    trust = {"Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "*"}]}
    role = emulated_client("iam", aws).create_role(
        RoleName="AmazonBraketJobsExecutionRole-ec2", AssumeRolePolicyDocument=json.dumps(trust)
    )["Role"]["Arn"]
    with pytest.raises(ClientError, match="Braket can't assume this role"):
        cloud.create(roleArn=role)
    other_path = VALID_REQUEST["roleArn"].replace("/service-role/", "/")
    with pytest.raises(ClientError, match="Braket can't assume this role"):
        cloud.create(roleArn=other_path)


def test_another_bucket_name_is_accepted_when_the_bucket_is_tagged_for_braket(
    cloud: Cloud, aws: dict[str, str]
) -> None:
    s3 = emulated_client("s3", aws)
    s3.create_bucket(Bucket="results-of-ours")
    request = changed("outputDataConfig.s3Path", "s3://results-of-ours/jobs")
    with pytest.raises(ClientError, match="tagged AmazonBraket=true"):
        cloud.create(request)
    s3.put_bucket_tagging(Bucket="results-of-ours", Tagging={"TagSet": [{"Key": "AmazonBraket", "Value": "True"}]})
    cloud.create(request)


def test_an_image_of_the_own_account_must_be_in_its_repository(cloud: Cloud) -> None:
    cloud.create(changed(IMAGE_FIELD, IMAGE))
    for uri in (
        IMAGE.replace(":1", ":2"),
        IMAGE.replace(":1", f"@sha256:{'0' * 64}"),
        f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/amazon-braket-absent:1",
    ):
        with pytest.raises(ClientError, match="The repository has no such image") as error:
            cloud.create(changed(IMAGE_FIELD, uri))
        assert uri in error.value.response["Error"]["Message"]


def test_a_cloud_that_does_not_answer_is_not_asked_to_vouch(start_cloud: Callable[..., Cloud]) -> None:
    unreachable = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    facts = EmulatedCloudFacts(unreachable)
    assert facts.trusts_braket(VALID_REQUEST["roleArn"]) is None
    assert facts.has_image("amazon-braket-any", ":1") is None
    assert facts.bucket_tags(BUCKET) == {}
    start_cloud(aws_environment=unreachable).create()


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ({"Effect": "Allow", "Principal": {"Service": "braket.amazonaws.com"}, "Action": "sts:AssumeRole"}, True),
        ({"Effect": "Allow", "Principal": {"Service": ["a", "braket.amazonaws.com"]}, "Action": ["sts:*"]}, True),
        ({"Effect": "Deny", "Principal": {"Service": "braket.amazonaws.com"}, "Action": "sts:AssumeRole"}, False),
        ({"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}, False),
        ({"Effect": "Allow", "Principal": {"Service": "braket.amazonaws.com"}, "Action": "sts:TagSession"}, False),
    ],
)
def test_a_trust_policy_must_name_service_and_action(statement: Any, allowed: bool) -> None:
    assert allows_braket({"Statement": [statement]}) is allowed
    assert allows_braket(json.dumps({"Statement": statement})) is allowed
