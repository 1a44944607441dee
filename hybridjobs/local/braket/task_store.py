"""Quantum tasks on disk, beside the jobs."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from hybridjobs.local.braket import life_cycle, task_life_cycle
from hybridjobs.local.braket.database import Database
from hybridjobs.local.braket.errors import ServiceError, token_conflict
from hybridjobs.local.braket.task_life_cycle import QuantumTask, task_state_change

_SCHEMA = """
CREATE TABLE IF NOT EXISTS tasks (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id TEXT NOT NULL UNIQUE,
    arn TEXT NOT NULL UNIQUE,
    client_token TEXT NOT NULL UNIQUE,
    fingerprint TEXT NOT NULL,
    request TEXT NOT NULL,
    action TEXT NOT NULL,
    action_type TEXT NOT NULL,
    job_arn TEXT,
    created_at TEXT NOT NULL,
    status TEXT NOT NULL,
    ended_at TEXT,
    failure_reason TEXT,
    tags TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS tasks_by_status ON tasks (status, sequence);
"""

_INSERT = """
INSERT INTO tasks (task_id, arn, client_token, fingerprint, request, action, action_type, job_arn, created_at, status,
    ended_at, failure_reason, tags)
VALUES (:task_id, :arn, :client_token, :fingerprint, :request, :action, :action_type, :job_arn, :created_at, :status,
    :ended_at, :failure_reason, :tags)
"""

_UPDATE = """
UPDATE tasks SET action = :action, status = :status, ended_at = :ended_at, failure_reason = :failure_reason,
    tags = :tags
WHERE task_id = :task_id
"""

# Tasks of jobs come first, then the older ones.
_NEXT = "SELECT * FROM tasks WHERE status = 'QUEUED' ORDER BY job_arn IS NULL, sequence LIMIT 1"
_ACTIVE = "SELECT * FROM tasks WHERE status IN ('RUNNING', 'CANCELLING')"
_AHEAD = "SELECT COUNT(*) FROM tasks WHERE status = 'QUEUED' AND (job_arn IS NULL) = ? AND sequence <= ?"
_PAGE = 200


class TaskStore:
    """Keeps tasks and posts, in the same transaction as each state change, the event that tells of it."""

    def __init__(self, database: Database):
        self._database = database
        database.create_tables(_SCHEMA)

    def create(self, task: QuantumTask) -> QuantumTask:
        """Store a new task, or return the one that the same client token made."""
        with self._database.transaction():
            earlier = self.repeated(task.client_token, task.fingerprint)
            if earlier is not None:
                return earlier
            stored = replace(task, sequence=self._database.execute(_INSERT, _row(task)))
            self._announce(stored)
        return stored

    def repeated(self, client_token: str, fingerprint: str) -> QuantumTask | None:
        """Return the task that `client_token` made; ConflictException if it was for another request."""
        task = self._first("SELECT * FROM tasks WHERE client_token = ?", client_token)
        if task is not None and task.fingerprint != fingerprint:
            raise token_conflict(client_token, task.arn)
        return task

    def get(self, arn: str) -> QuantumTask:
        """Return the task; ResourceNotFoundException for an unknown ARN."""
        task = self._first("SELECT * FROM tasks WHERE arn = ?", arn)
        if task is None:
            raise ServiceError("ResourceNotFoundException", f"Quantum task '{arn}' not found")
        return task

    def update(self, arn: str, change: Callable[[QuantumTask], QuantumTask]) -> QuantumTask:
        """Apply a pure transition and return the task as it is afterwards."""
        with self._database.transaction():
            before = self.get(arn)
            return self._replace(before, change(before))

    def take_next(self) -> QuantumTask | None:
        """Give the next task to the caller, RUNNING; None where none waits."""
        with self._database.transaction():
            task = self._first(_NEXT)
            return None if task is None else self._replace(task, task_life_cycle.running(task))

    def interrupt_all(self, reason: str, moment: datetime) -> None:
        """Settle every task whose computation was under way."""
        for row in self._database.rows(_ACTIVE):
            self.update(row["arn"], lambda task: task_life_cycle.interrupted(task, reason, moment))

    def position(self, task: QuantumTask) -> int:
        """Return the place of a waiting task among those of its priority, 1 for the next."""
        return self._database.count(_AHEAD, [int(task.job_arn is None), task.sequence])

    def waiting(self, *, of_jobs: bool) -> int:
        """Return how many tasks wait, those of jobs or the others."""
        return self._database.count(_AHEAD, [int(not of_jobs), 2**62])

    def newest_first(self, before: int | None = None) -> Iterator[QuantumTask]:
        """Yield the tasks, newest first, beginning after the one at sequence `before`."""
        last = before if before is not None else 2**62
        query = "SELECT * FROM tasks WHERE sequence < ? ORDER BY sequence DESC LIMIT ?"
        while rows := self._database.rows(query, [last, _PAGE]):
            yield from map(_task, rows)
            last = rows[-1]["sequence"]

    def _first(self, query: str, *values: str) -> QuantumTask | None:
        row = self._database.row(query, values)
        return None if row is None else _task(row)

    def _replace(self, before: QuantumTask, after: QuantumTask) -> QuantumTask:
        if after != before:
            self._database.execute(_UPDATE, _row(after))
        if after.status != before.status:
            self._announce(after)
        return after

    def _announce(self, task: QuantumTask) -> None:
        self._database.post(task_state_change(task, task.ended_at or life_cycle.now()))


def _row(task: QuantumTask) -> dict[str, Any]:
    return {
        "task_id": task.task_id,
        "arn": task.arn,
        "client_token": task.client_token,
        "fingerprint": task.fingerprint,
        "request": json.dumps(task.request),
        "action": task.action,
        "action_type": task.action_type,
        "job_arn": task.job_arn,
        "created_at": task.created_at.isoformat(),
        "status": task.status,
        "ended_at": task.ended_at and task.ended_at.isoformat(),
        "failure_reason": task.failure_reason,
        "tags": json.dumps(dict(task.tags)),
    }


def _task(row: sqlite3.Row) -> QuantumTask:
    ended_at = row["ended_at"]
    return QuantumTask(
        task_id=row["task_id"],
        arn=row["arn"],
        client_token=row["client_token"],
        fingerprint=row["fingerprint"],
        request=json.loads(row["request"]),
        action=row["action"],
        action_type=row["action_type"],
        job_arn=row["job_arn"],
        created_at=datetime.fromisoformat(row["created_at"]),
        status=row["status"],
        ended_at=None if ended_at is None else datetime.fromisoformat(ended_at),
        failure_reason=row["failure_reason"],
        tags=json.loads(row["tags"]),
        sequence=row["sequence"],
    )
