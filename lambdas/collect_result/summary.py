"""The summary of a benchmark run: its jobs side by side, against the baseline. No AWS here."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from collect_result.billing import cost_usd
from collect_result.published import PUBLISHED
from launches import Launch, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SCHEMA = "hybrid-jobs/benchmark-summary/1"
# What a job may have saved under these names, in the order of preference, is its time an iteration.
_TIMES = ("iteration_seconds", "epoch_seconds")
_COPIED = (
    "diff_method",
    "iterations",
    "nodes",
    "edges",
    "cost",
    "best_cut",
    "optimum",
    "approximation_ratio",
    "last loss",
    "final",
    "workers",
    "seed",
    "versions",
)


def summary_key(benchmark: str, run: str) -> str:
    """Return where the summary of a run is published."""
    return f"benchmarks/{benchmark}/{run}/summary.json"


def latest_key(benchmark: str) -> str:
    """Return where the summary of the run that was asked for last is published."""
    return f"benchmarks/{benchmark}/latest.json"


def members(launches: Iterable[Launch], of: Launch) -> list[Launch]:
    """Return the launches of the benchmark run that a launch is a part of, by the names of their jobs.

    One launch a resource counts, the one that was asked for last: an update of a job's spec replaces its launch. What
    was withdrawn before it had a job isn't a part of the run.
    """
    newest: dict[str, Launch] = {}
    for launch in launches:
        if _group(launch) != _group(of) or launch.state is State.WITHDRAWN:
            continue
        known = newest.get(launch.identity.logical_id)
        if known is None or (known.requested_at, known.name) < (launch.requested_at, launch.name):
            newest[launch.identity.logical_id] = launch
    return sorted(newest.values(), key=lambda launch: (launch.identity.job, launch.name))


def groups(launches: Iterable[Launch]) -> list[Launch]:
    """Return one launch of each benchmark run: the one that was asked for last."""
    newest: dict[tuple[str | None, str, str], Launch] = {}
    for launch in launches:
        if launch.benchmark is None or launch.state is State.WITHDRAWN:
            continue
        known = newest.get(_group(launch))
        if known is None or known.requested_at < launch.requested_at:
            newest[_group(launch)] = launch
    return list(newest.values())


def make_summary(
    launches: Sequence[Launch], records: Mapping[str, dict[str, Any]], *, stage: str
) -> dict[str, Any] | None:
    """Put the summary of a run together; equal arguments make equal summaries.

    Args:
        launches: The run's launches, from `members`; at least one.
        records: The records of those that have ended, by job name.
        stage: The stage's name.

    Returns:
        The summary; None while a job has not ended.
    """
    if any(launch.name not in records and launch.state is not State.REJECTED for launch in launches):
        return None
    rows = [_row(launch, records.get(launch.name)) for launch in launches]
    baseline = next((row for row in rows if row["baseline"]), None)
    for row in rows:
        row["speed_up"] = _ratio(baseline, row, "seconds_per_iteration")
        row["cost_ratio"] = _ratio(row, baseline, "iteration_cost_usd")
    first = launches[0]
    return {
        "schema": SCHEMA,
        "benchmark": first.benchmark,
        "run": first.identity.run,
        "stage": stage,
        "stack_id": first.identity.stack_id,
        "requested_at": max(launch.requested_at for launch in launches),
        "baseline": baseline["job"] if baseline else None,
        "jobs": rows,
        "published": PUBLISHED.get(first.benchmark or "", []),
    }


def _group(launch: Launch) -> tuple[str | None, str, str]:
    return (launch.benchmark, launch.identity.run, launch.identity.stack_id)


def _row(launch: Launch, record: dict[str, Any] | None) -> dict[str, Any]:
    spec = launch.spec or {}
    results = (record or {}).get("results") or {}
    seconds = _seconds_per_iteration(results)
    return {
        "job": launch.identity.job,
        "job_name": launch.name,
        "baseline": bool((spec.get("benchmark") or {}).get("baseline")),
        "status": record["status"] if record else launch.state.value,
        "reason": record["reason"] if record else launch.reason,
        "device": spec.get("device"),
        "instance": spec.get("instance"),
        "distribution": spec.get("distribution"),
        "seconds_per_iteration": seconds,
        "iteration_cost_usd": cost_usd(seconds, launch.price, int(spec["instance"]["count"])),
        "billable_seconds": record["billable_seconds"] if record else None,
        "cost_usd": record["cost_usd"] if record else None,
        "price": launch.price,
        "results": {key: results[key] for key in _COPIED if key in results},
    }


def _seconds_per_iteration(results: dict[str, Any]) -> float | None:
    """Return the median without the first iteration, which pays for imports and allocation, if there are others."""
    for name in _TIMES:
        times = results.get(name)
        if isinstance(times, list) and times and all(isinstance(time, (int, float)) for time in times):
            return float(statistics.median(times[1:] or times))
    return None


def _ratio(above: dict[str, Any] | None, below: dict[str, Any] | None, key: str) -> float | None:
    if above is None or below is None or above[key] is None or not below[key]:
        return None
    return float(above[key] / below[key])
