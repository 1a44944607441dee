"""One row a job: the figures that a record holds, reduced to what the table shows."""

import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """What the report says of one job.

    `seconds_per_iteration` is the median over all iterations but the first, which pays for imports and allocation;
    `only_first_iteration` tells that a single iteration ran, so that its time is the first one's. `cost_before` and
    `cost_after` are the expectation values of the cost Hamiltonian at the first parameters and at the last. In USD,
    `worst_case_usd` is the job's time limit at the instance's price, `cost_usd` its billed time. `results` is what the
    job passed to save_job_result, whole: a job of anyone's own has other names in it than the figures above.
    """

    job_name: str
    status: str
    reason: str | None
    device: str
    diff_method: str | None
    instance: str
    nodes: float | None
    iterations: float | None
    seconds_per_iteration: float | None
    only_first_iteration: bool
    cost_before: float | None
    cost_after: float | None
    best_cut: float | None
    optimum: float | None
    worst_case_usd: float | None
    cost_usd: float | None
    results: dict[str, Any] | None

    def as_json(self) -> dict[str, Any]:
        """The row as JSON types."""
        return asdict(self)


def row(record: Mapping[str, Any]) -> Row:
    """Reduce one record (schema `hybrid-jobs/record/1`) to its row."""
    results = record.get("results") or {}
    seconds = numbers(results.get("iteration_seconds"))
    costs = numbers(results.get("costs"))
    instance = record["instance"]
    return Row(
        job_name=record["job_name"],
        status=record["status"],
        reason=record.get("reason"),
        device=record["device"],
        diff_method=_text(results.get("diff_method")),
        instance=instance["type"] if instance["count"] == 1 else f"{instance['count']} x {instance['type']}",
        nodes=number(results.get("nodes")),
        iterations=number(results.get("iterations")),
        seconds_per_iteration=statistics.median(seconds[1:] or seconds) if seconds else None,
        only_first_iteration=len(seconds) == 1,
        cost_before=costs[0] if costs else None,
        cost_after=number(results.get("cost")),
        best_cut=number(results.get("best_cut")),
        optimum=number(results.get("optimum")),
        worst_case_usd=record.get("worst_case_usd"),
        cost_usd=record.get("cost_usd"),
        results=record.get("results"),
    )


# What a job saved is its own affair: a result that means something else under one of these names is no figure.
def number(value: object) -> float | None:
    """The value if it is a number, else None."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def numbers(values: object) -> list[float]:
    """The values if they are a list of numbers, else none."""
    read = [number(value) for value in values] if isinstance(values, list) else []
    return [each for each in read if each is not None] if None not in read else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
