"""What CreateJob refuses: every limit of the service model, and the documented rules beyond it."""

import copy
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.loaders import Loader
from botocore.model import ServiceModel

from hybridjobs.local.braket.endpoint import EndpointSettings
from hybridjobs.model.instances import INSTANCE_TYPES
from tests.local.braket.fake_cloud import REGION, VALID_REQUEST, Cloud, changed, new_token
from tests.local.braket.fake_runner import FakeRunner
from tests.local.braket.limits import Case, cases, placed

COMPLETE_REQUEST = {
    **changed("outputDataConfig.kmsKeyId", "alias/jobs"),
    "clientToken": "token",
    "associations": [
        {
            "arn": f"arn:aws:braket:{REGION}:000000000000:reservation/r",
            "type": "RESERVATION_TIME_WINDOW_ARN",
        }
    ],
}

CREATE_JOB = ServiceModel(Loader().load_service_model("braket", "service-2")).operation_model("CreateJob")
assert CREATE_JOB.input_shape is not None
MEMBERS = CREATE_JOB.input_shape.members.keys()
LIMITS = list(cases(CREATE_JOB.input_shape, COMPLETE_REQUEST))


@pytest.fixture(scope="module")
def generous(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """An endpoint without quotas, where every job ends at once."""
    settings = EndpointSettings(
        max_concurrent_jobs=100_000,
        max_workers=2,
        max_instance_count=100_000,
        instance_quotas=dict.fromkeys(INSTANCE_TYPES, 100_000),
    )
    folder: Path = tmp_path_factory.mktemp("generous")
    cloud = Cloud(folder, runner=FakeRunner(finish_at_once=True), settings=settings)
    yield cloud
    cloud.stop()


def answer_of(cloud: Cloud, body: bytes) -> tuple[int, str, Any]:
    """Send a raw body to CreateJob and return HTTP status, error type and document."""
    request = urllib.request.Request(f"{cloud.url}/job", data=body, method="POST")
    request.add_header("Authorization", "AWS4-HMAC-SHA256 Credential=any")
    request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, "", json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, error.headers["x-amzn-ErrorType"], json.load(error)


def test_the_model_brings_cases_for_every_member() -> None:
    assert {str(case.path[0]) for case in LIMITS if case.path} - {"unknownMember"} == MEMBERS


@pytest.mark.parametrize("case", LIMITS, ids=str)
def test_each_field_is_allowed_at_its_limits_and_refused_past_them(generous: Cloud, case: Case) -> None:
    request: dict[str, Any] = copy.deepcopy(COMPLETE_REQUEST)
    request["clientToken"] = new_token()
    status, error, document = answer_of(generous, json.dumps(placed(case, request)).encode())
    if case.allowed:
        # A documented rule beyond the model may still refuse the value; the model's own checks must not.
        refusal = f"at '{case.field}' failed to satisfy constraint: Member must "
        assert not any(refusal + verb in document.get("message", "") for verb in ("have", "satisfy", "not", "be of"))
    else:
        assert (status, error) == (400, "ValidationException"), document
        if case.field:
            assert f"at '{case.field}'" in document["message"]


@pytest.mark.parametrize("body", [b"{", b"[]", b'"text"', b"\xff", b'{"jobName": NaN}', b"", b"null"], ids=repr)
def test_a_body_that_is_no_json_object_is_refused(generous: Cloud, body: bytes) -> None:
    status, error, _ = answer_of(generous, body)
    assert (status, error) == (400, "ValidationException")


SCRIPT = "algorithmSpecification.scriptModeConfig"
IMAGE = "algorithmSpecification.containerImage.uri"


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("jobName", "qaoa_18", "jobName"),
        ("jobName", "-qaoa", "jobName"),
        ("jobName", "qaoa-", "jobName"),
        ("instanceConfig.instanceType", "ml.p3.2xlarge", "use ml.g6.xlarge"),
        ("instanceConfig.instanceType", "ml.p2.xlarge", "retired"),
        ("instanceConfig.instanceType", "ml.g5.xlarge", "enum"),
        ("checkpointConfig.localPath", "/opt/ml/checkpoints", "must not start with /opt/ml"),
        ("checkpointConfig.localPath", "/opt/braket/mine", "must not start with /opt/braket"),
        ("checkpointConfig.localPath", "/tmp/checkpoints", "must not start with /tmp"),
        ("checkpointConfig.localPath", "/usr/local/nvidia/x", "must not start with /usr/local/nvidia"),
        ("checkpointConfig.localPath", "checkpoints", "absolute path"),
        ("outputDataConfig.s3Path", "s3://my-results/jobs", "begins with amazon-braket-"),
        ("outputDataConfig.s3Path", "https://example.com/jobs", "address in Amazon S3"),
        ("checkpointConfig.s3Uri", "s3://my-results/jobs", "begins with amazon-braket-"),
        (f"{SCRIPT}.s3Uri", "s3://my-sources/source.tar.gz", "begins with amazon-braket-"),
        (f"{SCRIPT}.entryPoint", "qaoa_source/qaoa.py", "write qaoa_source.qaoa"),
        (f"{SCRIPT}.entryPoint", "qaoa source", "package.module:function"),
        (f"{SCRIPT}.compressionType", None, "unpacked only with compressionType GZIP"),
        (IMAGE, "292282985366.dkr.ecr.eu-west-2.amazonaws.com/amazon-braket-base-jobs:latest", "region of the job"),
        (IMAGE, "public.ecr.aws/braket/base:latest", IMAGE),
        (IMAGE, "292282985366.dkr.ecr.us-east-1.amazonaws.com/amazon-braket-base-jobs", IMAGE),
        ("roleArn", "arn:aws:iam::000000000000:user/me", "roleArn"),
        ("roleArn", "arn:aws:iam::111122223333:role/other", "account of the job"),
        ("deviceConfig.device", "local:lightning.qubit", "local:<provider>/<simulator>"),
        ("deviceConfig.device", "arn:aws:braket:::device/quantum-simulator/amazon/sv2", "no Braket device"),
        ("tags.aws:stack", "x", "aws: is reserved"),
    ],
)
def test_documented_rules_beyond_the_model_are_refused_with_field_and_value(
    generous: Cloud, path: str, value: str | None, told: str
) -> None:
    with pytest.raises(ClientError) as error:
        generous.create(changed(path, value))
    assert error.value.response["Error"]["Code"] == "ValidationException"
    message = error.value.response["Error"]["Message"]
    assert told in message
    assert value is None or path.startswith("tags") or value in message


@pytest.mark.parametrize(
    ("device", "code", "status"),
    [
        ("arn:aws:braket:us-east-1::device/qpu/ionq/Forte-1", "AccessDeniedException", 403),
        ("arn:aws:braket:us-west-1::device/qpu/rigetti/Ankaa-3", "DeviceRetiredException", 410),
        ("arn:aws:braket:::device/quantum-simulator/amazon/tn1", "DeviceRetiredException", 410),
    ],
)
def test_hardware_answers_as_for_an_account_without_access(
    generous: Cloud, device: str, code: str, status: int
) -> None:
    with pytest.raises(ClientError) as error:
        generous.create(changed("deviceConfig.device", device))
    response = error.value.response
    assert (response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]) == (code, status)
    assert device in response["Error"]["Message"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("deviceConfig.device", "local:none/none"),
        ("deviceConfig.device", "local:hybridjobs/contraction"),
        ("deviceConfig.device", "arn:aws:braket:::device/quantum-simulator/amazon/sv1"),
        (f"{SCRIPT}.entryPoint", "qaoa_source.qaoa:main"),
        ("outputDataConfig.s3Path", "https://amazon-braket-test.s3.us-east-1.amazonaws.com/jobs"),
        (IMAGE, f"292282985366.dkr.ecr.us-east-1.amazonaws.com/amazon-braket-base-jobs@sha256:{'0' * 64}"),
    ],
)
def test_what_the_service_documents_is_accepted(generous: Cloud, path: str, value: str) -> None:
    generous.create(changed(path, value))


@pytest.mark.parametrize(
    ("entry_point", "accepted"),
    [("julia_source/main.jl", True), ("cpp_source/solve", True), ("run.sh", True), ("cpp_source/solve.py", False)],
)
def test_an_image_of_ones_own_may_start_programs(generous: Cloud, entry_point: str, accepted: bool) -> None:
    image = "111122223333.dkr.ecr.us-east-1.amazonaws.com/amazon-braket-own:1"
    request = changed(f"{SCRIPT}.entryPoint", entry_point, changed(IMAGE, image))
    if accepted:
        generous.create(request)
    else:
        with pytest.raises(ClientError, match=r"write cpp_source\.solve"):
            generous.create(request)


def test_two_channels_of_one_name_are_refused(generous: Cloud) -> None:
    channel = VALID_REQUEST["inputDataConfig"][0]
    with pytest.raises(ClientError, match=r"inputDataConfig\[1\].channelName"):
        generous.create(inputDataConfig=[channel, channel])


def test_a_reservation_that_the_account_does_not_have_is_refused(generous: Cloud) -> None:
    with pytest.raises(ClientError, match=r"associations\[0\].arn.*no such reservation"):
        generous.create(associations=COMPLETE_REQUEST["associations"])


def test_an_instance_type_that_the_region_lacks_is_refused(tmp_path: Path) -> None:
    cloud = Cloud(tmp_path, settings=EndpointSettings(region="us-west-1"))
    try:
        image = "292282985366.dkr.ecr.us-west-1.amazonaws.com/amazon-braket-base-jobs:latest"
        request = changed("instanceConfig.instanceType", "ml.g6.xlarge", changed(IMAGE, image))
        with pytest.raises(ClientError, match="Not offered in us-west-1"):
            cloud.create(request)
    finally:
        cloud.stop()


def test_a_folder_as_source_with_a_script_name_as_entry_point_is_told_what_to_change(generous: Cloud) -> None:
    script = {"entryPoint": "job_script.py", "s3Uri": "s3://amazon-braket-test/scripts/"}
    request = changed(SCRIPT, script) | {"clientToken": "token"}
    with pytest.raises(ClientError) as error:
        generous.create(request)
    message = error.value.response["Error"]["Message"]
    assert message.startswith("2 validation errors detected")
    assert "upload an archive (source.tar.gz, with compressionType GZIP)" in message
    assert "write job_script" in message


def test_everything_wrong_with_a_request_is_told_at_once(generous: Cloud) -> None:
    request = changed("instanceConfig.volumeSizeInGb", 0, changed("jobName", "a_b"))
    with pytest.raises(ClientError) as error:
        generous.client(checked=False).create_job(**request)
    message = error.value.response["Error"]["Message"]
    assert "'jobName'" in message
    assert "'instanceConfig.volumeSizeInGb'" in message
