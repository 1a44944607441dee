"""Trainings side by side: against one worker, and against what was published."""

import json
from typing import Any

import pytest
from rich.console import Console

from collect_result.published import PUBLISHED
from hybridjobs.report.table import json_text, show
from hybridjobs.report.training import Training, trainings

M5, G6 = "ml.m5.2xlarge", "ml.g6.12xlarge"
PRICE = {"usd_per_minute": 0.6}


def record(
    job: str, workers: int, seconds: list[float], *, instance: str = M5, count: int = 1, price: Any = PRICE, **more: Any
) -> dict[str, Any]:
    training = {"nwires": 10, "training_samples": 166, "batch_size": 16, "device": "local:pennylane/lightning.qubit"}
    results = {"workers": workers, "iteration_seconds": seconds, **training, **more}
    return {
        "job_name": f"{job}-0123456789",
        "spec": {"name": job, "benchmark": {"name": "qml-sonar", "baseline": False}},
        "stack_id": "stack",
        "device": training["device"],
        "instance": {"type": instance, "count": count},
        "price": price,
        "results": results,
    }


ALONE = record("qml-single", 1, [9.0, 8.0])


def compared(*records: dict[str, Any]) -> Training:
    return trainings(records, {})[-1]


def test_parallel_training_is_compared_with_one_worker_by_the_epoch() -> None:
    row = compared(ALONE, record("qml-dp", 4, [5.0, 2.5], count=2))
    assert (row.workers, row.instance, row.seconds_per_epoch) == (4, f"2 x {M5}", 2.5)
    assert row.epoch_usd == pytest.approx(2 * 2.5 * 0.6 / 60)
    assert (row.speed_up, row.efficiency) == (3.2, 0.8)
    assert row.cost_ratio == pytest.approx(2 / 3.2)


@pytest.mark.parametrize(
    ("parallel", "sentence"),
    [
        (record("dp", 2, [4.4], count=2), "saved time, not money"),
        (record("dp", 2, [4.0], count=2, price=None), "cost 1 times as much: parallel training saved time, not money"),
        (record("dp", 2, [4.0], count=2, instance=G6, price=None), "whether it saved money is unknown"),
        (record("dp", 8, [2.0]), "took 1/4 of the time of one worker, and an epoch cost 0.25 times as much: it saved"),
        (record("dp", 2, [16.0]), "took 2 times as long as one worker: parallel training saved nothing"),
    ],
)
def test_report_says_in_a_sentence_what_parallel_training_saved(parallel: dict[str, Any], sentence: str) -> None:
    console = Console(width=200)
    with console.capture() as capture:
        show(console, [], trainings([ALONE, parallel], {}), {})
    assert sentence in capture.get()


def test_trainings_that_differ_are_not_compared() -> None:
    other = record("dp", 2, [4.0], nwires=26)
    assert compared(ALONE, other).speed_up is None
    assert compared(ALONE, other).remark() is None


def test_published_figures_follow_those_of_the_benchmark() -> None:
    rows = trainings([{**ALONE, "spec": {**ALONE["spec"], "benchmark": {"name": "qml-26"}}}], PUBLISHED)
    assert [row.name for row in rows] == ["qml-single", "published", "published", "published"]
    assert [row.workers for row in rows[1:]] == [1, 8, 32]
    assert rows[1].epoch_usd == pytest.approx(21.114)
    assert rows[3].speed_up == 30
    assert rows[3].efficiency == pytest.approx(0.9375)
    assert rows[3].remark() is None


def test_accuracy_stands_beside_the_logistic_regressions() -> None:
    control = {"logistic_regression_held_out_accuracy": 0.75}
    row = compared(record("one", 1, [1.0], final={"held_out_accuracy": 0.8}, classical_control=control))
    assert (row.held_out_accuracy, row.logistic_accuracy) == (0.8, 0.75)


def test_jobs_that_train_nothing_are_left_out() -> None:
    failed = {**ALONE, "results": None}
    other = {**ALONE, "results": {"iteration_seconds": [1.0], "workers": "many"}}
    assert trainings([failed, other], {}) == []


def test_json_has_the_trainings_too() -> None:
    document = json.loads(json_text([], trainings([ALONE], {}), {}))
    assert document["rows"] == []
    assert document["trainings"][0]["efficiency"] == 1
