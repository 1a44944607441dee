"""Starts what waits, one dispatcher at a time, in the order of the requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from dispatch.choice import choose
from dispatch.diagnosis import is_transient
from dispatch.starter import Outcome, Starter
from log_lines import log

if TYPE_CHECKING:
    from aws.lease import Lease
    from clock import Deadline
    from launches import Launch
    from services import Services

# Longer than the longest CreateJob with its retries (aws/clients.py), so that the lease never expires under one.
LEASE_SECONDS = 60.0
# What one start may take: with less time than this nothing more is started.
START_SECONDS = 45.0
# CreateJob allows a burst of five and then one a second.
_BURST = 4
_PACE_SECONDS = 1.0
_WAIT_SECONDS = 0.5
_UNSETTLED_PAUSE_SECONDS = 2.0
_MAX_LOOKS = 3
_MAX_PASSES = 20


def dispatch(services: Services, deadline: Deadline) -> None:
    """Start the launches that wait, as far as the limit of concurrent jobs allows.

    Returns when a pass that began after this call is done, by whomever: a launch that the caller has put into the
    ledger has then been seen. If another dispatcher holds the lease and neither finishes nor expires before the
    deadline, the wish stays in the ledger and the next dispatcher (a launch, an ended job or the sweep) serves it.

    Raises:
        ClientError: The ledger or Braket refuses something that isn't a launch's own fault.
        BotoCoreError: They are out of reach.
    """
    lease = services.lease()
    wish = lease.want()
    while True:
        held = lease.acquire(services.clock.now().timestamp(), LEASE_SECONDS)
        if held is not None:
            _Dispatcher(services, lease, deadline).serve(held.wanted)
            return
        if lease.read().served >= wish or deadline.remaining() < _WAIT_SECONDS:
            return
        services.clock.sleep(_WAIT_SECONDS)


class _Dispatcher:
    """The holder of the lease."""

    def __init__(self, services: Services, lease: Lease, deadline: Deadline) -> None:
        self._services = services
        self._lease = lease
        self._deadline = deadline
        self._starter = Starter(services, self._hold)
        self._created = 0
        self._cut_short = False

    def serve(self, wanted: int) -> None:
        """Run passes until there is no wish that a pass hasn't served."""
        looks = 0
        try:
            for _ in range(_MAX_PASSES):
                settled = self._pass()
                if self._cut_short:
                    break
                if not settled and looks < _MAX_LOOKS:
                    looks += 1
                    self._services.clock.sleep(_UNSETTLED_PAUSE_SECONDS)
                elif self._lease.finish(wanted):
                    return
                held = self._lease.renew(self._services.clock.now().timestamp(), LEASE_SECONDS)
                if held is None:
                    return
                wanted = held.wanted
        except Exception:
            self._abandon_quietly()
            raise
        self._lease.abandon()

    def _pass(self) -> bool:
        """Attend to every launch once; False if something is worth another look in a moment."""
        choice = choose(self._services.ledger.open_launches(), self._services.settings.max_concurrent_jobs)
        settled = True
        if choice.unfinished:
            for launch in choice.unfinished:
                settled = self._finish(launch) and settled
            choice = choose(self._services.ledger.open_launches(), self._services.settings.max_concurrent_jobs)
        places = choice.places
        full: set[str] = set()
        for launch in choice.next_up:
            instance_type = _instance_type(launch)
            if instance_type in full:
                continue
            if places == 0 or not self._hold():
                break
            outcome = self._paced_start(launch)
            if outcome in {Outcome.STARTED, Outcome.UNSETTLED, Outcome.OVERTAKEN}:
                places -= 1
            if outcome is Outcome.QUOTA:
                # The limit may be this instance type's own: a job of another type may still find a place.
                full.add(instance_type)
            if outcome in {Outcome.UNSETTLED, Outcome.SLOW_DOWN}:
                return False
        return settled

    def _finish(self, launch: Launch) -> bool:
        if not self._hold():
            return True
        try:
            return self._starter.finish(launch) is not Outcome.UNSETTLED or bool(launch.released)
        except (ClientError, BotoCoreError) as error:
            if not is_transient(error):
                raise
            log("an unfinished start can't be looked up yet", job_name=launch.name, error=str(error))
            return False

    def _paced_start(self, launch: Launch) -> Outcome:
        if self._created >= _BURST:
            self._services.clock.sleep(_PACE_SECONDS)
        self._created += 1
        return self._starter.start(launch)

    def _hold(self) -> bool:
        if self._deadline.remaining() < START_SECONDS:
            self._cut_short = True
            return False
        return self._lease.renew(self._services.clock.now().timestamp(), LEASE_SECONDS) is not None

    def _abandon_quietly(self) -> None:
        try:
            self._lease.abandon()
        except (ClientError, BotoCoreError) as error:
            # It expires by itself; the error that led here is the one to report.
            log("the dispatcher's lease could not be given back", error=str(error))


def _instance_type(launch: Launch) -> str:
    return str((launch.request or {}).get("instanceConfig", {}).get("instanceType", ""))
