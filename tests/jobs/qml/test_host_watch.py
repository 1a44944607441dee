"""Launchers of several hosts know of each other's failures and silence."""

import socket
import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.jobs.qml.job_run import NEEDS_TORCH

pytest.importorskip("torch", reason=NEEDS_TORCH)

from qml_source import host_watch
from qml_source.failures import Failure, cause, described, silent
from qml_source.host_watch import HostWatch
from qml_source.topology import Topology

HOSTS = ("algo-1", "algo-2")


class WatchedHost:
    """One host's watch, and whether it has interrupted its launcher."""

    def __init__(self, name: str, port: int) -> None:
        self.interrupted = threading.Event()
        self.watch = HostWatch(Topology(HOSTS, name, 1, 1, "127.0.0.1", port), interrupt=self.interrupted.set)
        self.watch.start()


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[WatchedHost]]:
    for name, seconds in {"BEAT": 0.05, "SILENCE": 0.5, "CAUSE": 0.5, "FAREWELL": 0.5}.items():
        monkeypatch.setattr(host_watch, f"{name}_SECONDS", seconds)
    monkeypatch.setattr(host_watch, "LONGEST_START", timedelta(seconds=30))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    made = [WatchedHost(name, port) for name in HOSTS]
    yield made
    for host in reversed(made):
        host.watch.end()


def test_failure_of_one_host_interrupts_the_other(hosts: list[WatchedHost]) -> None:
    failure = Failure("ValueError: boom", rank=1, host="algo-2", time_ns=5)
    hosts[1].watch.report(failure)
    assert hosts[0].interrupted.wait(20)
    assert hosts[0].watch.lost == failure
    assert hosts[0].watch.cause() == failure


def test_first_failure_stands_and_consequences_are_not_told(hosts: list[WatchedHost]) -> None:
    hosts[0].watch.report(Failure("PeerLostError: gone", rank=0, consequence=True))
    hosts[1].watch.report(Failure("ValueError: first", rank=1))
    hosts[0].watch.report(Failure("ValueError: second", rank=0))
    told = hosts[0].watch.cause()
    assert told is not None
    assert told.reason == "ValueError: first"


def test_silent_host_interrupts_the_other(hosts: list[WatchedHost]) -> None:
    assert not hosts[0].interrupted.wait(0.3)
    hosts[1].watch._stopping.set()
    assert hosts[0].interrupted.wait(20)
    assert hosts[0].watch.lost is not None
    assert "HostLost: algo-2 gave no sign" in hosts[0].watch.lost.reason


def test_host_that_is_done_is_not_missed(hosts: list[WatchedHost]) -> None:
    assert not hosts[0].interrupted.wait(0.3)
    hosts[1].watch.end()
    assert not hosts[0].interrupted.wait(1.5)


def test_cause_is_the_first_failure_that_no_other_led_to() -> None:
    lost = Failure("PeerLostError: gone", rank=0, time_ns=1, consequence=True)
    late = Failure("ValueError: late", rank=2, time_ns=9)
    early = Failure("ValueError: early", rank=1, time_ns=5)
    assert cause([lost, late, early]) == early
    assert cause([lost]) == lost
    assert cause([]) is None
    (killed,) = silent({0: (1, ""), 3: (-9, "SIGKILL")}, [lost], "algo-1")
    assert described(killed, 4, several_hosts=True) == "rank 3 of 4 on algo-1: Killed: the worker was ended by SIGKILL"
