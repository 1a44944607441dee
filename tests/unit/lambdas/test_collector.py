"""From the event of an ended job to its record: whatever comes twice, late, early or broken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from collect_result.handler import CollectError
from launches import Released, State
from tests.unit.lambdas.faults import Killed
from tests.unit.lambdas.stage import PRICE, STACK, Stage, document_of, properties_of, tar_gz

RECORD_KEYS = {
    "schema", "job_name", "job_arn", "status", "reason", "log_tail", "stage", "spec", "spec_hash", "stack_id",
    "logical_id", "run", "device", "instance", "image_digest", "created_at", "started_at", "ended_at",
    "billable_seconds", "price", "cost_usd", "worst_case_usd", "results", "source_sha256",
}  # fmt: skip


def record_bytes(stage: Stage, name: str) -> bytes:
    return bytes(stage.clients.s3.get_object(Bucket=stage.bucket, Key=f"records/{name}.json")["Body"].read())


def put_archive(stage: Stage, name: str, content: bytes) -> None:
    stage.clients.s3.put_object(Bucket=stage.bucket, Key=f"jobs/{name}/data/output/model.tar.gz", Body=content)


def print_lines(stage: Stage, name: str, host: int, lines: list[tuple[float, str]]) -> None:
    stream = f"{name}/{stage.braket.arn(name).rpartition('/')[2]}/algo-{host}/1700000000"
    stage.clients.logs.create_log_stream(logGroupName="/aws/braket/jobs", logStreamName=stream)
    start = int(stage.clock.moment.timestamp() * 1000)
    stage.clients.logs.put_log_events(
        logGroupName="/aws/braket/jobs",
        logStreamName=stream,
        logEvents=[{"timestamp": start + int(at * 1000), "message": message} for at, message in lines],
    )


def test_a_record_says_what_ran_for_how_long_and_for_how_much(stage: Stage) -> None:
    name = stage.create()
    stage.clock.pass_time(30)
    stage.braket.run(name)
    stage.clock.pass_time(600)
    stage.save_results(name, {"cost": -20.0})
    arn = stage.braket.end(name, "COMPLETED", billable=601)
    stage.changed(arn)
    record = stage.record(name)
    assert set(record) == RECORD_KEYS
    assert record["schema"] == "hybrid-jobs/record/1"
    assert record["job_arn"] == arn
    assert (record["stage"], record["stack_id"], record["logical_id"], record["run"]) == ("local", STACK, "JobA", "1")
    assert record["spec"] == document_of()
    assert record["instance"] == {"type": "ml.m5.2xlarge", "count": 1, "volume_gb": 30}
    assert record["price"] == PRICE
    assert record["source_sha256"] == document_of()["source"]["sha256"]
    assert record["log_tail"] == []
    assert record["reason"] is None
    assert record["created_at"] < record["started_at"] < record["ended_at"]
    assert record["cost_usd"] == pytest.approx(0.00768 * 601 / 60)


def test_a_failed_job_has_its_reason_and_its_last_fifty_lines(stage: Stage) -> None:
    name = stage.create()
    print_lines(stage, name, 1, [(n, f"line {n}") for n in range(80)])
    print_lines(stage, name, 2, [(79.5, "the other host")])
    stage.changed(stage.braket.end(name, "FAILED", reason="AlgorithmError: ValueError: no, exit code: 1"), "FAILED")
    record = stage.record(name)
    assert record["reason"] == "AlgorithmError: ValueError: no, exit code: 1"
    assert record["log_tail"] == [f"line {n}" for n in range(31, 80)] + ["the other host"]
    assert record["results"] is None
    assert stage.ledger(name).reason == record["reason"]


def test_a_job_that_failed_without_a_reason_says_where_to_look(stage: Stage) -> None:
    name = stage.create()
    stage.changed(stage.braket.end(name, "FAILED"))
    assert "log_tail" in stage.record(name)["reason"]


@pytest.mark.parametrize("status", ["COMPLETED", "FAILED", "CANCELLED"])
def test_events_that_come_twice_and_the_sweep_leave_the_first_record(stage: Stage, status: str) -> None:
    name = stage.create()
    stage.save_results(name, {"a": 1})
    arn = stage.braket.end(name, status)
    stage.changed(arn)
    first = record_bytes(stage, name)
    print_lines(stage, name, 1, [(0, "a line that came late")])
    stage.clock.pass_time(100)
    for _ in range(2):
        stage.changed(arn, "FAILED")
        stage.sweep()
    assert record_bytes(stage, name) == first
    assert stage.ledger(name).state == status


def test_a_record_that_was_written_before_the_function_died_is_kept_and_the_launch_closed(stage: Stage) -> None:
    name = stage.create()
    arn = stage.braket.end(name, "COMPLETED")

    def kill(operation: str, _: int) -> None:
        if operation == "PutObject":
            stage.plan.heal()
            raise Killed

    stage.plan.after = kill
    with pytest.raises(Killed):
        stage.changed(arn)
    first = record_bytes(stage, name)
    assert stage.ledger(name).state is State.STARTED
    stage.sweep()
    assert record_bytes(stage, name) == first
    assert stage.ledger(name).state is State.COMPLETED


def test_an_event_before_the_start_is_written_down_closes_the_launch(stage: Stage) -> None:
    """The job ends while the dispatcher is still between CreateJob and its note of it."""

    def end(operation: str, _: int) -> None:
        if operation == "CreateJob":
            stage.plan.heal()
            (job,) = stage.braket.jobs.values()
            stage.changed(stage.braket.end(job["jobName"], "FAILED", reason="too quick"))

    stage.plan.after = end
    answer = stage.launch(stage.event("Create", properties_of()))
    assert answer["Data"]["State"] == "FAILED"
    assert stage.record(answer["PhysicalResourceId"])["reason"] == "too quick"


def test_an_event_of_a_running_job_makes_no_record(stage: Stage) -> None:
    name = stage.create()
    stage.braket.run(name)
    assert stage.changed(stage.braket.arn(name), "COMPLETED") == {"job_arn": stage.braket.arn(name), "ended": False}
    assert stage.ledger(name).state is State.STARTED


def test_an_event_finds_the_launch_that_died_in_the_middle_of_its_start(stage: Stage) -> None:
    name = stage.create()
    launch = stage.ledger(name)
    stage.services.ledger.replace(launch.moved(State.STARTING, launch.updated_at, job_arn=None))
    stage.changed(stage.braket.arn(name), "QUEUED")
    assert stage.ledger(name).job_arn == stage.braket.arn(name)
    assert stage.ledger(name).state is State.STARTED


def test_an_event_of_a_job_that_nobody_wants_ends_it(stage: Stage) -> None:
    name = stage.create()
    launch = stage.ledger(name)
    stage.services.ledger.replace(
        launch.moved(State.WITHDRAWN, launch.updated_at, job_arn=None, released=Released.DELETED)
    )
    stage.changed(stage.braket.arn(name), "RUNNING")
    assert stage.braket.active() == []
    assert stage.ledger(name).is_open, "until it has really ended it holds a place"


def test_jobs_of_others_are_left_alone(stage: Stage) -> None:
    name = stage.create()
    arn = stage.braket.end(name, "COMPLETED")
    stage.clients.dynamodb.delete_item(TableName=stage.table, Key={"kind": {"S": "launch"}, "name": {"S": name}})
    assert stage.changed(arn)["ended"] is False
    assert stage.changed("arn:aws:braket:us-east-1:000000000000:job/unknown")["ended"] is False


@pytest.mark.parametrize("event", [{}, {"detail": {"jobArn": 3}}, {"detail": {"jobArn": "arn:aws:s3:::x"}}])
def test_an_event_that_names_no_job_goes_to_the_dead_letters(stage: Stage, event: dict[str, Any]) -> None:
    with pytest.raises(CollectError, match="is not a job's ARN"):
        stage.collect(event)


def test_the_arn_may_stand_in_the_resources_only(stage: Stage) -> None:
    name = stage.create()
    arn = stage.braket.end(name, "COMPLETED")
    assert stage.collect({"detail-type": "Braket Job State Change", "detail": {}, "resources": [arn]})["ended"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "there is no model.tar.gz"),
        (b"not an archive", "model.tar.gz can't be read"),
        (tar_gz({"results.json": b"{" * 20})[:-30], "model.tar.gz can't be read"),
        (tar_gz({"model.bin": b"x"}), "never called save_job_result"),
        (tar_gz({"results.json": b"{"}), "is not JSON"),
        (tar_gz({"results.json": b"[" * 100_000}), "is not JSON"),
        (tar_gz({"results.json": b"[1]"}), "no dataDictionary"),
        (tar_gz({"results.json": b'{"dataDictionary": {"a": "gASV"}, "dataFormat": "pickled_v4"}'}), "never loaded"),
        (tar_gz({"results.json": b" " * (16 * 1024 * 1024 + 1)}), "16777217 bytes"),
    ],
    # An archive carries its time: named by its bytes, a case would have another name in each of the runner's processes.
    ids=["absent", "no archive", "cut off", "no results", "no JSON", "too deep", "no data", "pickled", "too large"],
)
def test_results_that_cannot_be_used_leave_a_record_that_says_why(
    stage: Stage, content: bytes | None, reason: str
) -> None:
    name = stage.create()
    if content is not None:
        put_archive(stage, name, content)
    stage.changed(stage.braket.end(name, "COMPLETED"))
    record = stage.record(name)
    assert (record["status"], record["results"]) == ("COMPLETED", None)
    assert reason in record["reason"]


def test_results_may_lie_behind_a_dot_and_behind_other_files(stage: Stage) -> None:
    name = stage.create()
    data = rb'{"loss": NaN, "best": Infinity, "far": 1e999, "text": "\u00e9", "half": "\ud800"}'
    document = b'{"dataDictionary": ' + data + b', "dataFormat": "plaintext"}'
    put_archive(stage, name, tar_gz({"./checkpoints/results.json": b"no", "./results.json": document}))
    stage.changed(stage.braket.end(name, "COMPLETED"))
    assert stage.record(name)["results"] == {
        "loss": None,
        "best": None,
        "far": None,
        "text": "é",
        "half": "\ufffd",
    }


def test_a_connection_that_breaks_while_the_results_are_read_is_no_result(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = stage.create()
    stage.save_results(name, {"a": 1})
    arn = stage.braket.end(name, "COMPLETED")

    class Broken:
        def read(self, *_: Any) -> bytes:
            raise ConnectionResetError

        def __enter__(self) -> Broken:
            return self

        def __exit__(self, *_: object) -> None: ...

    with monkeypatch.context() as patch:
        patch.setattr("aws.artifacts.Artifacts.open", lambda *_: Broken())
        with pytest.raises(ConnectionResetError):
            stage.changed(arn)
    stage.changed(arn)
    assert stage.record(name)["results"] == {"a": 1}


def test_the_sweep_finds_what_no_event_told_of_and_goes_on_after_a_failure(stage: Stage) -> None:
    names = [stage.create(properties_of(document_of(f"job-{n}")), logical_id=f"Job{n}") for n in range(3)]
    for name in names:
        stage.braket.end(name, "COMPLETED")
    stage.plan.refuse("GetJob", "InternalServiceException", times=1)
    with pytest.raises(CollectError, match=names[0]):
        stage.sweep()
    assert [stage.ledger(name).state for name in names] == ["STARTED", "COMPLETED", "COMPLETED"]
    stage.plan.heal()
    stage.sweep()
    assert stage.ledger(names[0]).state is State.COMPLETED


def test_a_job_that_braket_has_forgotten_does_not_hold_its_place(stage: Stage) -> None:
    name = stage.create()
    stage.braket.jobs.clear()
    stage.sweep()
    assert stage.ledger(name).state is State.STARTED, "what was made a moment ago may not be seen everywhere yet"
    stage.clock.pass_time(121)
    stage.sweep()
    assert stage.ledger(name).state is State.FAILED
    assert "does not know" in (stage.ledger(name).reason or "")


def test_a_job_that_is_still_found_by_its_name_is_not_forgotten(stage: Stage) -> None:
    name = stage.create()
    stage.clock.pass_time(121)
    stage.plan.refuse("GetJob", "ResourceNotFoundException", times=1)
    stage.sweep()
    assert stage.ledger(name).state is State.STARTED
    stage.launch(stage.event("Delete", properties_of(), physical_id=name))
    assert stage.braket.active() == []


@pytest.mark.parametrize("half", [b"", b'{"schema": "hybrid-jobs/rec', b"[]", b"\xff"])
def test_half_a_record_is_no_record(stage: Stage, half: bytes) -> None:
    name = stage.create()
    stage.clients.s3.put_object(Bucket=stage.bucket, Key=f"records/{name}.json", Body=half)
    stage.save_results(name, {"a": 1})
    stage.changed(stage.braket.end(name, "COMPLETED"))
    assert stage.record(name)["results"] == {"a": 1}


def test_the_sweep_cancels_again_what_a_delete_could_not(stage: Stage) -> None:
    name = stage.create()
    launch = stage.ledger(name)
    stage.services.ledger.replace(launch.moved(State.STARTED, launch.updated_at, released=Released.DELETED))
    stage.sweep()
    assert stage.braket.active() == []


# Metrics.


def test_an_end_is_counted_once_however_often_it_is_told(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    name = stage.create()
    arn = stage.braket.end(name, "COMPLETED", billable=60)
    capsys.readouterr()
    for _ in range(3):
        stage.changed(arn)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    metrics = [line for line in lines if "_aws" in line]
    assert len(metrics) == 1
    (metric,) = metrics
    assert metric["JobsCompleted"] == 1
    assert metric["CostUsd"] == pytest.approx(0.00768)
    assert metric["BillableSeconds"] == 60
    assert metric["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "HybridJobs"
    assert metric["_aws"]["Timestamp"] == int(stage.clock.moment.timestamp() * 1000)
    # The dashboard finds a job's time and cost by these dimensions.
    assert metric["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["stage"], ["stage", "device", "job"]]
    assert (metric["job"], metric["device"]) == ("qaoa-18-cpu", "local:pennylane/lightning.qubit")
