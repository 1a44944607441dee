"""The function behind `Braket Job State Change` and behind the schedule of the sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collect_result.collector import Collector
from collect_result.sweep import Sweep
from dispatch.dispatcher import dispatch
from log_lines import log, without_response_url
from services import services

if TYPE_CHECKING:
    from services import Services


class CollectError(Exception):
    """Raised so that Lambda delivers the event again, and to the dead-letter queue in the end."""


def handle(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Serve a state change of a job, or the schedule (`{"sweep": true}`).

    Returns:
        What was done, for the log.

    Raises:
        CollectError: Something could not be looked at; the next delivery or the next sweep tries again.
    """
    log("event", event=without_response_url(event))
    return serve(services(), event, context)


def serve(services: Services, event: dict[str, Any], context: object) -> dict[str, Any]:
    """Serve an event with the given services; see `handle`."""
    deadline = services.deadline(context)
    if event.get("sweep"):
        sweep = Sweep(services, deadline)
        sweep.run()
        if sweep.failed:
            raise CollectError(f"could not look at {', '.join(sweep.failed)}: see the log; the next sweep tries again")
        return {"swept": True}
    arn = _job_arn(event)
    ended = Collector(services).collect_arn(arn)
    if ended:
        dispatch(services, deadline)
    return {"job_arn": arn, "ended": ended}


def _job_arn(event: dict[str, Any]) -> str:
    arn = (event.get("detail") or {}).get("jobArn") or next(iter(event.get("resources") or []), None)
    if not isinstance(arn, str) or ":job/" not in arn:
        raise CollectError(f"detail.jobArn = {arn!r} is not a job's ARN: send Braket Job State Change events only")
    return arn
