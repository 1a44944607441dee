"""Quantum tasks on SV1 and DM1, through boto3 and through the SDK's AwsDevice."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError
from braket.aws import AwsDevice, AwsSession
from braket.circuits import Circuit, Observable
from braket.devices import Devices

from hybridjobs.local.braket.cloud_facts import emulated_client
from hybridjobs.local.braket.endpoint import EndpointSettings
from tests.local.braket.fake_cloud import ACCOUNT, BUCKET, REGION, Cloud

if TYPE_CHECKING:
    from mypy_boto3_braket import BraketClient

SV1 = "arn:aws:braket:::device/quantum-simulator/amazon/sv1"
DM1 = "arn:aws:braket:::device/quantum-simulator/amazon/dm1"
FORTE = "arn:aws:braket:us-east-1::device/qpu/ionq/Forte-1"

BELL = """OPENQASM 3.0;
bit[2] b;
qubit[2] q;
h q[0];
cnot q[0], q[1];
b[0] = measure q[0];
b[1] = measure q[1];
"""

# Long enough to be cancelled before it ends.
LONG = "OPENQASM 3.0;\nqubit[22] q;\n" + "h q;\n" * 2000 + "#pragma braket result expectation z(q[0])\n"


@pytest.fixture
def cloud(start_cloud: Callable[..., Cloud], aws: dict[str, str]) -> Cloud:
    return start_cloud(aws_environment=aws, settings=EndpointSettings(max_task_workers=1))


def openqasm(source: str) -> str:
    header = {"name": "braket.ir.openqasm.program", "version": "1"}
    return json.dumps({"braketSchemaHeader": header, "source": source})


def create(cloud: Cloud, **members: Any) -> str:
    request: dict[str, Any] = {
        "deviceArn": SV1,
        "shots": 100,
        "outputS3Bucket": BUCKET,
        "outputS3KeyPrefix": "tasks",
        "action": openqasm(BELL),
    }
    return cloud.braket.create_quantum_task(**{**request, **members})["quantumTaskArn"]


def wait(cloud: Cloud, arn: str, *statuses: str) -> Any:
    pause = threading.Event()
    for _ in range(6000):
        task = cloud.braket.get_quantum_task(quantumTaskArn=arn)
        if task["status"] in statuses:
            return task
        pause.wait(0.01)
    raise AssertionError(f"{arn} stayed {task}")


def session(cloud: Cloud, aws: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> AwsSession:
    for name, value in {**aws, "AWS_ENDPOINT_URL_BRAKET": cloud.url}.items():
        monkeypatch.setenv(name, value)
    return AwsSession(boto_session=boto3.Session(region_name=REGION), default_bucket=BUCKET)


def test_a_task_is_computed_and_its_result_is_stored(cloud: Cloud, aws: dict[str, str]) -> None:
    arn = create(cloud, tags={"team": "optimisation"})
    task = wait(cloud, arn, "COMPLETED", "FAILED")
    assert task["status"] == "COMPLETED", task
    assert task["numSuccessfulShots"] == 100
    assert task["outputS3Directory"] == f"tasks/{arn.rsplit('/', 1)[1]}"
    assert task["actionMetadata"] == {"actionType": "braket.ir.openqasm.program"}
    assert task["createdAt"] <= task["endedAt"]
    key = f"{task['outputS3Directory']}/results.json"
    result = json.load(emulated_client("s3", aws).get_object(Bucket=BUCKET, Key=key)["Body"])
    assert result["taskMetadata"]["id"] == arn
    assert result["taskMetadata"]["deviceId"] == SV1
    assert all(first == second for first, second in result["measurements"])
    assert cloud.braket.list_tags_for_resource(resourceArn=arn)["tags"] == {"team": "optimisation"}
    assert cloud.published(arn) == ["QUEUED", "RUNNING", "COMPLETED"]


def test_the_sdks_devices_run_circuits_and_return_exact_values(
    cloud: Cloud, aws: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    braket = session(cloud, aws, monkeypatch)
    simulator = AwsDevice(Devices.Amazon.SV1, aws_session=braket)
    assert simulator.properties.paradigm.qubitCount == 34
    bell = Circuit().h(0).cnot(0, 1)
    exact = simulator.run(bell.copy().expectation(Observable.Z() @ Observable.Z(), target=[0, 1]), shots=0)
    assert exact.result().values[0] == pytest.approx(1.0)
    counts = simulator.run(bell, shots=50).result().measurement_counts
    assert sum(counts.values()) == 50
    assert set(counts) <= {"00", "11"}
    noisy = Circuit().x(0).bit_flip(0, 0.25).expectation(Observable.Z(), target=0)
    mixed = AwsDevice(Devices.Amazon.DM1, aws_session=braket).run(noisy, shots=0)
    assert mixed.result().values[0] == pytest.approx(-0.5)
    assert simulator.queue_depth().jobs == "0"


def test_a_task_with_a_job_token_belongs_to_its_job_and_is_found_by_it(cloud: Cloud) -> None:
    job = cloud.create()
    token = cloud.job(job).run.aws_environment["AMZN_BRAKET_JOB_TOKEN"]
    of_job = create(cloud, jobToken=token, outputS3KeyPrefix="jobs/qaoa-18/tasks")
    create(cloud)
    assert cloud.braket.get_quantum_task(quantumTaskArn=of_job)["jobArn"] == job
    filters: Any = [{"name": "jobArn", "operator": "EQUAL", "values": [job]}]
    found = cloud.braket.search_quantum_tasks(filters=filters)["quantumTasks"]
    assert [task["quantumTaskArn"] for task in found] == [of_job]
    with pytest.raises(ClientError, match="token of a running job"):
        create(cloud, jobToken="invented")
    cloud.job(job).finish()
    cloud.wait(job, "COMPLETED")
    with pytest.raises(ClientError, match="token of a running job"):
        create(cloud, jobToken=token)


def test_a_program_that_cannot_be_simulated_fails_with_its_reason_and_the_next_one_runs(cloud: Cloud) -> None:
    failed = wait(cloud, create(cloud, action=openqasm("OPENQASM 3.0;\nqubit[1] q;\nnosuchgate q[0];\n")), "FAILED")
    assert "nosuchgate" in failed["failureReason"]
    huge = wait(cloud, create(cloud, action=openqasm("OPENQASM 3.0;\nqubit[34] q;\nh q[0];\n")), "FAILED")
    assert "34 qubits on SV1 need 1024.0 GiB" in huge["failureReason"]
    missing = wait(cloud, create(cloud, outputS3Bucket="amazon-braket-absent"), "FAILED")
    assert "NoSuchBucket" in missing["failureReason"]
    wait(cloud, create(cloud), "COMPLETED")


def test_running_and_waiting_tasks_can_be_cancelled_and_ended_ones_cannot(cloud: Cloud) -> None:
    running, waiting = create(cloud, action=openqasm(LONG), shots=0), create(cloud, action=openqasm(LONG), shots=0)
    wait(cloud, running, "RUNNING")
    queue = cloud.braket.get_quantum_task(quantumTaskArn=waiting, additionalAttributeNames=["QueueInfo"])["queueInfo"]
    assert (queue["position"], queue["queuePriority"]) == ("1", "Normal")
    assert (
        cloud.braket.cancel_quantum_task(quantumTaskArn=waiting, clientToken="w")["cancellationStatus"] == "CANCELLED"
    )
    cloud.braket.cancel_quantum_task(quantumTaskArn=running, clientToken="r")
    wait(cloud, running, "CANCELLED")
    done = create(cloud)
    wait(cloud, done, "COMPLETED")
    with pytest.raises(ClientError) as error:
        cloud.braket.cancel_quantum_task(quantumTaskArn=done, clientToken="d")
    assert error.value.response["Error"]["Code"] == "ConflictException"


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"action": "h q"}, "'action'"),
        ({"action": "{}"}, "braketSchemaHeader"),
        (
            {"action": json.dumps({"braketSchemaHeader": {"name": "braket.ir.ahs.program"}})},
            "runs programs of the kinds",
        ),
        ({"action": openqasm("OPENQASM 3.0;\nqubit[35] q;\n")}, "34 qubits"),
        ({"shots": 100_001}, "at most 100000 shots"),
        ({"outputS3Bucket": "my-results"}, "begins with amazon-braket-"),
        ({"deviceArn": "arn:aws:braket:::device/quantum-simulator/amazon/sv2"}, "no Braket device"),
    ],
)
def test_requests_that_the_service_would_refuse_are_refused(cloud: Cloud, members: Any, told: str) -> None:
    with pytest.raises(ClientError, match=told) as error:
        create(cloud, **members)
    assert error.value.response["Error"]["Code"] == "ValidationException"


def test_hardware_answers_as_for_an_account_without_access(cloud: Cloud) -> None:
    calls: list[Callable[[BraketClient], object]] = [
        lambda client: client.get_device(deviceArn=FORTE),
        lambda client: create(cloud, deviceArn=FORTE),
    ]
    for call in calls:
        with pytest.raises(ClientError, match="not authorized") as error:
            call(cloud.braket)
        assert error.value.response["Error"]["Code"] == "AccessDeniedException"


def test_devices_are_found_and_unknown_ones_are_not(cloud: Cloud) -> None:
    names = [device["deviceName"] for device in cloud.braket.search_devices(filters=[])["devices"]]
    assert {"SV1", "DM1"} <= set(names)
    filters: Any = [{"name": "deviceArn", "values": [DM1]}]
    assert [device["deviceName"] for device in cloud.braket.search_devices(filters=filters)["devices"]] == ["DM1"]
    with pytest.raises(ClientError) as error:
        cloud.braket.get_device(deviceArn="arn:aws:braket:::device/quantum-simulator/amazon/sv2")
    assert error.value.response["Error"]["Code"] == "ResourceNotFoundException"


def test_tasks_survive_a_restart(cloud: Cloud) -> None:
    running, waiting = create(cloud, action=openqasm(LONG), shots=0), create(cloud)
    wait(cloud, running, "RUNNING")
    cloud.restart()
    failed = wait(cloud, running, "FAILED")
    assert "endpoint was stopped" in failed["failureReason"]
    wait(cloud, waiting, "COMPLETED")


def test_a_simulating_process_ends_with_its_parent_even_while_it_computes() -> None:
    command = [sys.executable, "-m", "hybridjobs.local.braket.simulator_worker"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps({"device": "SV1", "action": openqasm(LONG), "shots": 0}) + "\n")
    process.stdin.close()
    assert process.wait(60) == 0


def test_one_client_token_makes_one_task(cloud: Cloud) -> None:
    first = create(cloud, clientToken="one")
    assert create(cloud, clientToken="one") == first
    with pytest.raises(ClientError, match="used before"):
        create(cloud, clientToken="one", shots=7)
    with pytest.raises(ClientError) as error:
        cloud.braket.get_quantum_task(quantumTaskArn=f"arn:aws:braket:{REGION}:{ACCOUNT}:quantum-task/unknown")
    assert error.value.response["Error"]["Code"] == "ResourceNotFoundException"
