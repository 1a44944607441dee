"""Everything a function works with, put together once a process."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from functools import lru_cache

from aws.artifacts import Artifacts
from aws.braket_jobs import BraketJobs
from aws.clients import Clients
from aws.images import Images
from aws.job_logs import JobLogs
from aws.lease import Lease
from aws.ledger import Ledger
from aws.stacks import Stacks
from clock import Clock, Deadline, SystemClock, timestamp
from settings import Settings


@dataclass(frozen=True, kw_only=True)
class Services:
    """The settings of a function and the AWS services that it may call."""

    settings: Settings
    clients: Clients
    clock: Clock

    @property
    def ledger(self) -> Ledger:
        """The launches."""
        return Ledger(self.clients.dynamodb, self.settings.ledger_table)

    @property
    def braket(self) -> BraketJobs:
        """The jobs."""
        return BraketJobs(self.clients.braket)

    @property
    def artifacts(self) -> Artifacts:
        """The job bucket."""
        return Artifacts(self.clients.s3, self.settings.job_bucket)

    @property
    def images(self) -> Images:
        """The image repository."""
        return Images(self.clients.ecr)

    @property
    def job_logs(self) -> JobLogs:
        """What the jobs printed."""
        return JobLogs(self.clients.logs)

    @property
    def stacks(self) -> Stacks:
        """What the stacks hold."""
        return Stacks(self.clients.cloudformation)

    def lease(self) -> Lease:
        """Return the dispatcher's lease, for a new owner."""
        return Lease(self.clients.dynamodb, self.settings.ledger_table, owner=uuid.uuid4().hex)

    def now(self) -> str:
        """Return the present moment as the ledger writes it."""
        return timestamp(self.clock.now())

    def deadline(self, context: object, *, reserve: float = 5.0, default: float = 60.0) -> Deadline:
        """Return the moment by which the function answers: some seconds before Lambda would end it."""
        remaining = getattr(context, "get_remaining_time_in_millis", None)
        seconds = float(remaining()) / 1000 - reserve if callable(remaining) else default
        return Deadline(self.clock, seconds)


@lru_cache(maxsize=1)
def services() -> Services:
    """Return the services of this process, from its environment."""
    settings = Settings.from_environment(os.environ)
    return Services(settings=settings, clients=Clients(settings.region), clock=SystemClock())
