"""Jobs on disk, so that every accepted job and each of its states survives the process."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from hybridjobs.local.braket import life_cycle
from hybridjobs.local.braket.database import Database
from hybridjobs.local.braket.errors import ServiceError, token_conflict
from hybridjobs.local.braket.events import job_state_change
from hybridjobs.local.braket.life_cycle import Job, JobEvent

_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL UNIQUE,
    arn TEXT NOT NULL UNIQUE,
    job_token TEXT NOT NULL UNIQUE,
    client_token TEXT NOT NULL UNIQUE,
    fingerprint TEXT NOT NULL,
    request TEXT NOT NULL,
    created_at TEXT NOT NULL,
    status TEXT NOT NULL,
    taken INTEGER NOT NULL,
    started_at TEXT,
    ended_at TEXT,
    failure_reason TEXT,
    events TEXT NOT NULL,
    tags TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS jobs_by_status ON jobs (status, taken, sequence);
"""

_INSERT = """
INSERT INTO jobs (job_id, arn, job_token, client_token, fingerprint, request, created_at, status, taken, started_at,
    ended_at, failure_reason, events, tags)
VALUES (:job_id, :arn, :job_token, :client_token, :fingerprint, :request, :created_at, :status, :taken, :started_at,
    :ended_at, :failure_reason, :events, :tags)
"""

_UPDATE = """
UPDATE jobs SET status = :status, taken = :taken, started_at = :started_at, ended_at = :ended_at,
    failure_reason = :failure_reason, events = :events, tags = :tags
WHERE job_id = :job_id
"""

_ACTIVE = "SELECT * FROM jobs WHERE status IN ('QUEUED', 'RUNNING', 'CANCELLING') ORDER BY sequence"
_PAGE = 200


class JobStore:
    """Keeps jobs and posts, in the same transaction as each state change, the event that tells of it."""

    def __init__(self, database: Database):
        self._database = database
        database.create_tables(_SCHEMA)

    def create(self, job: Job, admit: Callable[[Sequence[Job]], None]) -> Job:
        """Store a new job if `admit`, called with the jobs that haven't ended, raises nothing.

        A job with the same client token is returned instead, or ConflictException raised where its request differed.
        """
        with self._database.transaction():
            earlier = self.repeated(job.client_token, job.fingerprint)
            if earlier is not None:
                return earlier
            admit([_job(row) for row in self._database.rows(_ACTIVE)])
            stored = replace(job, sequence=self._database.execute(_INSERT, _row(job)))
            self._announce(stored)
        return stored

    def repeated(self, client_token: str, fingerprint: str) -> Job | None:
        """Return the job that `client_token` made; ConflictException if it was for another request."""
        job = self._first("SELECT * FROM jobs WHERE client_token = ?", client_token)
        if job is not None and job.fingerprint != fingerprint:
            raise token_conflict(client_token, job.arn)
        return job

    def get(self, arn: str) -> Job:
        """Return the job; ResourceNotFoundException for an unknown ARN."""
        job = self._first("SELECT * FROM jobs WHERE arn = ?", arn)
        if job is None:
            raise ServiceError("ResourceNotFoundException", f"Job '{arn}' not found")
        return job

    def with_token(self, job_token: str) -> Job | None:
        """Return the job that runs with `job_token`."""
        return self._first("SELECT * FROM jobs WHERE job_token = ?", job_token)

    def update(self, arn: str, change: Callable[[Job], Job]) -> Job:
        """Apply a pure transition and return the job as it is afterwards."""
        with self._database.transaction():
            before = self.get(arn)
            return self._replace(before, change(before))

    def take_next(self, moment: datetime) -> Job | None:
        """Give the job that has waited longest to the caller; None where none waits."""
        with self._database.transaction():
            job = self._first("SELECT * FROM jobs WHERE status = 'QUEUED' AND taken = 0 ORDER BY sequence LIMIT 1")
            return None if job is None else self._replace(job, life_cycle.taken(job, moment))

    def interrupt_all(self, reason: str, moment: datetime) -> None:
        """Settle every job that a worker had and that can't be executed to its end."""
        for row in self._database.rows(_ACTIVE):
            self.update(row["arn"], lambda job: life_cycle.interrupted(job, reason, moment))

    def position(self, job: Job) -> int:
        """Return the place of a waiting job in the queue, 1 for the next."""
        return self._database.count(
            "SELECT COUNT(*) FROM jobs WHERE status = 'QUEUED' AND taken = 0 AND sequence <= ?", [job.sequence]
        )

    def waiting(self, device: str) -> int:
        """Return how many jobs for `device` wait."""
        rows = self._database.rows("SELECT * FROM jobs WHERE status = 'QUEUED' AND taken = 0")
        return sum(_job(row).device == device for row in rows)

    def newest_first(self, before: int | None = None) -> Iterator[Job]:
        """Yield the jobs, newest first, beginning after the one at sequence `before`."""
        last = before if before is not None else 2**62
        query = "SELECT * FROM jobs WHERE sequence < ? ORDER BY sequence DESC LIMIT ?"
        while rows := self._database.rows(query, [last, _PAGE]):
            yield from map(_job, rows)
            last = rows[-1]["sequence"]

    def _first(self, query: str, *values: str) -> Job | None:
        row = self._database.row(query, values)
        return None if row is None else _job(row)

    def _replace(self, before: Job, after: Job) -> Job:
        if after != before:
            self._database.execute(_UPDATE, _row(after))
        if after.status != before.status:
            self._announce(after)
        return after

    def _announce(self, job: Job) -> None:
        moment = job.ended_at or life_cycle.now()
        self._database.post(job_state_change(job, moment))


def _row(job: Job) -> dict[str, Any]:
    return {
        "job_id": job.job_id,
        "arn": job.arn,
        "job_token": job.job_token,
        "client_token": job.client_token,
        "fingerprint": job.fingerprint,
        "request": json.dumps(job.request),
        "created_at": job.created_at.isoformat(),
        "status": job.status,
        "taken": int(job.taken),
        "started_at": job.started_at and job.started_at.isoformat(),
        "ended_at": job.ended_at and job.ended_at.isoformat(),
        "failure_reason": job.failure_reason,
        "events": json.dumps([(event.type, event.time.isoformat(), event.message) for event in job.events]),
        "tags": json.dumps(dict(job.tags)),
    }


def _job(row: sqlite3.Row) -> Job:
    return Job(
        job_id=row["job_id"],
        arn=row["arn"],
        job_token=row["job_token"],
        client_token=row["client_token"],
        fingerprint=row["fingerprint"],
        request=json.loads(row["request"]),
        created_at=datetime.fromisoformat(row["created_at"]),
        status=row["status"],
        taken=bool(row["taken"]),
        started_at=_moment(row["started_at"]),
        ended_at=_moment(row["ended_at"]),
        failure_reason=row["failure_reason"],
        events=tuple(
            JobEvent(kind, datetime.fromisoformat(time), message) for kind, time, message in json.loads(row["events"])
        ),
        tags=json.loads(row["tags"]),
        sequence=row["sequence"],
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
