"""The life of jobs, driven through boto3 alone."""

import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hybridjobs.local.braket.endpoint import EndpointSettings
from tests.local.braket.fake_cloud import ACCOUNT, REGION, VALID_REQUEST, Cloud, changed, code_of
from tests.local.braket.fake_runner import FakeRunner

StartCloud = Callable[..., Cloud]


def test_a_job_is_queued_runs_and_completes_with_its_events_and_times(cloud: Cloud) -> None:
    arn = cloud.create()
    assert arn.startswith(f"arn:aws:braket:{REGION}:{ACCOUNT}:job/")
    cloud.job(arn)
    running = cloud.wait(arn, "RUNNING")
    assert "endedAt" not in running
    assert "billableDuration" not in running
    cloud.job(arn).finish()
    done = cloud.wait(arn, "COMPLETED")
    assert [event["eventType"] for event in done["events"]] == [
        "QUEUED_FOR_EXECUTION",
        "STARTING_INSTANCE",
        "DOWNLOADING_DATA",
        "RUNNING",
        "COMPLETED",
    ]
    times = [event["timeOfEvent"] for event in done["events"]]
    assert times == sorted(times)
    assert done["createdAt"] <= done["startedAt"] <= done["endedAt"]
    assert done["billableDuration"] >= 0
    assert "failureReason" not in done
    assert cloud.published(arn) == ["QUEUED", "RUNNING", "COMPLETED"]


def test_get_job_answers_the_request_with_the_defaults_filled_in(cloud: Cloud) -> None:
    request = changed("stoppingCondition", None, changed("instanceConfig.instanceCount", None))
    request["checkpointConfig"].pop("localPath")
    described = cloud.braket.get_job(jobArn=cloud.create(request))
    for member in ("jobName", "roleArn", "algorithmSpecification", "inputDataConfig", "outputDataConfig", "tags"):
        assert described[member] == request[member]
    assert described["instanceConfig"]["instanceCount"] == 1
    assert described["stoppingCondition"] == {"maxRuntimeInSeconds": 432_000}
    assert described["checkpointConfig"]["localPath"] == "/opt/braket/checkpoints/"
    assert "queueInfo" not in described


def test_the_runner_gets_the_accepted_request_and_a_token_for_quantum_tasks(start_cloud: StartCloud) -> None:
    cloud = start_cloud(aws_environment={"AWS_REGION": REGION})
    arn = cloud.create()
    run = cloud.job(arn).run
    assert run.job_arn == arn
    assert run.job_id == arn.rsplit("/", 1)[1]
    assert run.request["hyperParameters"] == VALID_REQUEST["hyperParameters"]
    assert run.folder.is_dir()
    assert run.aws_environment["AWS_REGION"] == REGION
    assert run.aws_environment["AMZN_BRAKET_JOB_TOKEN"]


def test_a_failed_job_says_why_in_at_most_1024_characters(cloud: Cloud) -> None:
    arn = cloud.create()
    cloud.job(arn).finish("AlgorithmError: ValueError: " + "x" * 5000)
    failed = cloud.wait(arn, "FAILED")
    assert failed["failureReason"].startswith("AlgorithmError: ValueError: xxx")
    assert len(failed["failureReason"]) == 1024
    assert failed["events"][-1]["eventType"] == "FAILED"
    assert cloud.published(arn)[-1] == "FAILED"


def test_a_runner_that_fails_to_start_makes_a_failed_job_and_the_next_one_still_runs(start_cloud: StartCloud) -> None:
    runner = FakeRunner(start_error=OSError("no space left on device"))
    cloud = start_cloud(runner=runner)
    assert "no space left on device" in cloud.wait(cloud.create(), "FAILED")["failureReason"]
    runner.start_error = None
    arn = cloud.create()
    cloud.job(arn).finish()
    cloud.wait(arn, "COMPLETED")


def test_cancelling_a_running_job_ends_its_processes_first(cloud: Cloud) -> None:
    arn = cloud.create()
    job = cloud.job(arn)
    cloud.wait(arn, "RUNNING")
    answer = cloud.braket.cancel_job(jobArn=arn)
    assert (answer["jobArn"], answer["cancellationStatus"]) == (arn, "CANCELLING")
    cancelled = cloud.wait(arn, "CANCELLED")
    assert job.stopped.is_set()
    assert "failureReason" not in cancelled
    assert cancelled["events"][-1]["eventType"] == "CANCELLED"
    assert cloud.published(arn) == ["QUEUED", "RUNNING", "CANCELLING", "CANCELLED"]
    assert cloud.braket.cancel_job(jobArn=arn)["cancellationStatus"] == "CANCELLED"


def test_a_job_that_waits_is_cancelled_without_ever_starting(start_cloud: StartCloud) -> None:
    cloud = start_cloud(settings=EndpointSettings(max_workers=1))
    first, second = cloud.create_many(2)
    cloud.job(first)
    assert cloud.braket.cancel_job(jobArn=second)["cancellationStatus"] == "CANCELLED"
    cloud.job(first).finish()
    cloud.wait(first, "COMPLETED")
    cancelled = cloud.wait(second, "CANCELLED")
    assert "startedAt" not in cancelled
    assert isinstance(cloud.runner, FakeRunner)
    assert second not in cloud.runner.jobs


def test_a_job_that_has_ended_cannot_be_cancelled(cloud: Cloud) -> None:
    arn = cloud.create()
    cloud.job(arn).finish()
    cloud.wait(arn, "COMPLETED")
    with pytest.raises(ClientError) as error:
        cloud.braket.cancel_job(jobArn=arn)
    assert code_of(error) == ("ConflictException", 409)
    assert cloud.status(arn) == "COMPLETED"


def test_a_job_over_its_maximum_runtime_is_ended_and_fails(cloud: Cloud) -> None:
    arn = cloud.create(stoppingCondition={"maxRuntimeInSeconds": 1})
    failed = cloud.wait(arn, "FAILED")
    assert cloud.job(arn).stopped.is_set()
    assert failed["failureReason"].startswith("MAX_RUNTIME_EXCEEDED")
    assert [event["eventType"] for event in failed["events"]][-2:] == ["MAX_RUNTIME_EXCEEDED", "FAILED"]


def test_queue_positions_are_told_on_request_and_only_while_waiting(start_cloud: StartCloud) -> None:
    cloud = start_cloud(
        settings=EndpointSettings(max_workers=1, max_concurrent_jobs=30, instance_quotas={"ml.m5.large": 30})
    )
    arns = cloud.create_many(18)
    cloud.job(arns[0])
    cloud.wait(arns[0], "RUNNING")

    def queue_info(arn: str) -> Any:
        return cloud.braket.get_job(jobArn=arn, additionalAttributeNames=["QueueInfo"])["queueInfo"]

    assert queue_info(arns[1]) == {"queue": "JOBS_QUEUE", "position": "1"}
    assert queue_info(arns[15])["position"] == "15"
    assert queue_info(arns[16])["position"] == ">15"
    running = queue_info(arns[0])
    assert running["position"] == "None"
    assert "Job is in RUNNING status" in running["message"]


def test_over_the_limit_of_concurrent_jobs_create_job_is_refused_until_one_has_ended(cloud: Cloud) -> None:
    arns = cloud.create_many(3)
    with pytest.raises(ClientError, match="quota of concurrent hybrid jobs is 3") as error:
        cloud.create(jobName="one-too-many")
    assert code_of(error) == ("ServiceQuotaExceededException", 402)
    cloud.job(arns[0]).finish()
    cloud.wait(arns[0], "COMPLETED")
    cloud.create(jobName="fits-now")


def test_no_more_jobs_than_workers_run_at_once_and_none_is_lost(start_cloud: StartCloud) -> None:
    quotas = {"ml.m5.large": 100}
    cloud = start_cloud(
        runner=FakeRunner(finish_at_once=True),
        settings=EndpointSettings(max_workers=2, max_concurrent_jobs=100, instance_quotas=quotas),
    )
    arns = cloud.create_many(60)
    for arn in arns:
        cloud.wait(arn, "COMPLETED")
    assert isinstance(cloud.runner, FakeRunner)
    assert cloud.runner.most_at_once <= 2


def test_instances_are_counted_against_the_quota_of_their_type(cloud: Cloud) -> None:
    cloud.create(instanceConfig={"instanceType": "ml.g6.24xlarge", "volumeSizeInGb": 30})
    with pytest.raises(ClientError, match=r"ml.g6.24xlarge.*quota is 1") as error:
        cloud.create(instanceConfig={"instanceType": "ml.g6.24xlarge", "volumeSizeInGb": 30})
    assert code_of(error) == ("ServiceQuotaExceededException", 402)
    with pytest.raises(ClientError, match=r"instanceConfig.instanceCount.*at most 5") as error:
        cloud.create(instanceConfig={"instanceType": "ml.m5.large", "volumeSizeInGb": 30, "instanceCount": 6})
    assert code_of(error) == ("ServiceQuotaExceededException", 402)


def test_one_client_token_makes_one_job_even_when_sent_at_the_same_time(cloud: Cloud) -> None:
    arns: list[str] = []
    threads = [threading.Thread(target=lambda: arns.append(cloud.create(clientToken="one"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(arns) == 8
    assert len(set(arns)) == 1
    cloud.job(arns[0]).finish()
    cloud.wait(arns[0], "COMPLETED")
    assert cloud.create(clientToken="one") == arns[0]


def test_a_client_token_with_another_body_is_a_conflict(cloud: Cloud) -> None:
    arn = cloud.create(clientToken="token")
    with pytest.raises(ClientError, match="clientToken 'token' was used before") as error:
        cloud.create(clientToken="token", hyperParameters={"p": "3"})
    assert code_of(error) == ("ConflictException", 409)
    assert arn in str(error.value)


def test_an_unknown_job_is_not_found_and_a_malformed_arn_is_refused(cloud: Cloud) -> None:
    for call in (cloud.braket.get_job, cloud.braket.cancel_job):
        with pytest.raises(ClientError) as error:
            call(jobArn=f"arn:aws:braket:{REGION}:{ACCOUNT}:job/unknown")
        assert code_of(error) == ("ResourceNotFoundException", 404)
        with pytest.raises(ClientError, match="jobArn") as error:
            call(jobArn="qaoa-18")
        assert code_of(error) == ("ValidationException", 400)


def test_tags_can_be_added_listed_and_removed(cloud: Cloud) -> None:
    arn = cloud.create()
    cloud.braket.tag_resource(resourceArn=arn, tags={"stage": "local", "team": "chemistry"})
    assert cloud.braket.list_tags_for_resource(resourceArn=arn)["tags"] == {"team": "chemistry", "stage": "local"}
    cloud.braket.untag_resource(resourceArn=arn, tagKeys=["team", "absent"])
    assert cloud.braket.get_job(jobArn=arn)["tags"] == {"stage": "local"}
    with pytest.raises(ClientError, match="aws: is reserved"):
        cloud.braket.tag_resource(resourceArn=arn, tags={"aws:stack": "x"})
    with pytest.raises(ClientError, match="at most 50 tags"):
        cloud.braket.tag_resource(resourceArn=arn, tags={f"key{n}": "" for n in range(50)})
    with pytest.raises(ClientError) as error:
        cloud.braket.list_tags_for_resource(resourceArn=f"arn:aws:braket:{REGION}:{ACCOUNT}:job/unknown")
    assert code_of(error) == ("ResourceNotFoundException", 404)


def test_an_event_that_the_bus_refuses_is_delivered_later_even_after_a_restart(cloud: Cloud) -> None:
    cloud.refuse_events.set()
    arn = cloud.create()
    cloud.job(arn).finish()
    cloud.wait(arn, "COMPLETED")
    cloud.restart()
    assert cloud.events == []
    cloud.refuse_events.clear()
    assert cloud.published(arn) == ["QUEUED", "RUNNING", "COMPLETED"]
    event = cloud.events[-1]
    assert (event["Source"], event["DetailType"]) == ("aws.braket", "Braket Job State Change")
    assert json.loads(event["Detail"])["jobArn"] == arn
    assert isinstance(event["Time"], datetime)


def test_after_a_restart_ended_jobs_are_unchanged_running_ones_failed_and_waiting_ones_run(
    start_cloud: StartCloud,
) -> None:
    cloud = start_cloud(settings=EndpointSettings(max_workers=1))
    ended, running, waiting = cloud.create_many(3)
    cloud.job(ended).finish()
    before = cloud.wait(ended, "COMPLETED")
    cloud.job(running)
    cloud.wait(running, "RUNNING")
    cloud.restart()
    after = cloud.braket.get_job(jobArn=ended)
    assert {k: v for k, v in after.items() if k != "ResponseMetadata"} == {
        k: v for k, v in before.items() if k != "ResponseMetadata"
    }
    failed = cloud.braket.get_job(jobArn=running)
    assert failed["status"] == "FAILED"
    assert "endpoint was stopped" in failed["failureReason"]
    cloud.job(waiting).finish()
    cloud.wait(waiting, "COMPLETED")


def test_stopping_the_endpoint_ends_every_job(cloud: Cloud) -> None:
    arns = cloud.create_many(2)
    jobs = [cloud.job(arn) for arn in arns]
    cloud.stop()
    assert all(job.stopped.is_set() for job in jobs)


def test_requests_that_are_not_signed_are_refused_and_the_listener_is_on_loopback_only(cloud: Cloud) -> None:
    request = urllib.request.Request(f"{cloud.url}/jobs", data=b'{"filters": []}', method="POST")
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(request)
    assert error.value.code == 403
    assert error.value.headers["x-amzn-ErrorType"] == "MissingAuthenticationTokenException"
    host, port = cloud.url.removeprefix("http://").split(":")
    assert host == "127.0.0.1"
    with socket.socket() as other, pytest.raises(OSError, match="refused"):
        other.connect(("127.0.0.2", int(port)))


def test_an_operation_that_is_not_built_says_so_by_name(cloud: Cloud) -> None:
    with pytest.raises(ClientError, match="SearchSpendingLimits is not implemented") as error:
        cloud.braket.search_spending_limits()
    assert code_of(error) == ("NotImplementedException", 501)
