"""The ways in which a call of AWS goes wrong, and what came of each: the table of calls and faults."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, ReadTimeoutError

from collect_result.handler import CollectError
from errors import LaunchError
from tests.unit.lambdas.stage import Stage, StageClients


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


LOST = Fault("answer lost", "Timeout", _raising(lambda: ReadTimeoutError(endpoint_url="x"), before=False))
ANYWHERE = (
    Fault("throttled", "ThrottlingException", _answering("ThrottlingException", 429)),
    Fault("server error", "InternalServiceException", _answering("InternalServiceException", 500)),
    Fault("access denied", "AccessDeniedException", _answering("AccessDeniedException", 403)),
    Fault("invalid", "ValidationException", _answering("ValidationException", 400)),
    Fault("no connection", "Timeout", _raising(lambda: ConnectTimeoutError(endpoint_url="x"), before=True)),
    LOST,
    Fault("killed before", "", _raising(Killed, before=True)),
    Fault("killed after", "", _raising(Killed, before=False)),
)
# S3 declares few of its errors.
_UNDECLARED = {"GetObject": {"SlowDown": 503}, "PutObject": {"SlowDown": 503}, "CopyObject": {"SlowDown": 503}}
# What is no fault but an answer: a condition has failed, or there is no such thing.
_ANSWERS = {
    "PutItem": {"ConditionalCheckFailedException"},
    "UpdateItem": {"ConditionalCheckFailedException"},
    "GetObject": {"NoSuchKey"},
    "HeadObject": {"NoSuchKey"},
    "DescribeLogStreams": {"ResourceNotFoundException"},
    "GetLogEvents": {"ResourceNotFoundException"},
    "DescribeImages": {"ImageNotFoundException", "RepositoryNotFoundException"},
}
# What Braket may refuse a job with for good.
FOR_GOOD = frozenset({"access denied", "invalid", "DeviceRetiredException"})


def faults_of(clients: StageClients, operation: str) -> Iterator[Fault]:
    """Every fault of an operation: those that any call may have, and the errors that its service declares for it."""
    yield from ANYWHERE
    known = {fault.cause for fault in ANYWHERE} | _ANSWERS.get(operation, set())
    declared = dict(_UNDECLARED.get(operation, {}))
    for client in (clients.braket, clients.dynamodb, clients.s3, clients.ecr, clients.logs, clients.cloudformation):
        model = client.meta.service_model
        if operation in model.operation_names:
            for shape in model.operation_model(operation).error_shapes:
                declared[shape.error_code] = shape.metadata.get("error", {}).get("httpStatusCode", 400)
    for code, status in sorted(declared.items()):
        if code not in known:
            yield Fault(code, code, _answering(code, status))


def suffer(stage: Stage, fault: Fault, at: int, act: Callable[[], object]) -> BaseException | None:
    """Run with the fault at that call; returns what came out of the function."""
    stage.plan.calls.clear()
    fault.inject(stage, at)
    try:
        act()
    except (LaunchError, CollectError, ClientError, BotoCoreError, Killed) as error:
        return error
    else:
        return None
    finally:
        stage.plan.heal()


@dataclass
class Table:
    """What came of each fault of each operation of each event, over all the calls of that operation."""

    outcomes: dict[tuple[str, str], dict[str, set[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )
    runs: int = 0

    def note(self, event: str, operation: str, fault: Fault, error: BaseException | None) -> None:
        """Note one run, after its repair was seen."""
        self.runs += 1
        outcome = "served" if error is None else "ended, repaired" if isinstance(error, Killed) else "failed, repaired"
        self.outcomes[event, operation][fault.name].add(outcome)

    def markdown(self) -> str:
        """The table, a row for each event, operation and outcome."""
        rows = [f"{self.runs} runs. A fault in each call of each operation, once.", ""]
        rows += ["| event | operation | served all the same | failed with its cause, repaired by the next |"]
        rows += ["|---|---|---|---|"]
        for (event, operation), faults in self.outcomes.items():
            served = sorted(name for name, outcomes in faults.items() if "served" in outcomes)
            failed = sorted(name for name, outcomes in faults.items() if outcomes - {"served"})
            rows.append(f"| {event} | {operation} | {', '.join(served)} | {', '.join(failed)} |")
        return "\n".join(rows) + "\n"
