"""Runs one program and sees to it that nothing which it started outlives it. Run as a script, one for each host.

As a child subreaper (Linux) it becomes the parent of every orphan among its descendants, whatever session they moved
to, so the tree below it is complete. It ends the tree when it is told to, and also when its own parent is gone: the
pipe on its standard input then closes. Usage: supervisor.py REPORT GRACE_SECONDS PROGRAM [ARGUMENT ...].
A line on standard input, or its end, asks it to stop: SIGTERM to the program, and SIGKILL to all after the grace.
REPORT receives {"return_code": int, "leftovers": [names], "running": [names when asked to stop]}.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

_PR_SET_CHILD_SUBREAPER = 36
_POLL_SECONDS = 0.05
_COURTESY_SECONDS = 0.5  # helpers such as multiprocessing's resource tracker end by themselves a moment later
_KILL_ROUNDS = 200


@dataclass
class _Stop:
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: bool = False
    running: list[str] = field(default_factory=list)


def _become_subreaper() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _descendants() -> list[psutil.Process]:
    """Return every process below this one that still runs, the dead left out."""
    alive = []
    for process in psutil.Process().children(recursive=True):
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process)
        except psutil.NoSuchProcess:
            continue
    return alive


def _names(processes: Sequence[psutil.Process]) -> list[str]:
    names = []
    for process in processes:
        try:
            names.append(process.name())
        except psutil.NoSuchProcess:
            continue
    return sorted(names)


def _wait_for(program: int) -> int:
    """Block until `program` has ended, collecting adopted orphans meanwhile; negative for a signal."""
    while True:
        process, status = os.waitpid(-1, 0)
        if process == program:
            return os.waitstatus_to_exitcode(status)


def _reap() -> None:
    """Collect every child that has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _kill_all() -> list[str]:
    """Kill every descendant, again and again until none is left, and return the names of the first found."""
    first: list[str] | None = None
    for _ in range(_KILL_ROUNDS):
        alive = _descendants()
        if first is None:
            first = _names(alive)
        if not alive:
            break
        for process in alive:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        time.sleep(_POLL_SECONDS / 5)
        _reap()
    _reap()
    return first or []


def _signal(stop: _Stop, program: int, number: int) -> None:
    """Signal the program unless it has been waited for, when its number may be another's."""
    with stop.lock:
        if not stop.ended:
            os.kill(program, number)


def _listen(stop: _Stop, program: int, grace_seconds: float) -> None:
    os.read(0, 1)  # unbuffered: a lock of sys.stdin held by this thread would break the interpreter's shutdown
    stop.running = _names(_descendants())
    _signal(stop, program, signal.SIGTERM)
    time.sleep(grace_seconds)
    _signal(stop, program, signal.SIGKILL)


def main(arguments: Sequence[str]) -> int:
    """Run the program to its end and report."""
    report, grace_seconds, command = Path(arguments[0]), float(arguments[1]), arguments[2:]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # The pipe alone decides, so that the tree is always ended first. Not SIG_IGN: the program would inherit it.
        signal.signal(number, lambda _number, _frame: None)
    _become_subreaper()
    stop = _Stop()
    # Not waited for through Popen: one call collects the program and the adopted orphans alike.
    program = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    threading.Thread(target=_listen, args=(stop, program.pid, grace_seconds), daemon=True).start()
    return_code = _wait_for(program.pid)
    program.returncode = return_code
    with stop.lock:
        stop.ended = True
    deadline = time.monotonic() + _COURTESY_SECONDS
    while time.monotonic() < deadline and _descendants():
        _reap()
        time.sleep(_POLL_SECONDS)
    leftovers = _kill_all()
    content = {"return_code": return_code, "leftovers": leftovers, "running": stop.running}
    partial = report.with_suffix(".partial")
    partial.write_text(json.dumps(content), encoding="utf-8")
    partial.replace(report)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
