"""Variants of a benchmark, each in a process of its own that stays for the whole run, taking turns.

Whatever slows the machine for a while then slows all of them, and each one's memory is its own.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
# A single shorter iteration is at the mercy of its neighbours: as many as fill a turn are timed together.
SHORT_SECONDS = 0.02
TURN_SECONDS = 0.05

# One iteration; the value it computed, then its derivatives where they are to be compared.
Iterate = Callable[[], list[float]]


def serve(iterate: Iterate, facts: Mapping[str, Any] | None = None) -> None:
    """A worker's loop: a turn for each line read; its seconds an iteration, memory and result for each line written.

    Args:
        iterate: what is measured.
        facts: what else each answer holds.
    """
    for _ in sys.stdin:
        begun = time.perf_counter()
        result = iterate()
        seconds = time.perf_counter() - begun
        if seconds < SHORT_SECONDS:
            repeats = int(TURN_SECONDS / seconds) + 1
            begun = time.perf_counter()
            for _ in range(repeats):
                iterate()
            seconds = (time.perf_counter() - begun) / repeats
        answer = {**(facts or {}), "seconds": seconds, "peak_rss_mb": peak_rss_mb(), "result": result}
        print(json.dumps(answer), flush=True)


def peak_rss_mb(process: int | str = "self") -> float:
    """The most memory that a process has held so far, in 10**6 bytes; getrusage's peak would include its parent's."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024 / 1e6


class Worker:
    """One variant in a process of its own, which runs `serve`."""

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.name = name
        self.seconds: list[float] = []
        self.answer: dict[str, Any] = {}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**environment, **ONE_THREAD}
        )

    def take_turn(self, *, counted: bool) -> None:
        """Let it do one turn; RuntimeError when it ends instead."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended with exit code {self._process.wait()}; its errors are above")
        self.answer = json.loads(line)
        seconds = self.answer.pop("seconds")
        if counted:
            self.seconds.append(seconds)

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


def take_turns(
    commands: Mapping[str, Sequence[str]], repeats: int, environment: Mapping[str, str] = os.environ
) -> list[Worker]:
    """Start a worker for each named command and let them take turns; the first turn of each isn't counted."""
    workers: list[Worker] = []
    try:
        for name, command in commands.items():
            workers.append(Worker(name, command, environment))
            workers[-1].take_turn(counted=False)
        for _ in range(repeats):
            for worker in workers:
                worker.take_turn(counted=True)
    finally:
        for worker in workers:
            worker.end()
    return workers


def spread(seconds: Sequence[float]) -> float:
    """The range over the median."""
    return round((max(seconds) - min(seconds)) / statistics.median(seconds), 2)


def figures(worker: Worker, first: Worker) -> dict[str, float]:
    """The figures that every row holds; `ratio` is the first worker's median over this one's."""
    median = statistics.median(worker.seconds)
    return {
        "seconds": float(f"{median:.4g}"),
        "spread": spread(worker.seconds),
        "ratio": float(f"{statistics.median(first.seconds) / median:.4g}"),
        "peak_rss_mb": round(worker.answer["peak_rss_mb"], 1),
    }


def difference(worker: Worker, first: Worker) -> float:
    """The largest absolute deviation of a worker's result from the first one's."""
    pairs = zip(worker.answer["result"], first.answer["result"], strict=True)
    return float(f"{max(abs(mine - theirs) for mine, theirs in pairs):.1e}")
