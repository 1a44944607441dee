"""Which launches a pass attends to, from what the ledger says. No AWS here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from launches import Launch, Released, State

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Choice:
    """What a pass does: first `unfinished`, which an earlier pass left in STARTING, then `next_up`, in order.

    `places` is how many jobs may be started besides those that run or may run.
    """

    unfinished: tuple[Launch, ...]
    next_up: tuple[Launch, ...]
    places: int


def choose(open_launches: Iterable[Launch], max_concurrent_jobs: int) -> Choice:
    """Choose from the open launches.

    A launch in STARTING holds a place: its job may exist. So does one whose job was asked to end, until it has.
    """
    ordered = sorted(open_launches, key=lambda launch: launch.order)
    active = [launch for launch in ordered if launch.state in {State.STARTING, State.STARTED}]
    return Choice(
        unfinished=tuple(launch for launch in active if launch.state is State.STARTING),
        next_up=tuple(launch for launch in ordered if launch.state is State.PENDING and launch.released is Released.NO),
        places=max(0, max_concurrent_jobs - len(active)),
    )
