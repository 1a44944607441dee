"""A runner that executes nothing: the test says when and how each job ends."""

import threading
from collections.abc import Callable

from hybridjobs.local.runners.base import JobRun, Outcome, Phase


class FakeJob:
    def __init__(self, run: JobRun):
        self.run = run
        self.stopped = threading.Event()
        self._ended = threading.Event()
        self._outcome = Outcome(None)

    def finish(self, failure_reason: str | None = None) -> None:
        self._outcome = Outcome(failure_reason)
        self._ended.set()

    def wait(self) -> Outcome:
        self._ended.wait()
        return self._outcome

    def stop(self) -> None:
        self.stopped.set()
        if not self._ended.is_set():
            self.finish("the processes were ended")


class FakeRunner:
    """`finish_at_once` lets every job succeed by itself; otherwise the test calls `finish` on `job(arn)`."""

    def __init__(self, *, finish_at_once: bool = False, start_error: Exception | None = None):
        self.finish_at_once = finish_at_once
        self.start_error = start_error
        self.jobs: dict[str, FakeJob] = {}
        self.most_at_once = 0
        self._changed = threading.Condition()

    def start(self, run: JobRun, on_phase: Callable[[Phase], None]) -> FakeJob:
        if self.start_error is not None:
            raise self.start_error
        job = FakeJob(run)
        on_phase("DOWNLOADING_DATA")
        on_phase("RUNNING")
        with self._changed:
            assert run.job_arn not in self.jobs, "a job must never be started twice"
            self.jobs[run.job_arn] = job
            self.most_at_once = max(self.most_at_once, len(self.alive()))
            self._changed.notify_all()
        if self.finish_at_once:
            on_phase("UPLOADING_RESULTS")
            job.finish()
        return job

    def alive(self) -> list[FakeJob]:
        return [job for job in self.jobs.values() if not job._ended.is_set()]

    def job(self, arn: str) -> FakeJob:
        """Wait until the job was started."""
        with self._changed:
            assert self._changed.wait_for(lambda: arn in self.jobs, timeout=30), f"{arn} was never started"
            return self.jobs[arn]
