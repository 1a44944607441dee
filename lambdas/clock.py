"""Time as the functions see it, so that a test can turn the hands."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A source of the present moment, and a way to let some of it pass."""

    def now(self) -> datetime:
        """Return the present moment, aware, in UTC."""

    def sleep(self, seconds: float) -> None:
        """Let that many seconds pass."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the present moment, aware, in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Let that many seconds pass."""
        time.sleep(seconds)


class Deadline:
    """The moment by which a function must have answered.

    Args:
        clock: Where the time comes from.
        seconds: How long the function may still take.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._end = clock.now().timestamp() + seconds

    def remaining(self) -> float:
        """Return the seconds that are left; negative when the deadline has passed."""
        return self._end - self._clock.now().timestamp()


def timestamp(moment: datetime) -> str:
    """Write a moment as ISO 8601 in UTC with six decimals, so that texts sort as the moments do."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment(text: str) -> datetime:
    """Read what `timestamp` wrote."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
