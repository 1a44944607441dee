"""However a worker, a launcher or a host ends, all of them end, and the reason is the one that came first."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.jobs.qml.job_run import LIGHTNING, NEEDS_TORCH, SOURCE

pytest.importorskip("torch", reason=NEEDS_TORCH)

WORKERS = 2
PATIENCE_SECONDS = 120


@dataclass
class Launched:
    """The launchers of a job's hosts, whose stub workers run."""

    folder: Path
    launchers: "list[subprocess.Popen[bytes]]"
    workers: list[psutil.Process]

    def log(self, host: int) -> str:
        return (self.folder / f"log-{host}").read_text()

    def reason(self, host: int = 0) -> str:
        """The last line of a host's log, where the error that ended it stands."""
        return self.log(host).strip().splitlines()[-1]

    def codes(self) -> list[int]:
        """How the launchers ended, once all have."""
        codes = [launcher.wait(PATIENCE_SECONDS) for launcher in self.launchers]
        _, alive = psutil.wait_procs(self.workers, timeout=PATIENCE_SECONDS)
        assert alive == []
        return codes


Launch = Callable[..., Launched]


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    started: list[subprocess.Popen[bytes]] = []

    def start(hosts: int = 1, *, wait: bool = True, **plan: Any) -> Launched:
        names = [f"algo-{number}" for number in range(1, hosts + 1)]
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        common = {
            "AMZN_BRAKET_DEVICE_ARN": LIGHTNING,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "PYTHONPATH": os.pathsep.join([str(SOURCE.parent), str(Path(__file__).parent)]),
            "SM_HOSTS": json.dumps(names),
            "SM_NETWORK_INTERFACE_NAME": "lo",
            "STUB_FOLDER": str(tmp_path),
            "STUB_WORKER": json.dumps(plan),
        }
        for number, name in enumerate(names):
            with (tmp_path / f"log-{number}").open("wb") as log:
                started.append(
                    subprocess.Popen(
                        [sys.executable, "-m", "launched_host"],
                        env={**os.environ, **common, "SM_CURRENT_HOST": name},
                        stdout=log,
                        stderr=subprocess.STDOUT,
                    )
                )
        launched = Launched(tmp_path, list(started), [])
        if wait:
            files = [tmp_path / str(rank) for rank in range(hosts * WORKERS)]
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not all(file.exists() for file in files):
                assert time.monotonic() < deadline, launched.log(0)
                assert all(launcher.poll() is None for launcher in started), launched.log(0)
                time.sleep(0.05)
            launched.workers = [psutil.Process(int(file.read_text())) for file in files]
        return launched

    yield start
    for launcher in started:
        if launcher.poll() is None:
            launcher.kill()
        launcher.wait()


def test_reason_is_the_failing_ranks_own_exception(launch: Launch) -> None:
    launched = launch(wait=False, rank=1, after=5)
    assert launched.codes() == [1]
    assert launched.reason().endswith("RankFailedError: rank 1 of 2: ValueError: the sample is bad")


def test_killed_rank_ends_the_job(launch: Launch) -> None:
    launched = launch()
    launched.workers[1].kill()
    assert launched.codes() == [1]
    assert launched.reason().endswith("RankFailedError: rank 1 of 2: Killed: the worker was ended by SIGKILL")


def test_sigterm_ends_all_ranks(launch: Launch) -> None:
    launched = launch()
    launched.launchers[0].terminate()
    assert launched.codes() == [1]
    assert launched.reason().endswith("TerminatedError: algo-1 was asked to end by SIGTERM")


def test_workers_do_not_outlive_their_launcher(launch: Launch) -> None:
    launched = launch()
    launched.launchers[0].kill()
    assert launched.codes() == [-signal.SIGKILL]


def test_failure_on_one_host_is_the_reason_on_all(launch: Launch) -> None:
    launched = launch(hosts=2, wait=False, rank=3, after=5)
    assert launched.codes() == [1, 1]
    for host in (0, 1):
        assert launched.reason(host).endswith("RankFailedError: rank 3 of 4 on algo-2: ValueError: the sample is bad")


@pytest.mark.parametrize("killed", [0, 1])
def test_host_that_is_gone_ends_the_others(launch: Launch, killed: int) -> None:
    launched = launch(hosts=2)
    launched.launchers[killed].kill()
    codes = launched.codes()
    assert codes[killed] == -signal.SIGKILL
    assert codes[1 - killed] == 1
    assert "lost the other workers" in launched.reason(1 - killed)
