"""Looks at everything that should have ended or started by now: what an event or a crash has missed."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from clock import moment
from collect_result.collector import Collector
from collect_result.summariser import Summariser
from collect_result.summary import groups
from dispatch.dispatcher import dispatch
from dispatch.starter import end_job
from errors import ConflictingWrite, LaunchError
from launch_job.release import release
from launches import Launch, Released, State
from log_lines import emit_metrics, log

if TYPE_CHECKING:
    from collections.abc import Callable

    from clock import Deadline
    from services import Services

# CloudFormation waits five minutes for the answer to a launch; after three times that it has one.
_SETTLED_AFTER = timedelta(minutes=15)
# A job runs for at most five days.
_LONGEST_JOB = timedelta(days=6)


class Sweep:
    """One sweep. One thing that can't be looked at doesn't keep it from the others; `failed` names them."""

    def __init__(self, services: Services, deadline: Deadline) -> None:
        self._services = services
        self._deadline = deadline
        self._collector = Collector(services)
        self.failed: list[str] = []

    def run(self) -> None:
        """Collect what has ended, start what waits, report what belongs to no stack, complete the summaries."""
        for launch in self._services.ledger.open_launches():
            self._guarded(launch.name, partial(self._collector.look, launch))
        self._guarded("dispatch", lambda: dispatch(self._services, self._deadline))
        self._guarded("orphans", self._report_orphans)
        self._guarded("summaries", self._complete_summaries)

    def _guarded(self, name: str, act: Callable[[], None]) -> None:
        try:
            act()
        except (ClientError, BotoCoreError, ConflictingWrite, LaunchError) as error:
            log("the sweep could not look at something", name=name, error=str(error))
            self.failed.append(name)

    def _report_orphans(self) -> None:
        """Report launches and jobs that no stack resource holds, and end them if the stage says so."""
        launches = self._services.ledger.open_launches()
        orphans: list[Launch] = []
        for launch in launches:
            self._guarded(launch.name, partial(self._report_if_orphan, launch, orphans))
        strangers = self._unknown_jobs()
        emit_metrics(
            self._services.settings.stage,
            self._services.clock.now(),
            {
                "PendingLaunches": (float(sum(launch.state is State.PENDING for launch in launches)), "Count"),
                "RunningJobs": (float(sum(launch.state is State.STARTED for launch in launches)), "Count"),
                "Orphans": (float(len(orphans) + strangers), "Count"),
            },
        )

    def _report_if_orphan(self, launch: Launch, orphans: list[Launch]) -> None:
        if not self._is_orphan(launch):
            return
        orphans.append(launch)
        log("orphan: no stack resource holds this launch", job_name=launch.name, stack_id=launch.identity.stack_id)
        if self._services.settings.cancel_orphans:
            release(
                self._services,
                launch.name,
                why=Released.DELETED,
                request_id=f"sweep {self._services.now()}",
                deadline=self._deadline,
                reason="no stack resource holds this launch",
            )

    def _is_orphan(self, launch: Launch) -> bool:
        age = self._services.clock.now() - moment(launch.requested_at)
        if launch.released is not Released.NO or age < _SETTLED_AFTER:
            return False
        stacks = self._services.stacks
        # During an update CloudFormation may still go back to what the resource doesn't name any more.
        if stacks.is_changing(launch.identity.stack_id):
            return False
        return stacks.physical_id(launch.identity.stack_id, launch.identity.logical_id) != launch.name

    def _unknown_jobs(self) -> int:
        """Report active jobs that carry this stage's tag and that the ledger doesn't know; returns how many."""
        count = 0
        stage = self._services.settings.stage
        for job in self._services.braket.since(self._services.clock.now() - _LONGEST_JOB):
            if not job.is_active or job.tags.get("hybrid-jobs:stage") != stage:
                continue
            launch = self._services.ledger.get(job.name)
            if launch is None:
                count += 1
                log("orphan: the ledger does not know this job", job_name=job.name, job_arn=job.arn)
                if self._services.settings.cancel_orphans:
                    end_job(self._services, job.arn)
            elif launch.job_arn not in {None, job.arn}:
                # Braket's memory of the client token was shorter than a repeated start: the first job stays.
                log("a second job of a launch is ended", job_name=job.name, job_arn=job.arn)
                end_job(self._services, job.arn)
        return count

    def _complete_summaries(self) -> None:
        since = self._services.clock.now() - _LONGEST_JOB
        for launch in groups(self._services.ledger.all_launches()):
            if moment(launch.requested_at) >= since:
                Summariser(self._services).update(launch)
