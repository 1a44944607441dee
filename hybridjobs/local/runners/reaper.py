"""Removes a runner's containers when the runner's process is gone, however that ended. Run as a script.

Usage: reaper.py LABEL=VALUE. It waits until its standard input ends, whose other end the runner's process holds, or
until it is asked to end, and then removes every container with that label. The engine is found as any client finds it.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

import docker
from docker.errors import APIError

_ROUNDS = 3
_PAUSE_SECONDS = 0.3


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit


def _remove_all(label: str) -> None:
    client = docker.from_env()
    for _ in range(_ROUNDS):  # a container may be in the making when its runner is killed
        for container in client.api.containers(all=True, quiet=True, filters={"label": label}):
            with contextlib.suppress(APIError):  # somebody else removes it
                client.api.remove_container(container["Id"], force=True, v=True)
        time.sleep(_PAUSE_SECONDS)


def main(arguments: Sequence[str]) -> None:
    """Wait, then remove."""
    signals = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    for number in signals:
        signal.signal(number, _leave)
    try:
        while os.read(0, 1024):
            pass
    finally:
        for number in signals:
            signal.signal(number, signal.SIG_IGN)
        _remove_all(arguments[0])


if __name__ == "__main__":
    main(sys.argv[1:])
