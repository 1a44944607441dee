"""What a job has cost, and may cost at most. No AWS here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

# Half-way, by ratio, between a duration in seconds and the same in milliseconds.
_MILLISECONDS_ABOVE = 1000**0.5
_SHORTEST_SECONDS = 10.0


def billable_seconds(billable: int | None, started_at: datetime | None, ended_at: datetime | None) -> float | None:
    """Return GetJob's billableDuration in seconds.

    Braket's API doesn't state the unit. A job is billed for about as long as it has run, so the duration is held
    against endedAt - startedAt: a figure more than about 32 times the seconds of the run is in milliseconds. Runs
    below ten seconds count as ten: their times are rounded, and the least that is billed may be longer than the run.

    Returns:
        None if Braket states no duration; the figure as seconds if it states no times to compare with.
    """
    if billable is None:
        return None
    if started_at is None or ended_at is None:
        return float(billable)
    elapsed = max((ended_at - started_at).total_seconds(), _SHORTEST_SECONDS)
    return billable / 1000 if billable / elapsed > _MILLISECONDS_ABOVE else float(billable)


def cost_usd(seconds: float | None, price: dict[str, Any] | None, count: int) -> float | None:
    """Return price a minute x minutes x instances in USD; None without a price or a duration."""
    if seconds is None or price is None:
        return None
    return float(price["usd_per_minute"]) * (seconds / 60) * count
