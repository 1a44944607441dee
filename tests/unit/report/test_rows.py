"""The report's figures: medians without the first iteration, and nothing invented where a record holds nothing."""

import json
from typing import Any

import pytest
from rich.console import Console

from hybridjobs.report.rows import row
from hybridjobs.report.table import json_text, table


def record(**changes: Any) -> dict[str, Any]:
    return {
        "job_name": "qaoa-18-cpu-0123456789",
        "status": "COMPLETED",
        "reason": None,
        "device": "local:pennylane/lightning.qubit",
        "instance": {"type": "ml.m5.2xlarge", "count": 1, "volume_gb": 30},
        "results": {
            "iteration_seconds": [9.0, 1.0, 5.0, 3.0],
            "iterations": 4,
            "nodes": 18,
            "costs": [-0.5, -3.25, -4.0, -5.5],
            "cost": -6.125,
            "best_cut": 21,
            "optimum": 21,
            "diff_method": "adjoint",
        },
        "worst_case_usd": 0.4608,
        "cost_usd": 0.0012,
    } | changes


def drawn(*records: dict[str, Any]) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(table([row(one) for one in records]))
    return capture.get()


def test_the_first_iteration_is_left_out_of_the_median() -> None:
    assert row(record()).seconds_per_iteration == 3.0


def test_a_single_iteration_is_shown_and_marked() -> None:
    single = record(results={"iteration_seconds": [20.7], "iterations": 1, "nodes": 18})
    assert row(single).seconds_per_iteration == 20.7
    assert "20.7*" in drawn(single)
    assert "one iteration ran" in drawn(single)


def test_a_failed_job_shows_its_reason_and_no_figures() -> None:
    failed = record(status="FAILED", reason="AlgorithmError: ValueError: p must be positive", results=None)
    text = drawn(failed)
    assert "FAILED" in text
    assert "p must be positive" in text
    assert row(failed).seconds_per_iteration is None


def test_the_cost_is_shown_before_the_first_step_and_after_the_last() -> None:
    assert "-0.5000 / -6.1250" in drawn(record())


def test_an_unknown_price_is_called_unknown_and_not_zero() -> None:
    assert "unknown" in drawn(record(worst_case_usd=None, cost_usd=None))


@pytest.mark.parametrize("count", [1, 3])
def test_instance_count_is_shown_only_above_one(count: int) -> None:
    shown = row(record(instance={"type": "ml.g6.xlarge", "count": count, "volume_gb": 30})).instance
    assert shown == ("ml.g6.xlarge" if count == 1 else "3 x ml.g6.xlarge")


def test_json_carries_every_column() -> None:
    document = json.loads(json_text([row(record())], [], {}))
    assert document["rows"][0]["best_cut"] == 21
    assert document["rows"][0]["cost_usd"] == 0.0012


@pytest.mark.parametrize("results", [{"energy": -1.1, "layers": {"tried": [1, 2], "best": None}}, {}, None])
def test_json_carries_all_that_a_job_saved_under_names_of_its_own(results: dict[str, Any] | None) -> None:
    document = json.loads(json_text([row(record(results=results))], [], {}))
    assert document["rows"][0]["results"] == results


@pytest.mark.parametrize(
    "results",
    [
        {"nodes": "<script>", "iterations": [1], "best_cut": {"a": 1}, "optimum": True, "diff_method": 7},
        {"iteration_seconds": {"a": 1}},
        {"iteration_seconds": ["fast"]},
    ],
)
def test_results_that_mean_something_else_under_our_names_do_not_break_the_report(results: dict[str, Any]) -> None:
    odd = record(results=results)
    assert row(odd).seconds_per_iteration is None
    assert row(odd).nodes is None
    assert "COMPLETED" in drawn(odd, record())
    assert json.loads(json_text([row(odd)], [], {}))["rows"][0]["diff_method"] is None


def test_a_reason_is_shown_as_it_is_without_markup_or_terminal_codes() -> None:
    text = drawn(record(status="FAILED", reason="[red]boom[/blue] \x1b[2J", results=None))
    assert "[red]boom[/blue]" in text
    assert "\x1b" not in text
