"""What to do about a launch that is asked for, from what the ledger says of its name. No AWS here."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from clock import moment
from launches import Launch, Released, State

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

# For so long an event that CloudFormation has given up may wait in Lambda's queue.
LATEST_EVENT_SECONDS = 6 * 3600.0


class Action(Enum):
    """What to do."""

    LAUNCH = "there is no such launch: make it"
    LAUNCH_AGAIN = "it was given up before it had a job, and is wanted again: make it under the same name"
    ADOPT = "it is there already: answer with it, and start nothing"
    NEXT_GENERATION = "its job was cancelled for a Delete, and it is wanted again: look at the next name"
    REFUSE = "a Delete has overtaken this request, or may have: start nothing"


def decide(found: Launch | None, earlier: Sequence[Launch], request_id: str, *, creates: bool, now: datetime) -> Action:
    """Decide about a request for a launch.

    A launch that CloudFormation still holds is never made twice, which is what makes a rollback free. One that ran
    to its end isn't either: the stage's `run` asks for another. One that CloudFormation has let go is made again, but
    only for a request that the letting-go can't have been meant for.

    Args:
        found: The latest launch of the identity that the ledger has.
        earlier: Those before it, whose names are used up.
        request_id: CloudFormation's id of this request, the same for every delivery of it.
        creates: Whether it is a Create: then CloudFormation holds nothing, whatever the ledger says.
        now: The present moment.
    """
    if found is None:
        return Action.LAUNCH
    asked_before = request_id in found.request_ids
    if not asked_before and any(request_id in launch.request_ids for launch in earlier):
        return Action.REFUSE
    if found.state in {State.COMPLETED, State.FAILED}:
        return Action.ADOPT
    if found.released is Released.NO:
        again = found.state is State.REJECTED and creates and not asked_before
        return Action.LAUNCH_AGAIN if again else Action.ADOPT
    if found.released is Released.DELETED and (asked_before or _overtaken_lately(found, now)):
        return Action.REFUSE
    return Action.NEXT_GENERATION if found.is_used_up else Action.LAUNCH_AGAIN


def _overtaken_lately(launch: Launch, now: datetime) -> bool:
    if launch.overtaken_at is None:
        return False
    return (now - moment(launch.overtaken_at)).total_seconds() < LATEST_EVENT_SECONDS
