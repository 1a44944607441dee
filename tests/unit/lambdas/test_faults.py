"""Each call of AWS goes wrong once, in each way: no job is lost or doubled, and a retry repairs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, ReadTimeoutError

from errors import LaunchError
from launches import State
from tests.unit.lambdas.stage import Stage, StageClients, name_of, properties_of

A = properties_of()
NAME = name_of(A)


class Killed(BaseException):
    """The function's process ends here."""


@dataclass(frozen=True)
class Fault:
    """A way for a call to go wrong; `cause` is what the answer must mention."""

    name: str
    cause: str
    inject: Callable[[Stage, int], None]


def _answering(code: str, status: int) -> Callable[[Stage, int], None]:
    def inject(stage: Stage, at: int) -> None:
        stage.plan.before = lambda _, number: (code, status) if number == at else None

    return inject


def _raising(error: Callable[[], BaseException], *, before: bool) -> Callable[[Stage, int], None]:
    def inject(stage: Stage, at: int) -> None:
        def act(_: str, number: int) -> None:
            if number == at:
                raise error()

        if before:
            stage.plan.before = act
        else:
            stage.plan.after = act

    return inject


FAULTS = (
    Fault("throttled", "ThrottlingException", _answering("ThrottlingException", 429)),
    Fault("server error", "InternalServiceException", _answering("InternalServiceException", 500)),
    Fault("access denied", "AccessDeniedException", _answering("AccessDeniedException", 403)),
    Fault("invalid", "ValidationException", _answering("ValidationException", 400)),
    Fault("no connection", "Timeout", _raising(lambda: ConnectTimeoutError(endpoint_url="x"), before=True)),
    Fault("answer lost", "Timeout", _raising(lambda: ReadTimeoutError(endpoint_url="x"), before=False)),
    Fault("killed before", "", _raising(Killed, before=True)),
    Fault("killed after", "", _raising(Killed, before=False)),
)


def calls_of(stage: Stage, act: Callable[[], object]) -> list[str]:
    """The operations that an undisturbed run calls."""
    stage.plan.calls.clear()
    act()
    return list(stage.plan.calls)


def suffer(stage: Stage, fault: Fault, at: int, act: Callable[[], object]) -> BaseException | None:
    """Run with the fault; returns what came out of the function."""
    stage.plan.calls.clear()
    fault.inject(stage, at)
    try:
        act()
    except (LaunchError, ClientError, BotoCoreError, Killed) as error:
        return error
    else:
        return None
    finally:
        stage.plan.heal()


def test_a_create_through_the_real_clients(clients: StageClients) -> None:
    stage = Stage(clients)
    operations = calls_of(stage, lambda: stage.create(A))
    assert {"HeadObject", "CopyObject", "GetItem", "PutItem", "UpdateItem", "Query", "CreateJob"} <= set(operations)
    (lost,) = (fault for fault in FAULTS if fault.name == "answer lost")
    check_creates(lambda: Stage(clients), lost, operations)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_create(clients: StageClients, fault: Fault) -> None:
    stage = Stage(clients, in_memory=True)
    check_creates(lambda: Stage(clients, in_memory=True), fault, calls_of(stage, lambda: stage.create(A)))


def check_creates(make_stage: Callable[[], Stage], fault: Fault, operations: list[str]) -> None:
    for at, operation in enumerate(operations):
        stage = make_stage()
        error = suffer(stage, fault, at, lambda: stage.create(A))  # noqa: B023
        where = f"{fault.name} at call {at}, {operation}"
        assert len(stage.braket.active()) <= 1, where
        if isinstance(error, LaunchError):
            assert fault.cause in str(error), where
            assert stage.braket.active() == [], f"{where}: a failed create leaves no job"
        elif error is None:
            assert stage.ledger(NAME).is_open, where
        if error is not None:
            # The next deploy. Before it the dispatcher that was killed has lost its lease.
            stage.clock.pass_time(61)
            stage.create(A)
        stage.sweep()
        (job,) = stage.braket.active()
        assert stage.ledger(job["jobName"]).state is State.STARTED, where
        assert stage.ledger(job["jobName"]).job_arn == job["jobArn"], where


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_delete(clients: StageClients, fault: Fault) -> None:
    def prepared() -> Stage:
        made = Stage(clients, in_memory=True)
        made.create(A)
        return made

    stage = prepared()
    operations = calls_of(stage, lambda: stage.launch(stage.event("Delete", A, physical_id=NAME)))
    assert {"GetItem", "PutItem", "CancelJob"} <= set(operations)
    for at, operation in enumerate(operations):
        stage = prepared()
        error = suffer(stage, fault, at, lambda: stage.launch(stage.event("Delete", A, physical_id=NAME)))  # noqa: B023
        where = f"{fault.name} at call {at}, {operation}"
        if error is None:
            assert stage.braket.active() == [], f"{where}: a delete that succeeds leaves no job"
        elif isinstance(error, LaunchError):
            assert fault.cause in str(error), where
        stage.launch(stage.event("Delete", A, physical_id=NAME))
        assert stage.braket.active() == [], where


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_collection(clients: StageClients, fault: Fault) -> None:
    def prepared() -> tuple[Stage, str]:
        made = Stage(clients, in_memory=True, max_concurrent_jobs=1)
        made.create(A)
        made.create(A, logical_id="Next")
        made.save_results(NAME, {"a": 1})
        return made, made.braket.end(NAME, "FAILED", reason="no")

    stage, arn = prepared()
    operations = calls_of(stage, lambda: stage.changed(arn))
    assert {"GetJob", "GetItem", "GetObject", "DescribeLogStreams", "PutObject", "PutItem"} <= set(operations)
    for at, operation in enumerate(operations):
        stage, arn = prepared()
        suffer(stage, fault, at, lambda: stage.changed(arn))  # noqa: B023
        where = f"{fault.name} at call {at}, {operation}"
        # Lambda delivers a failed event again; the sweep comes in any case.
        stage.clock.pass_time(61)
        stage.changed(arn)
        stage.sweep()
        assert json.loads(stage.memory.objects[f"records/{NAME}.json"])["results"] == {"a": 1}, where
        assert stage.ledger(NAME).state is State.FAILED, where
        following = stage.ledger(name_of(A, logical_id="Next"))
        if operation == "CreateJob" and fault.name in {"access denied", "invalid"}:
            assert following.state is State.REJECTED, "such an error won't heal"
            assert fault.cause in (following.reason or "")
        else:
            assert [job["jobArn"] for job in stage.braket.active()] == [following.job_arn], where
