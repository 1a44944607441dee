"""Executes queued jobs: a bounded number of workers, each with one job at a time."""

import logging
import threading
from collections.abc import Mapping
from pathlib import Path

from hybridjobs.local.braket import life_cycle
from hybridjobs.local.braket.job_store import JobStore
from hybridjobs.local.braket.life_cycle import Job
from hybridjobs.local.runners.base import JobRun, Outcome, Phase, Runner, RunningJob

STOPPED_REASON = "The local Braket endpoint was stopped while the job was running"
RESTARTED_REASON = "The local Braket endpoint ended while the job was running"
STOP_TIMEOUT_SECONDS = 60.0

_logger = logging.getLogger(__name__)


class JobWorkers:
    """Takes jobs from the store, longest waiting first, and runs them.

    `folder` gets one private folder a job, named by the job's id.
    """

    def __init__(
        self, store: JobStore, runner: Runner, folder: Path, aws_environment: Mapping[str, str], *, count: int
    ):
        self._store = store
        self._runner = runner
        self._folder = folder
        self._aws_environment = aws_environment
        self._condition = threading.Condition()
        self._stopping = False
        self._running: dict[str, RunningJob] = {}
        self._threads = [
            threading.Thread(target=self._work, name=f"braket-worker-{number}", daemon=True) for number in range(count)
        ]

    def start(self) -> None:
        """Begin with the jobs that wait in the store."""
        for thread in self._threads:
            thread.start()

    def notify(self) -> None:
        """Say that a job has been stored."""
        with self._condition:
            self._condition.notify()

    def end(self, arn: str) -> None:
        """Begin to end the processes of a job, if it has any yet; its worker then settles its state."""
        with self._condition:
            running = self._running.get(arn)
        if running is not None:
            _stop_in_background(running)

    def stop(self) -> None:
        """End every running job and wait for the workers; jobs that only wait stay queued in the store."""
        with self._condition:
            self._stopping = True
            self._condition.notify_all()
            running = list(self._running.values())
        for job in running:
            _stop_in_background(job)
        for thread in self._threads:
            thread.join(STOP_TIMEOUT_SECONDS)
        self._store.interrupt_all(STOPPED_REASON, life_cycle.now())

    def _work(self) -> None:
        while job := self._next():
            self._settle(job.arn, self._run(job))

    def _next(self) -> Job | None:
        with self._condition:
            while not self._stopping:
                job = self._store.take_next(life_cycle.now())
                if job is not None:
                    return job
                self._condition.wait()
        return None

    def _settle(self, arn: str, outcome: Outcome) -> None:
        if self._stopping and outcome.failure_reason is not None:
            outcome = Outcome(STOPPED_REASON)
        self._store.update(arn, lambda job: life_cycle.ended(job, outcome, life_cycle.now()))

    def _run(self, job: Job) -> Outcome:
        timer = threading.Timer(job.maximum_runtime_seconds, self._time_out, [job.arn])
        timer.daemon = True
        try:
            running = self._runner.start(self._job_run(job), lambda phase: self._enter(job.arn, phase))
            with self._condition:
                self._running[job.arn] = running
            current = self._store.update(job.arn, lambda stored: life_cycle.started(stored, life_cycle.now()))
            if self._stopping or current.status == "CANCELLING":
                running.stop()
            timer.start()
            return running.wait()
        except Exception as error:  # a runner that fails must not take the worker with it: the job has failed
            _logger.exception("The runner failed at job %s", job.arn)
            return Outcome(f"InternalServerError: the local runner failed: {type(error).__name__}: {error}")
        finally:
            timer.cancel()
            with self._condition:
                self._running.pop(job.arn, None)

    def _job_run(self, job: Job) -> JobRun:
        folder = self._folder / job.job_id
        folder.mkdir(parents=True, exist_ok=True)
        return JobRun(
            job_name=job.name,
            job_id=job.job_id,
            job_arn=job.arn,
            request=job.request,
            folder=folder,
            aws_environment={**self._aws_environment, "AMZN_BRAKET_JOB_TOKEN": job.job_token},
        )

    def _enter(self, arn: str, phase: Phase) -> None:
        self._store.update(arn, lambda job: life_cycle.entered(job, phase, life_cycle.now()))

    def _time_out(self, arn: str) -> None:
        job = self._store.update(arn, lambda job: life_cycle.timed_out(job, life_cycle.now()))
        if not job.is_terminal:
            self.end(arn)


def _stop_in_background(job: RunningJob) -> None:
    """Programs may take their time to end, which the caller, an API request perhaps, must not wait for."""
    threading.Thread(target=job.stop, name="braket-stop", daemon=True).start()
