"""The summary of a benchmark run: once, when all have ended, the same whoever ends last."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from hybridjobs.schemas.documents import BenchmarkSummary
from launches import State
from tests.unit.lambdas.stage import Stage, StageClients, document_of, properties_of

JOBS = ("base", "fast", "slow", "wrong")


def benchmark_job(stage: Stage, job: str, *, run: str = "1", **document: Any) -> str:
    benchmark = {"name": "qaoa-18", "baseline": job == "base"}
    properties = properties_of(document_of(job, benchmark=benchmark, **document), run=run)
    return stage.create(properties, logical_id=job)


def end(stage: Stage, name: str) -> str:
    seconds = {"base": 4.0, "fast": 1.0, "slow": 8.0}.get(name.partition("-")[0])
    if seconds is None:
        return stage.braket.end(name, "FAILED", reason="no", billable=3)
    stage.save_results(name, {"iteration_seconds": [100.0, seconds, seconds], "iterations": 3, "best_cut": 21})
    return stage.braket.end(name, "COMPLETED", billable=60)


def content(stage: Stage, key: str = "benchmarks/qaoa-18/1/summary.json") -> bytes | None:
    read = stage.services.artifacts.read(key)
    if read is None:
        return None
    BenchmarkSummary.model_validate_json(read[0])
    return read[0]


def test_every_order_of_four_ends_with_duplicates_gives_the_same_bytes(clients: StageClients) -> None:
    seen = set()
    for order in itertools.permutations(range(4)):
        stage = Stage(clients, in_memory=True, max_concurrent_jobs=4)
        names = [benchmark_job(stage, job) for job in JOBS]
        arns = [end(stage, name) for name in names]
        for index in order:
            assert content(stage) is None or index != order[-1]
            stage.changed(arns[index])
            stage.changed(arns[order[0]])
        summary = content(stage)
        assert summary is not None
        assert content(stage, "benchmarks/qaoa-18/latest.json") == summary
        stage.sweep()
        assert content(stage) == summary
        # Each stage has a bucket of its own, and nothing of it is in the summary.
        seen.add(summary)
    assert len(seen) == 1


def test_a_summary_compares_with_the_baseline(stage: Stage) -> None:
    names = [benchmark_job(stage, job) for job in JOBS]
    for name in names[:3]:
        stage.changed(end(stage, name))
    assert content(stage) is None, "one job has not ended"
    stage.changed(end(stage, names[3]))
    summary = json.loads(content(stage) or b"")
    rows = {row["job"]: row for row in summary["jobs"]}
    assert summary["schema"] == "hybrid-jobs/benchmark-summary/1"
    assert (summary["benchmark"], summary["run"], summary["baseline"]) == ("qaoa-18", "1", "base")
    assert {job: row["speed_up"] for job, row in rows.items()} == {"base": 1, "fast": 4, "slow": 0.5, "wrong": None}
    assert rows["fast"]["cost_ratio"] == pytest.approx(0.25)
    assert rows["fast"]["iteration_cost_usd"] == pytest.approx(0.00768 / 60)
    assert rows["fast"]["results"] == {"iterations": 3, "best_cut": 21}
    assert (rows["wrong"]["status"], rows["wrong"]["reason"]) == ("FAILED", "no")
    assert [figure["seconds_per_iteration"] for figure in summary["published"]] == [25.0, 12.0]


def test_a_job_without_a_benchmark_makes_no_summary(stage: Stage) -> None:
    name = stage.create()
    stage.changed(stage.braket.end(name, "COMPLETED"))
    listed = stage.clients.s3.list_objects_v2(Bucket=stage.bucket, Prefix="benchmarks/")
    assert listed["KeyCount"] == 0


def test_a_replaced_launch_is_not_a_part_of_the_run(stage: Stage) -> None:
    old = benchmark_job(stage, "base")
    fast = benchmark_job(stage, "fast")
    stage.changed(end(stage, old))
    benchmark = {"name": "qaoa-18", "baseline": True}
    changed = properties_of(document_of("base", benchmark=benchmark, hyperparameters={"p": "3"}))
    new = stage.launch(stage.event("Update", changed, logical_id="base", physical_id=old))["PhysicalResourceId"]
    stage.changed(end(stage, fast))
    assert content(stage) is None
    stage.changed(end(stage, new))
    assert [row["job_name"] for row in json.loads(content(stage) or b"")["jobs"]] == [new, fast]


def test_the_latest_summary_is_that_of_the_run_asked_for_last_whichever_ends_last(stage: Stage) -> None:
    first = benchmark_job(stage, "base", run="1")
    second = benchmark_job(stage, "base", run="2")
    stage.changed(end(stage, second))
    stage.changed(end(stage, first))
    assert json.loads(content(stage, "benchmarks/qaoa-18/latest.json") or b"")["run"] == "2"
    assert json.loads(content(stage) or b"")["run"] == "1"


def test_a_rejected_job_does_not_hold_the_summary_back_and_the_sweep_makes_up_for_it(stage: Stage) -> None:
    names = [benchmark_job(stage, job) for job in ("base", "fast", "slow")]
    late = benchmark_job(stage, "wrong")
    for name in names[:2]:
        stage.braket.end(name, "CANCELLED")
    stage.changed(end(stage, names[2]))
    assert stage.ledger(late).state is State.STARTED
    launch = stage.ledger(late)
    stage.services.ledger.replace(launch.moved(State.REJECTED, launch.updated_at, reason="not allowed"))
    stage.braket.jobs.pop(launch.job_arn or "")
    stage.sweep()
    rows = {row["job"]: row for row in json.loads(content(stage) or b"")["jobs"]}
    assert (rows["wrong"]["status"], rows["wrong"]["reason"]) == ("REJECTED", "not allowed")
    assert rows["base"]["status"] == "CANCELLED"


def test_half_a_record_or_half_a_summary_holds_nothing_back(stage: Stage) -> None:
    names = [benchmark_job(stage, job) for job in ("base", "fast")]
    stage.changed(end(stage, names[0]))
    whole = stage.services.artifacts.read(f"records/{names[0]}.json")
    assert whole is not None
    stage.clients.s3.put_object(Bucket=stage.bucket, Key=f"records/{names[0]}.json", Body=whole[0][:40])
    stage.clients.s3.put_object(Bucket=stage.bucket, Key="benchmarks/qaoa-18/1/summary.json", Body=b'{"requ')
    stage.changed(end(stage, names[1]))
    assert stage.ledger(names[1]).state is State.COMPLETED
    stage.clients.s3.put_object(Bucket=stage.bucket, Key=f"records/{names[0]}.json", Body=whole[0])
    stage.sweep()
    assert [row["status"] for row in json.loads(content(stage) or b"")["jobs"]] == ["COMPLETED"] * 2


def test_two_that_end_at_the_same_moment_leave_a_complete_summary(stage: Stage) -> None:
    names = [benchmark_job(stage, job) for job in ("base", "fast")]
    arns = [end(stage, name) for name in names]

    def meanwhile(operation: str, _: int) -> None:
        if operation == "Query":
            stage.plan.heal()
            stage.changed(arns[1])

    stage.plan.after = meanwhile
    stage.changed(arns[0])
    assert [row["status"] for row in json.loads(content(stage) or b"")["jobs"]] == ["COMPLETED"] * 2
