"""One job from Create to its record, and what Delete does at each point of the way."""

from __future__ import annotations

import pytest

from launches import State
from tests.unit.lambdas.stage import Stage, document_of, name_of, properties_of


def test_a_created_job_runs_and_its_record_is_published(stage: Stage) -> None:
    answer = stage.launch(stage.event("Create", properties_of()))
    name = name_of(properties_of())
    assert answer == {
        "PhysicalResourceId": name,
        "Data": {"JobName": name, "OutputUri": f"s3://{stage.bucket}/jobs/{name}/data", "State": "STARTED"},
    }
    stage.braket.run(name)
    stage.clock.pass_time(125)
    stage.save_results(name, {"cost": -20.5, "iterations": 5, "optimum": float("nan")}, first={"model.bin": b"x" * 999})
    arn = stage.braket.end(name, "COMPLETED", billable=125)
    stage.changed(arn)
    record = stage.record(name)
    assert record["status"] == "COMPLETED"
    assert record["results"] == {"cost": -20.5, "iterations": 5, "optimum": None}
    assert record["billable_seconds"] == 125
    assert record["cost_usd"] == pytest.approx(0.00768 * 125 / 60)
    assert record["worst_case_usd"] == pytest.approx(0.00768 * 60)
    assert stage.ledger(name).state is State.COMPLETED
    assert stage.services.ledger.open_launches() == []


def test_deleting_a_running_job_cancels_it(stage: Stage) -> None:
    name = stage.create()
    stage.launch(stage.event("Delete", properties_of(), physical_id=name))
    assert [job["status"] for job in stage.braket.jobs.values()] == ["CANCELLING"]


def test_a_job_that_finds_no_place_waits_and_starts_when_another_ends(stage: Stage) -> None:
    names = [stage.create(properties_of(document_of(f"job-{n}")), logical_id=f"Job{n}") for n in range(5)]
    assert [stage.ledger(name).state for name in names] == ["STARTED"] * 3 + ["PENDING"] * 2
    stage.changed(stage.braket.end(names[1], "FAILED", reason="AlgorithmError: x, exit code: 1"))
    assert [stage.ledger(name).state for name in names] == ["STARTED", "FAILED", "STARTED", "STARTED", "PENDING"]
    stage.launch(stage.event("Delete", properties_of(document_of("job-4")), physical_id=names[4], logical_id="Job4"))
    assert stage.ledger(names[4]).state is State.WITHDRAWN
    assert not stage.braket.named(names[4])


def test_an_unknown_physical_id_is_deleted_without_a_trace_of_a_job(stage: Stage) -> None:
    stage.launch(stage.event("Delete", properties_of(), physical_id="HybridJobs-local-Jobs-JobA-1ABCDEFGHIJKL"))
    assert "CreateJob" not in stage.braket.calls
