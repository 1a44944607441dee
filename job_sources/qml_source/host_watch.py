"""Lets the launchers of several hosts know of each other: who is alive, who failed and why, who is done.

They meet in a key-value store that the first host's launcher keeps. Each counts up a number there every second; a host
whose number stands still is lost. This finds what the workers' connections don't: a host that is gone while collectives
on GPUs wait for it, or one that was stopped.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol, TypeVar

from torch import distributed as dist

from qml_source.failures import Failure
from qml_source.topology import Topology

# Hosts start together, but an image may take one of them minutes longer to pull.
LONGEST_START = timedelta(minutes=10)
BEAT_SECONDS = 1.0
SILENCE_SECONDS = 15.0
CAUSE_SECONDS = 4.0
FAREWELL_SECONDS = 3.0


_Answer = TypeVar("_Answer")
# Its annotations leave the stores out.
_stores: Any = dist


class Store(Protocol):
    """What is used of torch.distributed's key-value stores; each call fails when the server is gone."""

    def add(self, key: str, amount: int) -> int:
        """Adds to a number, 0 at first, and returns it."""

    def check(self, keys: list[str]) -> bool:
        """Whether all of these keys exist."""

    def get(self, key: str) -> bytes:
        """The value of a key that exists."""

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        """Sets a key whose value is `expected`, "" for none, and returns the value that it has now."""


@dataclass
class _Pulse:
    """A host's count of beats when it last moved, and when that was."""

    beats: int = 0
    since: float = field(default_factory=time.monotonic)


def _interrupt() -> None:
    # The elastic agent answers this signal by ending its workers.
    os.kill(os.getpid(), signal.SIGTERM)


class HostWatch:
    """One host's view of the others. With a single host it does nothing."""

    def __init__(self, topology: Topology, interrupt: Callable[[], None] = _interrupt) -> None:
        self._topology = topology
        self._interrupt = interrupt
        self._stopping = threading.Event()
        self._store: Store | None = None
        self._thread: threading.Thread | None = None
        self.lost: Failure | None = None
        """Why the launcher was interrupted: another host that failed or is lost."""

    def start(self) -> None:
        """Meets the other hosts and begins to watch them.

        Raises:
            torch.distributed.DistNetworkError: The first host doesn't answer within LONGEST_START.
        """
        if len(self._topology.hosts) == 1:
            return
        # The elastic agent of the same process opens its store at the same port; both share one server, which lives
        # as long as either.
        store = _stores.TCPStore(
            self._topology.address,
            self._topology.port,
            is_master=self._topology.host_rank == 0,
            timeout=LONGEST_START,
            wait_for_workers=False,
            multi_tenant=True,
        )
        self._store = _stores.PrefixStore("hosts", store)
        self._thread = threading.Thread(target=self._watch, name="host watch", daemon=True)
        self._thread.start()

    def report(self, failure: Failure) -> None:
        """Tells the other hosts of a failure; the first that is told stands."""
        if self._store is not None and not failure.consequence:
            self._ask(lambda store: store.compare_set("failed", "", failure.to_json()))

    def cause(self) -> Failure | None:
        """Waits a little for another host to tell its failure, which may be the cause of this one's."""
        deadline = time.monotonic() + CAUSE_SECONDS
        while self._store is not None and time.monotonic() < deadline:
            if (failure := self._reported()) is not None:
                return failure
            time.sleep(BEAT_SECONDS / 5)
        return None

    def end(self) -> None:
        """Stops watching; the first host stays until the others have ended too, since they meet in its store."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        if self._store is None:
            return
        self._ask(lambda store: store.add(f"ended/{self._topology.host_rank}", 1))
        if self._topology.host_rank != 0:
            return
        others = [f"ended/{rank}" for rank in range(1, len(self._topology.hosts))]
        deadline = time.monotonic() + FAREWELL_SECONDS
        while not self._ask(lambda store: store.check(others)) and time.monotonic() < deadline:
            time.sleep(BEAT_SECONDS / 5)

    def _watch(self) -> None:
        others = {rank: _Pulse() for rank in range(len(self._topology.hosts)) if rank != self._topology.host_rank}
        while not self._stopping.wait(BEAT_SECONDS):
            self._ask(lambda store: store.add(f"beat/{self._topology.host_rank}", 1))
            failure = self._reported() or self._silent_host(others)
            if failure is not None and not self._stopping.is_set():
                self._give_up(failure)
                return

    def _silent_host(self, others: "dict[int, _Pulse]") -> Failure | None:
        now = time.monotonic()
        for rank, pulse in others.items():
            beats = self._beats(rank)
            # A host that has not begun is waited for elsewhere, and one that is done need not beat.
            if beats is not None and (beats != pulse.beats or beats == 0 or self._ended(rank)):
                pulse.beats, pulse.since = beats, now
            elif now - pulse.since > SILENCE_SECONDS:
                reason = f"HostLost: {self._topology.hosts[rank]} gave no sign for {SILENCE_SECONDS:g} s"
                return Failure(reason, consequence=True)
        return None

    def _give_up(self, failure: Failure) -> None:
        self.lost = failure
        print(f"Ending this host's workers: {failure.reason}", flush=True)
        self._interrupt()

    def _beats(self, rank: int) -> int | None:
        return self._ask(lambda store: store.add(f"beat/{rank}", 0))

    def _ended(self, rank: int) -> bool:
        return bool(self._ask(lambda store: store.check([f"ended/{rank}"])))

    def _reported(self) -> Failure | None:
        if not self._ask(lambda store: store.check(["failed"])):
            return None
        text = self._ask(lambda store: store.get("failed"))
        return Failure.from_json(text.decode()) if text else None

    def _ask(self, question: Callable[[Store], _Answer]) -> _Answer | None:
        """The store's answer, None when the first host is gone."""
        assert self._store is not None  # noqa: S101 - narrows a type
        try:
            return question(self._store)
        except RuntimeError:
            return None
