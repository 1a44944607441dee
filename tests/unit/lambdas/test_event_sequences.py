"""Every sequence of events that CloudFormation can send, with the function ending anywhere in the middle."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from errors import LaunchError
from launch_job.event import read_event
from launches import Identity, Released
from tests.unit.lambdas.endpoint_braket import EndpointBraket
from tests.unit.lambdas.fake_braket import FakeBraket
from tests.unit.lambdas.faults import Killed
from tests.unit.lambdas.stage import STACK, Stage, StageClients, document_of, properties_of

# With one place the other job waits, so that launches are let go in every state.
LIMIT = 1
LOGICAL_IDS = st.sampled_from(["JobA", "JobB"])
SPECS = st.sampled_from(
    [properties_of(document_of(hyperparameters={"p": p}), run=run) for p, run in (("2", "1"), ("3", "1"))]
)
# Where the function's process ends: at the n-th step of its calls, or nowhere.
KILLS = st.one_of(st.none(), st.integers(0, 60))
INVENTED = "HybridJobs-local-Jobs-Job-1ABCDEFGHIJKL"


class CloudFormation(RuleBasedStateMachine):
    """One stack with two jobs, as CloudFormation sees it: what it holds, and what it sends when."""

    clients: StageClients
    service: type[FakeBraket] = FakeBraket
    sequences = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).sequences += 1
        self.stage = Stage(
            self.clients, in_memory=True, max_concurrent_jobs=LIMIT, cancel_orphans=True, service=self.service
        )
        self.held: dict[str, tuple[str, dict[str, Any]]] = {}
        self.late: list[dict[str, Any]] = []
        self.past: list[dict[str, Any]] = []
        # Creates whose process ended in the middle, and whose Delete the framework swallowed: only the sweep helps.
        self.abandoned: set[Identity] = set()

    # How an event arrives.

    def deliver(
        self, event: dict[str, Any], kill: int | None = None, meanwhile: Callable[[], None] | None = None
    ) -> str | None:
        """Return the physical id of the answer; None if the answer is a failure.

        Args:
            event: The event.
            kill: The step at which something happens.
            meanwhile: What happens then; without it the function's process ends.
        """
        self.past.append(event)
        steps = [0]

        def step(*_: Any) -> None:
            steps[0] += 1
            if steps[0] - 1 != kill:
                return
            if meanwhile is None:
                raise Killed
            self.stage.plan.heal()
            meanwhile()

        self.stage.plan.before = self.stage.plan.after = step
        try:
            return str(self.stage.launch(event)["PhysicalResourceId"])
        except (LaunchError, Killed):
            return None
        finally:
            self.stage.plan.heal()

    def retried(self, event: dict[str, Any], kill: int) -> str | None:
        """Half of the events that killed the function come again at once; the others are followed by a new event.

        Such an event that came still later, after the next life of its resource has begun, could not be told from one
        of that life: it left no trace. Lambda repeats such an event within minutes, so that is not among the sequences.
        """
        self.past.remove(event)
        return self.deliver(event) if kill % 2 else None

    def delete(self, logical_id: str, physical_id: str, properties: dict[str, Any], kill: int | None = None) -> None:
        """Delete until it succeeds: a failed Delete leaves the stack in a state that only a Delete gets out of."""
        event = self.stage.event("Delete", properties, logical_id=logical_id, physical_id=physical_id)
        if self.deliver(event, kill) is None:
            assert kill is not None, "a Delete never fails by itself"
            if self.retried(event, kill) is None:
                self.delete(logical_id, physical_id, properties)

    def roll_back(
        self, logical_id: str, physical_id: str, old: dict[str, Any], new: dict[str, Any], kill: int | None = None
    ) -> None:
        event = self.stage.event("Update", old, logical_id=logical_id, physical_id=physical_id, old=new)
        answer = self.deliver(event, kill)
        if answer is None:
            assert kill is not None, "a rollback never fails by itself"
            answer = self.retried(event, kill)
        if answer is None:
            self.roll_back(logical_id, physical_id, old, new)
            return
        assert answer == self.held[logical_id][0], "a rollback goes back to the very same job"
        made = [name for name, launch in self.stage.memory.launches.items() if launch.made_by(event["RequestId"])]
        assert made == [], "a rollback launches nothing"

    def hold(self, logical_id: str, physical_id: str | None, properties: dict[str, Any]) -> None:
        if physical_id is None:
            self.held.pop(logical_id, None)
            self.stage.memory.held.pop((STACK, logical_id), None)
        else:
            self.held[logical_id] = (physical_id, properties)
            self.stage.memory.held[STACK, logical_id] = physical_id

    # What CloudFormation does.

    @rule(
        logical_id=LOGICAL_IDS,
        spec=SPECS,
        fate=st.sampled_from(["answered", "unanswered", "given up", "late"]),
        kill=KILLS,
    )
    def create(self, logical_id: str, spec: dict[str, Any], fate: str, kill: int | None) -> None:
        if logical_id in self.held:
            return
        event = self.stage.event("Create", spec, logical_id=logical_id)
        if fate == "late":
            self.late.append(event)
        elif fate == "given up":
            given_up: list[str] = []

            def meanwhile() -> None:
                given_up.append("deleted")
                self.delete(logical_id, INVENTED, spec)

            self.deliver(event, kill, meanwhile)
            if given_up:
                return
        else:
            answer = self.deliver(event, kill)
            if fate == "answered":
                # After a failed Create the framework itself answers the Delete: the launcher never sees it.
                self.hold(logical_id, answer, spec)
                if answer is None and kill is not None:
                    self.abandoned.add(read_event(event).wish().identity)
                return
        self.delete(logical_id, INVENTED, spec, kill)

    @precondition(lambda self: self.held)
    @rule(
        data=st.data(),
        spec=SPECS,
        fate=st.sampled_from(["kept", "rolled back", "unanswered", "given up", "late"]),
        kill=KILLS,
        cleanup_kill=KILLS,
    )
    def update(
        self, data: st.DataObject, spec: dict[str, Any], fate: str, kill: int | None, cleanup_kill: int | None
    ) -> None:
        logical_id = data.draw(st.sampled_from(sorted(self.held)))
        old_id, old = self.held[logical_id]
        event = self.stage.event("Update", spec, logical_id=logical_id, physical_id=old_id, old=old)
        if fate == "late":
            self.late.append(event)
            self.roll_back(logical_id, old_id, old, spec, cleanup_kill)
            return
        if fate == "given up":
            given_up: list[str] = []

            def meanwhile() -> None:
                given_up.append("rolled back")
                self.roll_back(logical_id, old_id, old, spec)

            self.deliver(event, kill, meanwhile)
            if not given_up:
                self.roll_back(logical_id, old_id, old, spec)
            return
        new_id = self.deliver(event, kill)
        if new_id is None or fate == "unanswered":
            self.roll_back(logical_id, old_id, old, spec, cleanup_kill)
        elif fate == "rolled back":
            self.roll_back(logical_id, new_id, old, spec, cleanup_kill)
            if new_id != old_id:
                self.delete(logical_id, new_id, spec, cleanup_kill)
        else:
            self.hold(logical_id, new_id, spec)
            if new_id != old_id:
                self.delete(logical_id, old_id, old, cleanup_kill)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), kill=KILLS)
    def remove(self, data: st.DataObject, kill: int | None) -> None:
        logical_id = data.draw(st.sampled_from(sorted(self.held)))
        physical_id, properties = self.held[logical_id]
        self.hold(logical_id, None, properties)
        self.delete(logical_id, physical_id, properties, kill)

    @precondition(lambda self: self.late)
    @rule(data=st.data())
    def an_event_arrives_that_was_given_up(self, data: st.DataObject) -> None:
        self.deliver(self.late.pop(data.draw(st.integers(0, len(self.late) - 1))))

    @precondition(lambda self: self.past)
    @rule(data=st.data())
    def an_event_is_delivered_again(self, data: st.DataObject) -> None:
        # The latest first: what has just happened is what a second delivery meets.
        self.deliver(data.draw(st.sampled_from(self.past[::-1][:12])))

    # What Braket, EventBridge and time do.

    @precondition(lambda self: self.living())
    @rule(data=st.data(), status=st.sampled_from(["COMPLETED", "FAILED"]), told=st.integers(0, 2))
    def a_job_ends(self, data: st.DataObject, status: str, told: int) -> None:
        job = data.draw(st.sampled_from(self.living()))
        arn = self.stage.braket.end(job["jobName"], "CANCELLED" if job["status"] == "CANCELLING" else status)
        for _ in range(told):
            self.stage.changed(arn)

    @rule(minutes=st.sampled_from([1, 20]))
    def time_passes_and_the_sweep_comes(self, minutes: int) -> None:
        self.stage.clock.pass_time(60 * minutes)
        self.stage.sweep()

    def living(self) -> list[dict[str, Any]]:
        return [
            job for job in self.stage.braket.jobs.values() if job["status"] not in ("COMPLETED", "FAILED", "CANCELLED")
        ]

    # What must hold after every step.

    @invariant()
    def at_most_one_active_job_an_identity(self) -> None:
        identities = Counter(self.stage.memory.launches[job["jobName"]].identity for job in self.stage.braket.active())
        assert all(count == 1 for count in identities.values()), identities

    @invariant()
    def every_active_job_is_held(self) -> None:
        held = {physical_id for physical_id, _ in self.held.values()}
        for job in self.stage.braket.active():
            name = job["jobName"]
            assert name in held or self.stage.memory.launches[name].identity in self.abandoned, name

    @invariant()
    def a_name_has_one_job_at_most(self) -> None:
        names = Counter(job["jobName"] for job in self.stage.braket.jobs.values())
        assert all(count == 1 for count in names.values()), names

    @invariant()
    def never_more_jobs_than_the_limit(self) -> None:
        assert self.stage.braket.most_at_once <= LIMIT

    @invariant()
    def what_is_held_was_not_let_go(self) -> None:
        for physical_id, _ in self.held.values():
            assert self.stage.memory.launches[physical_id].released is Released.NO

    def teardown(self) -> None:
        for logical_id, (physical_id, properties) in list(self.held.items()):
            self.hold(logical_id, None, properties)
            self.delete(logical_id, physical_id, properties)
        for event in [*self.late, *self.past]:
            self.deliver(event)
        # Two sweeps: the first may find a dispatcher's lease that hasn't expired, and starts nothing then.
        for _ in range(2):
            self.stage.clock.pass_time(16 * 60)
            self.stage.sweep()
        assert self.stage.braket.active() == []
        for job in self.living():
            self.stage.braket.end(job["jobName"], "CANCELLED")
        self.stage.sweep()
        assert self.stage.services.ledger.open_launches() == []
        self.stage.braket.close()


class CloudFormationAndEndpoint(CloudFormation):
    """The same, against the endpoint of the embedded cloud."""

    service = EndpointBraket
    sequences = 0


@pytest.mark.parametrize(("machine", "share"), [(CloudFormation, 1), (CloudFormationAndEndpoint, 2)])
def test_no_sequence_of_events_doubles_or_loses_a_job(
    clients: StageClients, machine: type[CloudFormation], share: int
) -> None:
    """EVENT_SEQUENCES says how many are tried; the endpoint, which is slower, gets a share of them."""
    machine.clients = clients
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=int(os.environ.get("EVENT_SEQUENCES", "100")) // share,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    print(f"{machine.sequences} sequences")
