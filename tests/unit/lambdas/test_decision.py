"""The rules for a request that meets a launch of the same name."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from clock import timestamp
from launch_job.decision import Action, decide
from launches import Identity, Launch, Released, State

NOW = datetime(2026, 11, 30, tzinfo=UTC)
IDENTITY = Identity("job", "stack", "JobA", "hash", "1")


def decided(
    state: State,
    *,
    released: Released = Released.NO,
    asked_before: bool = False,
    creates: bool = True,
    overtaken: timedelta | None = None,
) -> Action:
    found = Launch(
        name=IDENTITY.name(),
        state=state,
        identity=IDENTITY,
        requested_at=timestamp(NOW),
        updated_at=timestamp(NOW),
        request_ids=frozenset({"this"} if asked_before else {"another"}),
        released=released,
    )
    if overtaken is not None:
        found = replace(found, overtaken_at=timestamp(NOW - overtaken))
    return decide(found, [], "this", creates=creates, now=NOW)


def test_a_name_that_nobody_has_asked_for_is_launched() -> None:
    assert decide(None, [], "this", creates=True, now=NOW) is Action.LAUNCH


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("asked_before", [True, False])
def test_a_rollback_to_a_launch_that_is_held_starts_nothing(state: State, asked_before: bool) -> None:
    assert decided(state, asked_before=asked_before, creates=False) is Action.ADOPT


@pytest.mark.parametrize("state", [State.COMPLETED, State.FAILED])
@pytest.mark.parametrize("released", Released)
def test_what_ran_to_its_end_is_not_run_again_under_the_same_run_number(state: State, released: Released) -> None:
    assert decided(state, released=released) is Action.ADOPT


@pytest.mark.parametrize("state", [State.PENDING, State.STARTING, State.STARTED])
def test_a_second_delivery_finds_the_launch_of_the_first(state: State) -> None:
    assert decided(state, asked_before=True) is Action.ADOPT


@pytest.mark.parametrize("state", [State.STARTING, State.STARTED, State.CANCELLED, State.WITHDRAWN, State.REJECTED])
def test_a_delivery_that_comes_after_its_delete_starts_nothing(state: State) -> None:
    assert decided(state, released=Released.DELETED, asked_before=True) is Action.REFUSE


@pytest.mark.parametrize("state", [State.STARTING, State.STARTED, State.CANCELLED])
def test_a_job_that_was_cancelled_by_a_delete_gets_a_new_name_when_it_is_wanted_again(state: State) -> None:
    assert decided(state, released=Released.DELETED) is Action.NEXT_GENERATION


@pytest.mark.parametrize("state", [State.WITHDRAWN, State.REJECTED])
def test_what_never_had_a_job_is_launched_under_its_name_when_it_is_wanted_again(state: State) -> None:
    assert decided(state, released=Released.DELETED) is Action.LAUNCH_AGAIN


def test_a_create_after_a_delete_that_came_first_may_be_the_overtaken_one() -> None:
    def after(hours: float) -> Action:
        return decided(State.WITHDRAWN, released=Released.DELETED, overtaken=timedelta(hours=hours))

    assert after(0.1) is Action.REFUSE
    assert after(5.9) is Action.REFUSE
    assert after(6.1) is Action.LAUNCH_AGAIN


def test_a_launch_that_failed_and_was_answered_so_is_made_again() -> None:
    assert decided(State.REJECTED, released=Released.FAILED) is Action.LAUNCH_AGAIN
    assert decided(State.REJECTED, released=Released.FAILED, asked_before=True) is Action.LAUNCH_AGAIN


def test_a_delivery_for_a_name_that_is_used_up_does_not_start_the_next() -> None:
    found = Launch(
        name="job-2",
        state=State.CANCELLED,
        identity=IDENTITY,
        requested_at="",
        updated_at="",
        released=Released.DELETED,
        request_ids=frozenset({"another"}),
    )
    earlier = replace(found, name="job-1", request_ids=frozenset({"this"}))
    assert decide(found, [earlier], "this", creates=True, now=NOW) is Action.REFUSE
    assert decide(found, [earlier], "new", creates=True, now=NOW) is Action.NEXT_GENERATION


def test_a_create_does_not_inherit_a_rejection_that_nobody_was_told_of() -> None:
    assert decided(State.REJECTED) is Action.LAUNCH_AGAIN
    assert decided(State.REJECTED, asked_before=True) is Action.ADOPT
