"""The queue: never more than the limit, in order, nobody forgotten, nobody started twice."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError

from dispatch.choice import choose
from dispatch.diagnosis import Verdict, diagnose
from dispatch.dispatcher import dispatch
from errors import LaunchError
from launches import Identity, Launch, Released, State
from tests.unit.lambdas.faults import Killed
from tests.unit.lambdas.stage import PRICE, Stage, StageClients, document_of, name_of, properties_of


def create(stage: Stage, number: int, **document: Any) -> str:
    return stage.create(properties_of(document_of(f"job-{number:02d}", **document)), logical_id=f"Job{number}")


def started_in_order(stage: Stage) -> list[str]:
    return [job["jobName"] for job in stage.braket.jobs.values()]


def test_twelve_jobs_run_three_at_a_time_and_in_order(stage: Stage) -> None:
    stage.braket.max_concurrent_jobs = 3
    names = [create(stage, number) for number in range(12)]
    ended = 0
    while stage.services.ledger.open_launches():
        # Lost events: only every other end is told of, the sweep finds the rest.
        name = stage.braket.active()[0]["jobName"]
        arn = stage.braket.end(name, "COMPLETED")
        ended += 1
        if ended % 2:
            stage.changed(arn)
        else:
            stage.sweep()
    assert started_in_order(stage) == names
    assert stage.braket.most_at_once == 3
    assert {stage.ledger(name).state for name in names} == {State.COMPLETED}


@pytest.mark.parametrize("places", [1, 3])
def test_twelve_jobs_run_in_order_although_every_dispatcher_dies_and_no_event_comes(
    clients: StageClients, places: int
) -> None:
    """Each is killed once between CreateJob and its record; only the sweep, which comes every five minutes, goes on."""
    stage = Stage(clients, in_memory=True, max_concurrent_jobs=places)
    stage.braket.max_concurrent_jobs = places
    killed: set[str] = set()

    def kill(operation: str, _: int) -> None:
        if operation == "CreateJob":
            newest = list(stage.braket.jobs)[-1]
            name = stage.braket.jobs[newest]["jobName"]
            if name not in killed:
                killed.add(name)
                raise Killed

    stage.plan.after = kill
    names = []
    for number in range(12):
        properties = properties_of(document_of(f"job-{number:02d}"))
        names.append(name_of(properties, logical_id=f"Job{number}"))
        event = stage.event("Create", properties, logical_id=f"Job{number}")
        for _ in range(2):
            # CloudFormation's own retry of an event that was not answered.
            with contextlib.suppress(Killed):
                stage.launch(event)
    for _ in range(100):
        if not stage.services.ledger.open_launches():
            break
        for job in stage.braket.active()[:1]:
            stage.braket.end(job["jobName"], "COMPLETED")
        stage.clock.pass_time(300)
        with contextlib.suppress(Killed):
            stage.sweep()
    assert killed == set(names)
    assert started_in_order(stage) == names
    assert stage.braket.most_at_once == places
    assert {stage.ledger(name).state for name in names} == {State.COMPLETED}


@pytest.mark.parametrize("after_the_call", [True, False])
def test_a_dispatcher_that_dies_at_create_job_loses_and_doubles_nothing(stage: Stage, after_the_call: bool) -> None:
    def kill(name: str, _: int) -> None:
        if name == "CreateJob":
            stage.plan.heal()
            raise Killed

    if after_the_call:
        stage.plan.after = kill
    else:
        stage.plan.before = kill
    event = stage.event("Create", properties_of())
    with pytest.raises(Killed):
        stage.launch(event)
    name = name_of(properties_of())
    assert stage.ledger(name).state is State.STARTING
    other = create(stage, 1)  # its dispatcher waits until the dead one's lease has expired
    assert stage.clock.slept >= 50
    assert len(stage.braket.named(name)) == 1
    assert stage.ledger(name).job_arn == stage.braket.arn(name)
    assert len(stage.braket.named(other)) == 1


def test_a_create_job_whose_answer_is_lost_is_found_again_in_the_same_breath(stage: Stage) -> None:
    def lose(name: str, _: int) -> None:
        if name == "CreateJob":
            stage.plan.heal()
            raise ReadTimeoutError(endpoint_url="https://braket")

    stage.plan.after = lose
    name = stage.create()
    assert len(stage.braket.jobs) == 1
    assert stage.ledger(name).state is State.STARTED


def test_a_quota_error_leaves_the_launch_waiting_with_its_reason_and_another_end_starts_it(stage: Stage) -> None:
    stage.braket.max_concurrent_jobs = 1
    first, second = create(stage, 0), create(stage, 1)
    waiting = stage.ledger(second)
    assert waiting.state is State.PENDING
    assert waiting.reason is not None
    assert "Service Quotas" in waiting.reason
    assert "ml.m5.2xlarge" in waiting.reason
    stage.changed(stage.braket.end(first, "COMPLETED"))
    assert stage.ledger(second).state is State.STARTED
    assert stage.ledger(second).reason is None


def test_an_instance_type_without_quota_does_not_hold_up_the_others(stage: Stage) -> None:
    stage.braket.quota_of = {"ml.g4dn.xlarge": 0}
    gpu = {"instance": {"type": "ml.g4dn.xlarge", "count": 1, "volume_gb": 30}}
    blocked = [create(stage, number, **gpu) for number in range(2)]
    free = create(stage, 2)
    assert [stage.ledger(name).state for name in blocked] == ["PENDING", "PENDING"]
    assert stage.ledger(free).state is State.STARTED


def test_throttling_is_waited_for_and_then_left_to_the_next_pass(stage: Stage) -> None:
    stage.plan.refuse("CreateJob", "ThrottlingException", times=2)
    assert stage.ledger(create(stage, 0)).state is State.STARTED
    stage.plan.refuse("CreateJob", "ThrottlingException")
    late = create(stage, 1)
    assert stage.ledger(late).state is State.PENDING
    assert "ThrottlingException" in (stage.ledger(late).reason or "")
    stage.plan.heal()
    stage.sweep()
    assert stage.ledger(late).state is State.STARTED


def test_a_role_that_is_too_new_is_waited_for(stage: Stage) -> None:
    message = "Braket is unable to assume role arn:aws:iam::000000000000:role/x"
    stage.plan.refuse("CreateJob", "ValidationException", times=2, message=message)
    assert stage.ledger(create(stage, 0)).state is State.STARTED
    stage.plan.refuse("CreateJob", "ValidationException", message=message)
    with pytest.raises(LaunchError, match=r"unable to assume role.*Let braket.amazonaws.com assume"):
        create(stage, 1)


def test_a_rejected_launch_does_not_stop_those_behind_it(stage: Stage) -> None:
    names = [create(stage, number) for number in range(5)]
    stage.plan.refuse("CreateJob", "ValidationException", times=1)
    for name in names[:2]:
        stage.braket.end(name, "COMPLETED")
    stage.sweep()
    assert [stage.ledger(name).state for name in names] == [
        "COMPLETED",
        "COMPLETED",
        "STARTED",
        "REJECTED",
        "STARTED",
    ]


def test_a_job_that_braket_made_twice_is_left_once(stage: Stage) -> None:
    name = stage.create()
    launch = stage.ledger(name)
    # The token's window has passed, and a repeated CreateJob made a second job.
    first = stage.braket.jobs[launch.job_arn or ""]
    second = {**first, "jobArn": first["jobArn"].replace("00000000-", "99999999-"), "createdAt": stage.clock.now()}
    stage.braket.jobs[second["jobArn"]] = second
    stage.services.ledger.replace(launch.moved(State.STARTING, launch.updated_at, job_arn=None))
    stage.sweep()
    assert [job["jobArn"] for job in stage.braket.active()] == [first["jobArn"]]
    assert stage.ledger(name).job_arn == first["jobArn"]


def test_starts_are_paced_to_what_create_job_allows(clients: StageClients) -> None:
    stage = Stage(clients, max_concurrent_jobs=12)
    stage.plan.refuse("CreateJob", "ServiceQuotaExceededException")
    for number in range(12):
        create(stage, number)
    stage.plan.heal()
    slept = stage.clock.slept
    stage.sweep()
    assert len(stage.braket.jobs) == 12
    assert stage.clock.slept - slept >= 12 - 5, "one a second after a burst of five"


def test_many_dispatchers_at_once_start_each_launch_once(
    clients: StageClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(clients, in_memory=True)
    stage.plan.refuse("CreateJob", "ServiceQuotaExceededException")
    names = [create(stage, number) for number in range(6)]
    stage.plan.heal()
    # The waiting ones must not turn the clock while the holder works, or its lease expires.
    monkeypatch.setattr(stage.clock, "sleep", lambda _: time.sleep(0.001))
    problems: list[BaseException] = []

    def run() -> None:
        try:
            dispatch(stage.services, stage.deadline())
        except BaseException as error:  # noqa: BLE001
            problems.append(error)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert started_in_order(stage) == names[:3]
    assert stage.memory.lease.owner is None
    assert stage.memory.lease.served == stage.memory.lease.wanted


def test_a_launch_that_comes_while_another_is_dispatched_is_not_overlooked(stage: Stage) -> None:
    """The holder has read the queue already when the second launch arrives, and the second can't wait."""
    second: list[str] = []

    def arrive(name: str, _: int) -> None:
        if name == "CreateJob":
            stage.plan.heal()
            second.append(hurried_create())

    def hurried_create() -> str:
        from launch_job.event import read_event
        from launch_job.launcher import Launcher

        event = read_event(stage.event("Create", properties_of(document_of("second")), logical_id="Second"))
        answer = Launcher(stage.services, stage.deadline(0.0)).create(event)
        assert answer.state == State.PENDING
        return answer.job_name

    stage.plan.after = arrive
    stage.create(properties_of(document_of("first")), logical_id="First")
    assert stage.ledger(second[0]).state is State.STARTED, (
        "the holder makes another pass before it gives the lease back"
    )


def test_a_dispatcher_without_time_gives_the_lease_to_the_next(stage: Stage) -> None:
    stage.plan.refuse("CreateJob", "ServiceQuotaExceededException", times=1)
    name = create(stage, 0)
    dispatch(stage.services, stage.deadline(10))
    assert stage.ledger(name).state is State.PENDING
    assert stage.services.lease().read().owner is None
    dispatch(stage.services, stage.deadline(100))
    assert stage.ledger(name).state is State.STARTED


# The choice, alone.


def launch(number: int, state: State, **changes: Any) -> Launch:
    identity = Identity(f"job-{number}", "stack", f"Job{number}", "hash", "1")
    since = f"2026-11-30T12:00:{number:02d}.000000Z"
    return Launch(
        name=identity.name(),
        state=state,
        identity=identity,
        requested_at=since,
        updated_at=since,
        open_since=since,
        **changes,
    )


def test_a_job_that_may_exist_holds_a_place() -> None:
    launches = [launch(0, State.STARTED), launch(1, State.STARTING), launch(2, State.PENDING), launch(3, State.PENDING)]
    choice = choose(reversed(launches), 3)
    assert choice.places == 1
    assert choice.unfinished == (launches[1],)
    assert choice.next_up == (launches[2], launches[3])


def test_a_limit_that_was_lowered_starts_nothing_and_a_job_that_is_being_cancelled_holds_its_place() -> None:
    running = [launch(number, State.STARTED, released=Released.DELETED) for number in range(4)]
    assert choose([*running, launch(9, State.PENDING)], 3).places == 0


# What each error means.

REQUEST = {
    "jobName": "job-0123456789",
    "roleArn": "arn:aws:iam::000000000000:role/service-role/AmazonBraketJobsExecutionRole-x",
    "instanceConfig": {"instanceType": "ml.g4dn.xlarge"},
    "deviceConfig": {"device": "local:pennylane/lightning.gpu"},
}


@pytest.mark.parametrize(
    ("code", "message", "verdict", "remedy"),
    [
        ("ServiceQuotaExceededException", "x", Verdict.WAIT_FOR_QUOTA, "ml.g4dn.xlarge"),
        ("ThrottlingException", "x", Verdict.SLOW_DOWN, "next pass"),
        ("DeviceOfflineException", "x", Verdict.WAIT_FOR_DEVICE, "until the device is back"),
        ("DeviceRetiredException", "x", Verdict.REJECT, "local:pennylane/lightning.gpu"),
        ("ConflictException", "x", Verdict.TAKEN, "raise the stage's `run`"),
        ("ValidationException", "instanceType is wrong", Verdict.REJECT, "jobs.toml"),
        ("ValidationException", "Unable to assume the role", Verdict.ROLE_NOT_READY, "AmazonBraketJobsExecutionRole-x"),
        ("InternalServiceException", "x", Verdict.UNCERTAIN, "whether the job exists"),
        (
            "AccessDeniedException",
            "This account is not authorized to use this resource",
            Verdict.REJECT,
            "Service Quotas (service code `braket`, region us-east-1)",
        ),
        ("AccessDeniedException", "User is not authorized to perform: iam:PassRole", Verdict.REJECT, "iam:PassRole on"),
        ("AccessDeniedException", "with an explicit deny in a service control policy", Verdict.REJECT, "on purpose"),
        ("AccessDeniedException", "not authorized to perform braket:CreateJob", Verdict.REJECT, "braket:CreateJob"),
    ],
)
def test_an_error_of_create_job_names_its_remedy(
    client_error: Callable[[str, str], Exception], code: str, message: str, verdict: Verdict, remedy: str
) -> None:
    diagnosis = diagnose(client_error(code, message), REQUEST, region="us-east-1")
    assert diagnosis.verdict is verdict
    assert diagnosis.reason.startswith(f"CreateJob: {code}: {message}. ")
    assert remedy in diagnosis.reason


def test_a_call_that_never_got_through_may_have_made_a_job() -> None:
    for error in (ConnectTimeoutError(endpoint_url="x"), ReadTimeoutError(endpoint_url="x")):
        assert diagnose(error, REQUEST, region="us-east-1").verdict is Verdict.UNCERTAIN


def test_prices_travel_with_the_launch(stage: Stage) -> None:
    assert stage.ledger(stage.create()).price == PRICE
