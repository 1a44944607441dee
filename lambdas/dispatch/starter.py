"""Starts one launch, finds out how an interrupted start has ended, and ends the job of a launch that was given up."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from clock import moment
from dispatch.diagnosis import Diagnosis, Verdict, diagnose, error_text, is_access_denied, is_transient
from errors import ConflictingWrite
from launches import ENDED_STATES, Launch, Released, State
from log_lines import log

if TYPE_CHECKING:
    from collections.abc import Callable

    from services import Services

# How long after CreateJob was called a job that SearchJobs doesn't show may still appear.
SEARCH_LAG_SECONDS = 120.0
_ROLE_TRIES = 4
_ROLE_PAUSE_SECONDS = 5.0
_WRITE_TRIES = 10


class Outcome(Enum):
    """How the attempt to start a launch has ended."""

    STARTED = "Braket has the job"
    QUOTA = "the launch waits for a place in the account"
    DEVICE = "the launch waits for its device"
    SLOW_DOWN = "the launch waits, and so should the others"
    UNSETTLED = "whether the job exists will be seen later"
    GIVEN_UP = "the launch was rejected or withdrawn"
    OVERTAKEN = "someone else has changed the launch"


_WAITS = {
    Verdict.WAIT_FOR_QUOTA: Outcome.QUOTA,
    Verdict.WAIT_FOR_DEVICE: Outcome.DEVICE,
    Verdict.SLOW_DOWN: Outcome.SLOW_DOWN,
}


class Starter:
    """Takes launches from PENDING or STARTING to wherever CreateJob leads them.

    Args:
        services: What it works with.
        hold: Makes sure of the lease and of the time for one more call; False if either is lost.
    """

    def __init__(self, services: Services, hold: Callable[[], bool]) -> None:
        self._services = services
        self._hold = hold

    def start(self, launch: Launch) -> Outcome:
        """Start a launch that waits.

        The state STARTING is written before CreateJob is called: whoever finds it knows that a job may exist.
        """
        try:
            starting = self._services.ledger.replace(launch.moved(State.STARTING, self._services.now(), reason=None))
        except ConflictingWrite:
            return Outcome.OVERTAKEN
        return self._create(starting)

    def finish(self, launch: Launch) -> Outcome:
        """Find out how a start was left and bring it to its end, without a second job."""
        arn = self.existing_job(launch)
        if arn is not None:
            return self.has_job(launch.name, arn)
        if launch.released is Released.NO:
            return self._create(launch)
        if self._age(launch) < SEARCH_LAG_SECONDS:
            return Outcome.UNSETTLED
        return self._has_no_job(launch.name, State.WITHDRAWN, launch.reason or "deleted before the job was started")

    def _create(self, launch: Launch) -> Outcome:
        request = launch.request or {}
        for attempt in range(_ROLE_TRIES):
            try:
                arn = self._services.braket.create(request)
            except (ClientError, BotoCoreError) as error:
                diagnosis = diagnose(error, request, region=self._services.settings.region)
            else:
                return self.has_job(launch.name, arn)
            if diagnosis.verdict is not Verdict.ROLE_NOT_READY or attempt == _ROLE_TRIES - 1:
                break
            self._services.clock.sleep(_ROLE_PAUSE_SECONDS)
            if not self._hold():
                break
        log("CreateJob failed", job_name=launch.name, verdict=diagnosis.verdict.name, reason=diagnosis.reason)
        return self._refused(launch, diagnosis)

    def _refused(self, launch: Launch, diagnosis: Diagnosis) -> Outcome:
        if diagnosis.verdict in _WAITS:
            return self._has_no_job(launch.name, State.PENDING, diagnosis.reason, _WAITS[diagnosis.verdict])
        if diagnosis.verdict is Verdict.UNCERTAIN:
            return self._remember(launch.name, diagnosis.reason)
        if diagnosis.verdict is Verdict.TAKEN:
            arn = self.existing_job(launch)
            if arn is not None:
                return self.has_job(launch.name, arn)
            if self._age(launch) < SEARCH_LAG_SECONDS:
                return self._remember(launch.name, diagnosis.reason)
        return self._has_no_job(launch.name, State.REJECTED, diagnosis.reason)

    def existing_job(self, launch: Launch) -> str | None:
        """Return the ARN of the job that Braket has for a launch, if it has one."""
        jobs = [job for job in self._services.braket.find(launch.name) if launch.owns(job.tags)]
        if not jobs:
            return None
        # One job a name is the rule. If there ever are two, the first stays and the others end.
        kept = min(jobs, key=lambda job: (job.arn != launch.job_arn, not job.is_active, job.created_at, job.arn))
        for job in jobs:
            if job.is_active and job.arn != kept.arn:
                end_job(self._services, job.arn)
        return kept.arn

    def has_job(self, name: str, arn: str) -> Outcome:
        """Write down that Braket has the job; if nobody wants it any more, end it."""
        for _ in range(_WRITE_TRIES):
            current = self._services.ledger.get(name)
            if current is None or (current.job_arn is not None and current.job_arn != arn):
                log("job without a launch is ended", job_name=name, job_arn=arn)
                end_job(self._services, arn)
                return Outcome.OVERTAKEN
            if current.released is not Released.NO and current.state not in ENDED_STATES:
                end_job(self._services, arn)
            if current.job_arn == arn and (current.state is State.STARTED or current.state in ENDED_STATES):
                return Outcome.STARTED
            started = current.moved(
                State.STARTED, self._services.now(), job_arn=arn, reason=None, open_since=current.order[0]
            )
            try:
                self._services.ledger.replace(started)
            except ConflictingWrite:
                continue
            log("job started", job_name=name, job_arn=arn)
            return Outcome.STARTED
        return Outcome.UNSETTLED

    def _has_no_job(self, name: str, state: State, reason: str, outcome: Outcome = Outcome.GIVEN_UP) -> Outcome:
        """Write down that CreateJob has made no job, and where that leaves the launch."""
        for _ in range(_WRITE_TRIES):
            current = self._services.ledger.get(name)
            if current is None or current.state is not State.STARTING:
                return Outcome.OVERTAKEN
            gone = current.released is not Released.NO
            try:
                self._services.ledger.replace(
                    current.moved(State.WITHDRAWN if gone else state, self._services.now(), reason=reason)
                )
            except ConflictingWrite:
                continue
            return Outcome.GIVEN_UP if gone else outcome
        return Outcome.OVERTAKEN

    def _remember(self, name: str, reason: str) -> Outcome:
        current = self._services.ledger.get(name)
        if current is not None and current.state is State.STARTING and current.reason != reason:
            try:
                # `updated_at` stays: it says when CreateJob was called first.
                self._services.ledger.replace(current.moved(State.STARTING, current.updated_at, reason=reason))
            except ConflictingWrite:
                return Outcome.OVERTAKEN
        return Outcome.UNSETTLED

    def _age(self, launch: Launch) -> float:
        return (self._services.clock.now() - moment(launch.updated_at)).total_seconds()


def end_job(services: Services, arn: str) -> None:
    """Ask Braket to end a job, whatever state it is in; an ended, ending or unknown job is fine.

    Raises:
        ClientError: The permission is missing, or Braket stays out of reach: the job may go on and be billed.
        BotoCoreError: Braket stays out of reach.
    """
    try:
        services.braket.cancel(arn)
    except ClientError as error:
        if is_access_denied(error) or is_transient(error):
            raise
        # Conflict, a validation error about the job's state, or a job that isn't there, which a new one may seem to be:
        # what counts is whether it is active.
        job = services.braket.get(arn)
        if job is None or not job.is_active:
            return
        code, text = error_text(error)
        log("CancelJob was refused for an active job; asking once more", job_arn=arn, code=code, text=text)
        services.braket.cancel(arn)
    log("job asked to end", job_arn=arn)
