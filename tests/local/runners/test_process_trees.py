"""A job's processes end with it, whatever they did to get away, and however it ends."""

import signal
import time
from collections.abc import Callable

import psutil
import pytest

from hybridjobs.local.runners.base import JobRun

from .conftest import Workbench, processes_of

# A child that leaves the session, the process group and its parent, as a daemon does.
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 3)
        time.sleep(600)
    os._exit(0)
os.wait()
"""
WAIT = "print('waiting', flush=True)\nimport time\ntime.sleep(600)\n"
IGNORE = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
HANGING_CHILD = """
import multiprocessing, time
def work(): time.sleep(600)
if __name__ == "__main__":
    multiprocessing.get_context("fork").Process(target=work).start()
    print("waiting", flush=True)
"""


def supervisor_of(run: JobRun) -> psutil.Process:
    return next(found for found in processes_of(run) if any("supervisor.py" in part for part in found.cmdline()))


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_waiting(workbench: Workbench, name: str) -> Callable[[], bool]:
    file = workbench.folder / name / "logs" / "algo-1.log"
    return lambda: file.exists() and "waiting" in file.read_text().splitlines()


@pytest.mark.parametrize("code", [DAEMON, DAEMON.replace("os.closerange(0, 3)", "")], ids=["closed", "open output"])
def test_daemon_child_ends_when_the_job_succeeds(workbench: Workbench, code: str) -> None:
    ended = workbench.complete({"job/main.py": code})
    assert ended.outcome.failure_reason is None, ended.log
    assert processes_of(ended.run) == []


def test_daemon_child_ends_when_the_job_fails_and_the_reason_names_it(workbench: Workbench) -> None:
    ended = workbench.complete({"job/main.py": DAEMON + "raise ValueError('boom')"})
    assert ended.reason.startswith("AlgorithmError: ValueError: boom; processes still running were ended: python")
    assert processes_of(ended.run) == []


def test_stop_ends_the_whole_tree_and_can_be_repeated(workbench: Workbench) -> None:
    run = workbench.run({"job/main.py": IGNORE + DAEMON + WAIT})
    job = workbench.start(run)
    until(is_waiting(workbench, run.job_name))
    assert len(processes_of(run)) >= 4
    job.stop()
    assert processes_of(run) == []
    ended = workbench.finish(run, job)
    assert ended.reason.startswith("the job was stopped while it ran (python")
    job.stop()


def test_hanging_child_is_told_apart_from_work_in_progress(workbench: Workbench) -> None:
    run = workbench.run({"job/main.py": HANGING_CHILD})
    job = workbench.start(run)
    until(is_waiting(workbench, run.job_name))
    until((run.folder / "algo-1" / "opt" / "ml" / "code" / "customer_code" / "finished").exists)
    job.stop()
    assert "its code had returned, but a process that it started had not ended" in workbench.finish(run, job).reason
    assert processes_of(run) == []


def test_stop_before_the_program_starts_ends_the_job(workbench: Workbench) -> None:
    run = workbench.run({"job/main.py": WAIT})
    job = workbench.start(run)
    job.stop()
    assert "the job was stopped" in workbench.finish(run, job).reason
    assert processes_of(run) == []


def test_job_that_ends_well_when_asked_to_stop_has_still_been_stopped(workbench: Workbench) -> None:
    code = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n" + WAIT
    run = workbench.run({"job/main.py": code})
    job = workbench.start(run)
    until(is_waiting(workbench, run.job_name))
    job.stop()
    assert "the job was stopped" in workbench.finish(run, job).reason
    assert workbench.keys(f"{run.job_name}/data") == set()


def test_nothing_is_left_when_the_supervisor_itself_is_killed(workbench: Workbench) -> None:
    run = workbench.run({"job/main.py": DAEMON + WAIT})
    job = workbench.start(run)
    until(is_waiting(workbench, run.job_name))
    supervisor = next(
        process for process in processes_of(run) if any("supervisor.py" in part for part in process.cmdline())
    )
    supervisor.send_signal(signal.SIGKILL)
    assert "Lost: the program's supervisor was ended" in workbench.finish(run, job).reason
    assert processes_of(run) == []


def test_tree_ends_when_the_runner_is_gone(workbench: Workbench) -> None:
    """The pipe to the supervisor closes with the process that holds it; closing it here stands for that."""
    run = workbench.run({"job/main.py": DAEMON + WAIT})
    job = workbench.start(run)
    until(is_waiting(workbench, run.job_name))
    host = job._hosts[0]
    assert host._supervisor is not None
    assert host._supervisor.stdin is not None
    host._supervisor.stdin.close()
    job.wait()
    assert processes_of(run) == []


def test_finished_children_are_collected_while_the_job_runs(workbench: Workbench) -> None:
    code = (
        "import os\nfor _ in range(20):\n    if os.fork() == 0:\n        os.fork(); os._exit(0)\n    os.wait()\n" + WAIT
    )
    run = workbench.run({"job/main.py": code})
    job = workbench.start(run)
    until(is_waiting(workbench, run.job_name))
    supervisor = next(
        process for process in processes_of(run) if any("supervisor.py" in part for part in process.cmdline())
    )
    until(lambda: all(child.status() != psutil.STATUS_ZOMBIE for child in supervisor.children(recursive=True)))
    job.stop()
