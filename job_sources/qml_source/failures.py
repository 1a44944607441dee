"""What is known of workers that failed, and which of them is the cause of the others' end."""

import json
import time
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

FOLDER_VARIABLE = "QML_FAILURE_FOLDER"


class RankFailedError(RuntimeError):
    """A worker of a data-parallel training failed, and the training with it: names the worker and its own error."""


class TerminatedError(RuntimeError):
    """A host of a data-parallel training was asked to end, and has ended its workers."""


@dataclass(frozen=True)
class Failure:
    """One worker's end: `reason` is "Type: message", `time_ns` when, `consequence` whether another's end caused it."""

    reason: str
    rank: int | None = None
    host: str | None = None
    time_ns: int = 0
    consequence: bool = False

    def to_json(self) -> str:
        """The failure as text."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> "Failure":
        """Reads `to_json`'s text."""
        return Failure(**json.loads(text))


def record(folder: Path, error: BaseException, *, rank: int, host: str, consequence: bool) -> None:
    """Leaves a worker's error for its launcher to find, and prints it for the log."""
    traceback.print_exception(error)
    reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    failure = Failure(reason, rank, host, time.time_ns(), consequence)
    writing = folder / f"rank-{rank}.writing"
    writing.write_text(failure.to_json(), encoding="utf-8")
    writing.replace(folder / f"rank-{rank}.json")


def recorded(folder: Path) -> list[Failure]:
    """What the workers of this host left."""
    return [Failure.from_json(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("rank-*.json"))]


def silent(ends: Mapping[int, tuple[int, str]], known: Iterable[Failure], host: str) -> list[Failure]:
    """Failures of workers that ended without leaving a word; `ends` has exit code and signal's name by rank."""
    told = {failure.rank for failure in known}
    found = []
    for rank, (code, signal) in ends.items():
        if rank not in told:
            reason = f"Killed: the worker was ended by {signal}" if code < 0 else f"it ended with exit code {code}"
            # NCCL aborts the process when another worker is gone.
            found.append(Failure(reason, rank, host, consequence=signal == "SIGABRT"))
    return found


def cause(failures: Iterable[Failure]) -> Failure | None:
    """The failure that the others follow from: of those that no other caused, the first."""
    return min(failures, key=lambda failure: (failure.consequence, failure.time_ns), default=None)


def described(failure: Failure, workers: int, several_hosts: bool) -> str:
    """The failure in one line: which worker, where, and its own error."""
    if failure.rank is None:
        return failure.reason
    where = f" on {failure.host}" if several_hosts and failure.host else ""
    return f"rank {failure.rank} of {workers}{where}: {failure.reason}"
