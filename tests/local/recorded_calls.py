"""What the roles of a deployed stage called while IAM was enforced, beside what their policies grant."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.infra.policies import Account, Request
from tests.infra.synthesised import STACKS, Synthesised, many

_SESSION = re.compile(r"arn:aws:sts::\d+:assumed-role/(?P<role>[^/]+)/")
_JOB_ROLE = "AmazonBraketJobsExecutionRole"


@dataclass(frozen=True)
class Call:
    """One call: the logical id of the role that made it, what it did to what, and what IAM said."""

    role: str
    action: str
    resource: str
    decision: str


def deployed_account(assembly: Path, stage: str, account: str, region: str) -> Account:
    """The policies of the stage whose cloud assembly is in `assembly`."""
    documents = {name: json.loads((assembly / f"{name}.template.json").read_text()) for name in STACKS}
    return Account(Synthesised(stage=stage, folder=assembly, documents=documents), account, region)


def recorded_calls(file: Path, account: Account) -> Iterator[Call]:
    """The calls that the stage's roles made; those of the CDK's own roles and of the test itself are left out."""
    for line in file.read_text().splitlines():
        call = json.loads(line)
        session = _SESSION.match(call["principal"])
        if session is None:
            continue
        roles = [
            name
            for name in account.roles
            if name in session["role"] or (name.startswith("JobRole") and session["role"].startswith(_JOB_ROLE))
        ]
        if roles:
            yield Call(roles[0], call["action"], call["resource"], call["decision"])


def refused(calls: Iterable[Call], account: Account) -> list[Call]:
    """The calls that the policies of their role don't allow.

    The emulator's IAM doesn't know Braket, so what it left undecided is decided by the policy simulator.
    """
    calls = list(calls)
    left = [call for call in calls if call.decision == "NotDecided"]
    decisions = account.decide(
        Request(
            account.roles[call.role],
            call.action,
            call.resource,
            {"iam:PassedToService": "braket.amazonaws.com"} if call.action == "iam:PassRole" else {},
            account.account,
        )
        for call in left
    )
    return [
        *(call for call in calls if call.decision not in {"Allowed", "NotDecided", "NoPolicies"}),
        *(call for call, decision in zip(left, decisions, strict=True) if decision != "Allowed"),
    ]


def granted(account: Account) -> set[tuple[str, str]]:
    """Role and action of every allow statement."""
    return {
        (name, action)
        for name, arn in account.roles.items()
        for statement in account.statements(arn)
        if statement["Effect"] == "Allow"
        for action in many(statement["Action"])
    }
