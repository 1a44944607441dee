"""Failure reasons in the service's form, and the two errors that a runner itself can end a job with."""

import signal
from collections.abc import Sequence
from dataclasses import dataclass

LONGEST_REASON = 1024


class ClientFaultError(Exception):
    """The job's request or data can't be used; the message says what to change."""


class JobStoppedError(Exception):
    """The job was asked to end before it had ended itself."""


@dataclass(frozen=True)
class HostEnd:
    """How the program of one host ended.

    `return_code` is negative for a signal and None when the program's end was not seen; `failure` is the failure
    file's text; `leftovers` are the names of processes that outlived the program and were ended with it.
    """

    host: str
    return_code: int | None
    failure: str | None
    leftovers: Sequence[str] = ()

    @property
    def succeeded(self) -> bool:
        """Whether the service would call this success: exit code 0 and no failure file."""
        return self.return_code == 0 and self.failure is None


def shortened(reason: str) -> str:
    """Cut a reason to what the service keeps, with its end, where the exit code stands."""
    if len(reason) <= LONGEST_REASON:
        return reason
    tail = reason[-60:]
    return f"{reason[: LONGEST_REASON - len(tail) - 3]}...{tail}"


def algorithm_error(end: HostEnd, several_hosts: bool) -> str:
    """Return `AlgorithmError: <Type>: <message>, exit code: <n>` for a host whose program failed."""
    code = end.return_code
    exit_code = 1 if code is None else 128 - code if code < 0 else code
    text = (end.failure or "").strip()
    if not text and code is None:
        text = "Lost: the program's supervisor was ended, and the program with it"
    elif not text and code is not None and code < 0:
        text = f"Killed: the job's main process was ended by {_signal_name(-code)}"
    elif not text:
        text = f"ProgramError: the job's main process ended with exit code {code} and gave no reason"
    where = f" (on {end.host})" if several_hosts else ""
    left = f"; processes still running were ended: {', '.join(end.leftovers)}" if end.leftovers else ""
    return shortened(f"AlgorithmError: {text}{where}{left}, exit code: {exit_code}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def client_error(problem: str) -> str:
    """Return the reason for a job that its request or its data made impossible."""
    return shortened(f"ClientError: {problem}")


def internal_error(problem: str) -> str:
    """Return the reason for a job that failed through no fault of its own."""
    return shortened(f"InternalServerError: {problem}")


def stopped_reason(running: Sequence[str], code_had_returned: bool) -> str:
    """Say what a job that was asked to end was doing: a hanging child looks different from work in progress."""
    names = ", ".join(running) or "no process"
    if code_had_returned:
        return shortened(
            f"the job was stopped: its code had returned, but a process that it started had not ended ({names})"
        )
    return shortened(f"the job was stopped while it ran ({names})")
