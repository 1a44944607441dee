"""One row a job: the figures that a record holds, reduced to what the table shows."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """What the report says of one job.

    `seconds_per_iteration` is the median over all iterations but the first, which pays for imports and allocation;
    `only_first_iteration` tells that a single iteration ran, so that its time is the first one's. Costs are in USD:
    `worst_case_usd` before the job (its time limit at the instance's price), `cost_usd` after it (its billed time).
    """

    job_name: str
    status: str
    reason: str | None
    device: str
    diff_method: str | None
    instance: str
    nodes: int | None
    iterations: int | None
    seconds_per_iteration: float | None
    only_first_iteration: bool
    best_cut: float | None
    optimum: float | None
    worst_case_usd: float | None
    cost_usd: float | None

    def as_json(self) -> dict[str, Any]:
        """The row as JSON types."""
        return asdict(self)


def row(record: Mapping[str, Any]) -> Row:
    """Reduce one record (schema `hybrid-jobs/record/1`) to its row."""
    results = record.get("results") or {}
    seconds: Sequence[float] = results.get("iteration_seconds") or []
    instance = record["instance"]
    return Row(
        job_name=record["job_name"],
        status=record["status"],
        reason=record.get("reason"),
        device=record["device"],
        diff_method=results.get("diff_method"),
        instance=instance["type"] if instance["count"] == 1 else f"{instance['count']} x {instance['type']}",
        nodes=results.get("nodes"),
        iterations=results.get("iterations"),
        seconds_per_iteration=statistics.median(seconds[1:] or seconds) if seconds else None,
        only_first_iteration=len(seconds) == 1,
        best_cut=results.get("best_cut"),
        optimum=results.get("optimum"),
        worst_case_usd=record.get("worst_case_usd"),
        cost_usd=record.get("cost_usd"),
    )
