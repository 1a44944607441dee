"""However a worker, a launcher or a host ends, all of them end, and the reason is the one that came first."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.jobs.qml.job_run import LIGHTNING, NEEDS_TORCH, SOURCE

pytest.importorskip("torch", reason=NEEDS_TORCH)

PATIENCE_SECONDS = 120


class LauncherServer:
    """The process that launchers are forked from."""

    def __init__(self) -> None:
        search_path = os.pathsep.join([str(SOURCE.parent), str(Path(__file__).parent)])
        self.variables = {"PYTHONPATH": search_path, "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "launched_host"],
            env={**os.environ, **self.variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **request: Any) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def end(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def server() -> Iterator[LauncherServer]:
    started = LauncherServer()
    yield started
    started.end()


@dataclass
class Launched:
    """The launchers of a job's hosts, whose stub workers run."""

    server: LauncherServer
    folder: Path
    launchers: list[int] = field(default_factory=list)
    workers: list[psutil.Process] = field(default_factory=list)
    ended: dict[int, int] = field(default_factory=dict)

    def log(self, host: int) -> str:
        return (self.folder / f"log-{host}").read_text()

    def reason(self, host: int = 0) -> str:
        """The last line of a host's log, where the error that ended it stands."""
        return self.log(host).strip().splitlines()[-1]

    def codes(self) -> list[int]:
        """How the launchers ended, once all have."""
        for launcher in self.launchers:
            if launcher not in self.ended:
                self.ended[launcher] = self.server.ask(wait=launcher)
        _, alive = psutil.wait_procs(self.workers, timeout=PATIENCE_SECONDS)
        assert alive == []
        return list(self.ended.values())


Launch = Callable[..., Launched]


@pytest.fixture
def launch(server: LauncherServer, tmp_path: Path) -> Iterator[Launch]:
    launched = Launched(server, tmp_path)

    def start(
        hosts: int = 1, workers: int = 2, *, wait: bool = True, more: Mapping[str, str] | None = None, **plan: Any
    ) -> Launched:
        names = [f"algo-{number}" for number in range(1, hosts + 1)]
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        common = {
            "AMZN_BRAKET_DEVICE_ARN": LIGHTNING,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "SM_HOSTS": json.dumps(names),
            "SM_NETWORK_INTERFACE_NAME": "lo",
            "STUB_FOLDER": str(tmp_path),
            "STUB_WORKER": json.dumps(plan),
            "STUB_WORKERS": str(workers),
            **(more or {}),
        }
        for number, name in enumerate(names):
            variables = {**common, "SM_CURRENT_HOST": name}
            launched.launchers.append(server.ask(variables=variables, log=str(tmp_path / f"log-{number}")))
        if wait:
            files = [tmp_path / str(rank) for rank in range(hosts * workers)]
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not all(file.exists() for file in files):
                assert time.monotonic() < deadline, launched.log(0)
                assert all(map(psutil.pid_exists, launched.launchers)), launched.log(0)
                time.sleep(0.05)
            launched.workers = [psutil.Process(int(file.read_text())) for file in files]
        return launched

    yield start
    for launcher in launched.launchers:
        if launcher not in launched.ended:
            os.kill(launcher, signal.SIGKILL)
    launched.codes()


def test_reason_is_the_failing_ranks_own_exception(launch: Launch) -> None:
    launched = launch(wait=False, exchange=True, rank=1, after=5)
    assert launched.codes() == [1]
    assert launched.reason().endswith("RankFailedError: rank 1 of 2: ValueError: the sample is bad")


def test_killed_rank_ends_the_job(launch: Launch) -> None:
    launched = launch()
    launched.workers[1].kill()
    assert launched.codes() == [1]
    assert launched.reason().endswith("RankFailedError: rank 1 of 2: Killed: the worker was ended by SIGKILL")


def test_sigterm_ends_all_ranks(launch: Launch) -> None:
    launched = launch()
    os.kill(launched.launchers[0], signal.SIGTERM)
    assert launched.codes() == [1]
    assert launched.reason().endswith("TerminatedError: algo-1 was asked to end by SIGTERM")


def test_workers_do_not_outlive_their_launcher(launch: Launch) -> None:
    launched = launch()
    os.kill(launched.launchers[0], signal.SIGKILL)
    assert launched.codes() == [-signal.SIGKILL]


def test_failure_on_one_host_is_the_reason_on_all(launch: Launch) -> None:
    launched = launch(hosts=2, workers=1, wait=False, exchange=True, rank=1, after=5)
    assert launched.codes() == [1, 1]
    for host in (0, 1):
        assert launched.reason(host).endswith("RankFailedError: rank 1 of 2 on algo-2: ValueError: the sample is bad")


@pytest.mark.parametrize("killed", [0, 1])
def test_host_that_is_gone_ends_the_others(launch: Launch, killed: int) -> None:
    # Nobody is left who could tell a cause.
    launched = launch(hosts=2, workers=1, exchange=True, more={"STUB_CAUSE_SECONDS": "0.5"})
    os.kill(launched.launchers[killed], signal.SIGKILL)
    codes = launched.codes()
    assert codes[killed] == -signal.SIGKILL
    assert codes[1 - killed] == 1
    assert "lost the other workers" in launched.reason(1 - killed)
