"""Lets a launch go: withdraws it, or ends its job; and makes sure that a late request doesn't bring it back."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from dispatch.diagnosis import is_transient
from dispatch.dispatcher import START_SECONDS
from dispatch.starter import Starter, end_job
from errors import ConflictingWrite, LaunchError
from launches import Identity, Launch, Released, State
from log_lines import log

if TYPE_CHECKING:
    from collections.abc import Callable

    from clock import Deadline
    from services import Services

_WRITE_TRIES = 10
_CALL_TRIES = 4
_CALL_PAUSE_SECONDS = 2.0


def release(
    services: Services,
    name: str,
    *,
    why: Released,
    request_id: str,
    deadline: Deadline,
    reason: str | None = None,
) -> bool:
    """Let go of one launch that the ledger has.

    The ledger learns it first, so that a dispatcher that is just calling CreateJob ends the job itself.

    Returns:
        Whether the ledger has such a launch.

    Raises:
        ClientError, BotoCoreError: The job may still run: permission is missing, or the service stays out of reach.
    """
    for _ in range(_WRITE_TRIES):
        current = services.ledger.get(name)
        if current is None:
            return False
        try:
            released = _write(services, current, why=why, request_id=request_id, reason=reason)
        except ConflictingWrite:
            continue
        log("launch released", job_name=name, state=released.state, why=why)
        end_released(services, released, deadline)
        return True
    raise LaunchError(f"{name} changes too fast to be let go", remedy="Try again")


def release_unanswered(services: Services, identity: Identity, *, request_id: str, deadline: Deadline) -> None:
    """Let go of a launch that was asked for by a request that CloudFormation has given up waiting for.

    The request may have been served, may be in the middle of it, or may still be on its way: for that case a
    tombstone stays in the ledger.

    Raises:
        ClientError, BotoCoreError: As `release`.
    """
    known = services.ledger.generations(identity)
    served = [launch.name for launch in known if request_id in launch.request_ids]
    if not served:
        latest = known[-1] if known else None
        name = latest.name if latest else identity.name()
        if latest is not None and latest.is_used_up:
            end_released(services, latest, deadline)
            # A request that is on its way takes the next name.
            name = identity.name(len(known))
        _bury(services, name, identity, request_id)
        served = [name]
    # If this very event has been served before, what was launched since is not meant.
    for name in served:
        release(services, name, why=Released.DELETED, request_id=request_id, deadline=deadline)
        _patiently(services, deadline, partial(_end_by_name, services, name))


def _bury(services: Services, name: str, identity: Identity, request_id: str) -> None:
    """Leave word that a request for this launch may still come, if the ledger hasn't seen it."""
    for _ in range(_WRITE_TRIES):
        current = services.ledger.get(name)
        now = services.now()
        try:
            if current is None:
                services.ledger.create(
                    Launch(
                        name=name,
                        state=State.WITHDRAWN,
                        identity=identity,
                        requested_at=now,
                        updated_at=now,
                        request_ids=frozenset({request_id}),
                        released=Released.DELETED,
                        overtaken_at=now,
                        reason="deleted before it was asked for",
                    )
                )
            elif current.released is Released.DELETED:
                services.ledger.replace(
                    replace(current, overtaken_at=now, request_ids=current.request_ids | {request_id})
                )
        except ConflictingWrite:
            continue
        return
    raise LaunchError(f"{name} changes too fast to be let go", remedy="Try again")


def _write(services: Services, current: Launch, *, why: Released, request_id: str, reason: str | None) -> Launch:
    if request_id in current.request_ids and (why is Released.DELETED or current.released is not Released.NO):
        # This very event has been served before; the launch may have been made again since.
        return current
    changed = replace(
        current,
        released=current.released if current.released is Released.DELETED else why,
        request_ids=current.request_ids | {request_id},
        reason=reason or current.reason,
    )
    if current.state is State.PENDING:
        changed = changed.moved(State.WITHDRAWN, services.now())
    return services.ledger.replace(changed)


def end_released(services: Services, launch: Launch, deadline: Deadline) -> None:
    """End the job of a launch that was let go, if it has one; a launch that is held is left alone.

    Raises:
        ClientError, BotoCoreError: As `release`.
    """
    if launch.released is Released.NO:
        return
    if launch.state is State.STARTING:
        _patiently(services, deadline, partial(_finish_start, services, launch))
    elif launch.state is State.STARTED and launch.job_arn is not None:
        _patiently(services, deadline, partial(end_job, services, launch.job_arn))


def _finish_start(services: Services, launch: Launch) -> None:
    Starter(services, lambda: True).finish(launch)


def _end_by_name(services: Services, name: str) -> None:
    """End the jobs that Braket has under the name of a launch that was let go, whatever the ledger knows of them."""
    launch = services.ledger.get(name)
    if launch is None or launch.released is Released.NO:
        return
    for job in services.braket.find(name):
        if job.is_active and launch.owns(job.tags):
            end_job(services, job.arn)


def _patiently(services: Services, deadline: Deadline, call: Callable[[], None]) -> None:
    """Call again after a passing failure: what isn't cancelled here may be billed for days."""
    for attempt in range(_CALL_TRIES):
        try:
            call()
        except (ClientError, BotoCoreError) as error:
            if attempt == _CALL_TRIES - 1 or not is_transient(error) or deadline.remaining() < START_SECONDS:
                raise
            log("trying again to end a job", error=str(error))
            services.clock.sleep(_CALL_PAUSE_SECONDS)
        else:
            return
