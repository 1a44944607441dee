"""Takes an ended job to its record, its benchmark's summary and its ledger entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clock import moment
from collect_result.record import document_bytes, make_record, read_record, record_key
from collect_result.results_archive import Results, read_results
from collect_result.summariser import Summariser
from dispatch.starter import SEARCH_LAG_SECONDS, Starter
from errors import ConflictingWrite
from launches import ENDED_STATES, Launch, Released, State
from log_lines import emit_metrics, log

if TYPE_CHECKING:
    from aws.braket_jobs import Job
    from services import Services

_WRITE_TRIES = 10


class Collector:
    """Collects jobs, each as often as it is asked, always with the same outcome."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._starter = Starter(services, lambda: True)

    def collect_arn(self, arn: str) -> bool:
        """Collect the job of an ARN if it is ours and has ended; returns whether it was."""
        job = self._services.braket.get(arn)
        if job is None:
            log("Braket does not know the job", job_arn=arn)
            return False
        launch = self._services.ledger.get(job.name)
        if launch is None or not launch.owns(job.tags):
            log("not a job of this stage", job_name=job.name, job_arn=arn)
            return False
        return self.collect(launch, job)

    def look(self, launch: Launch) -> None:
        """Look at the job of an open launch, and collect it if it has ended."""
        arn = launch.job_arn
        if arn is None and launch.state is State.STARTING:
            arn = self._starter.existing_job(launch)
        if arn is None:
            return
        job = self._services.braket.get(arn)
        if job is not None:
            self.collect(launch, job)
            return
        age = self._services.clock.now() - moment(launch.updated_at)
        if age.total_seconds() < SEARCH_LAG_SECONDS or self._starter.existing_job(launch) is not None:
            # What has just been made, or is still found by its name, is there.
            log("Braket does not know the job at this moment", job_name=launch.name, job_arn=arn)
            return
        # It would hold a place for ever.
        reason = f"Braket does not know the job {arn}"
        log(reason, job_name=launch.name)
        self._services.ledger.replace(launch.moved(State.FAILED, self._services.now(), reason=reason))

    def collect(self, launch: Launch, job: Job) -> bool:
        """Collect a launch's job if it has ended; returns whether it has.

        The record and the summary are written before the ledger closes the launch: whatever breaks in between, the
        launch stays open, and the sweep comes back to it.
        """
        if launch.state in ENDED_STATES:
            return launch.job_arn == job.arn
        if not job.is_terminal:
            if launch.state is not State.STARTED or (job.is_active and launch.released is not Released.NO):
                # Whoever started it, or should have ended it, didn't get that far.
                self._starter.has_job(launch.name, job.arn)
            return False
        if launch.job_arn not in {None, job.arn}:
            log("another job of this name is the launch's", job_name=job.name, job_arn=job.arn)
            return False
        record = self._record(launch, job)
        Summariser(self._services).update(launch)
        if self._close(job):
            self._count(record)
        return True

    def _record(self, launch: Launch, job: Job) -> dict[str, Any]:
        artifacts = self._services.artifacts
        key = record_key(job.name)
        results = self._results(job)
        log_tail = [] if job.status == "COMPLETED" else self._services.job_logs.tail(job.name, job.arn)
        record = make_record(launch, job, results, log_tail, stage=self._services.settings.stage)
        replaced: str | None = None
        for _ in range(_WRITE_TRIES):
            if artifacts.write(key, document_bytes(record), replaces=replaced):
                log("record written", job_name=job.name, status=job.status, key=key)
                return record
            known = artifacts.read(key)
            # The first record stays: a job that has ended doesn't change, only its log may still grow.
            if known is not None and read_record(known[0]) is not None:
                return record
            replaced = known[1] if known else None
        raise ConflictingWrite(key)

    def _results(self, job: Job) -> Results:
        bucket, _, prefix = (job.output_path or "").removeprefix("s3://").partition("/")
        if bucket != self._services.settings.job_bucket:
            return Results(None, f"the results are in {job.output_path}, outside of the job bucket")
        archive = self._services.artifacts.open(f"{prefix.rstrip('/')}/output/model.tar.gz")
        if archive is None:
            return Results(None, f"there is no model.tar.gz below {job.output_path}")
        with archive:
            return read_results(archive)

    def _close(self, job: Job) -> bool:
        """Close the launch in the ledger; returns whether it was this call that did."""
        for _ in range(_WRITE_TRIES):
            current = self._services.ledger.get(job.name)
            if current is None or current.state in ENDED_STATES:
                return False
            closed = current.moved(
                State(job.status), self._services.now(), job_arn=job.arn, reason=job.failure_reason or current.reason
            )
            try:
                self._services.ledger.replace(closed)
            except ConflictingWrite:
                continue
            log("launch closed", job_name=job.name, state=closed.state)
            return True
        raise ConflictingWrite(job.name)

    def _count(self, record: dict[str, Any]) -> None:
        values = {f"Jobs{record['status'].capitalize()}": (1.0, "Count")}
        if record["billable_seconds"] is not None:
            values["BillableSeconds"] = (record["billable_seconds"], "Seconds")
        if record["cost_usd"] is not None:
            values["CostUsd"] = (record["cost_usd"], "None")
        seconds = (record["results"] or {}).get("iteration_seconds")
        if isinstance(seconds, list) and seconds and all(isinstance(each, int | float) for each in seconds):
            values["SecondsPerIteration"] = (sum(seconds) / len(seconds), "Seconds")
        emit_metrics(
            self._services.settings.stage,
            self._services.clock.now(),
            values,
            job=record["spec"].get("name") or record["job_name"],
            device=record["device"] or "unknown",
        )
