"""Which processes belong to an embedded cloud, and how they are ended.

Everything that an embedded cloud starts inherits the environment variable `HYBRIDJOBS_RUN_FOLDER`. A process is ours
when it carries that variable with our folder in it: that holds for grandchildren and for children of a daemon that
crashed, and never for a process that merely got a recycled pid.
"""

from collections.abc import Sequence
from pathlib import Path

import psutil

MARKER = "HYBRIDJOBS_RUN_FOLDER"


def find(pid: int, created: float) -> psutil.Process | None:
    """The live process `pid` if it is the one that started at `created` (seconds since the epoch), else None."""
    try:
        process = psutil.Process(pid)
        same = abs(process.create_time() - created) < 1.0
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.Error:
        return None


def listening_ports(process: psutil.Process) -> frozenset[int]:
    """The TCP ports on which `process` listens; empty for a process that has ended."""
    try:
        connections = process.net_connections("tcp")
    except psutil.Error:
        return frozenset()
    return frozenset(connection.laddr.port for connection in connections if connection.status == psutil.CONN_LISTEN)


def started_by(run_folder: Path) -> list[psutil.Process]:
    """Every live process that the embedded cloud of `run_folder` started, except the calling one."""
    own = psutil.Process().pid
    return [process for process in psutil.process_iter() if process.pid != own and _carries(process, run_folder)]


def end(processes: Sequence[psutil.Process], grace_seconds: float = 3.0) -> None:
    """Ask `processes` to end, and kill those that have not after `grace_seconds`."""
    for process in processes:
        _signal(process, kill=False)
    _, alive = psutil.wait_procs(processes, timeout=grace_seconds)
    for process in alive:
        _signal(process, kill=True)
    psutil.wait_procs(alive, timeout=grace_seconds)


def end_all(run_folder: Path) -> None:
    """End every process that the embedded cloud of `run_folder` started, and those that they start meanwhile."""
    while processes := started_by(run_folder):
        end(processes)


def _carries(process: psutil.Process, run_folder: Path) -> bool:
    try:
        return process.environ().get(MARKER) == str(run_folder) and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, OSError):
        # Other users' processes can't be looked into, and they are not ours.
        return False


def _signal(process: psutil.Process, *, kill: bool) -> None:
    try:
        if kill:
            process.kill()
        else:
            process.terminate()
    except psutil.NoSuchProcess:
        pass
