"""The embedded cloud with IAM enforced: python enforcing_daemon.py PROJECT [--bound].

Every function has the session of its role, as always under the emulator's AUTH=true, and every job one of the role that
CreateJob passes. What IAM decides about each call goes to PROJECT/calls.jsonl: principal, action, resource, decision.
Braket's own calls are written down too, but not decided: the emulator's IAM doesn't know that service.
"""

import hashlib
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hybridjobs.local import daemon, gaps
from hybridjobs.local.braket import wsgi
from hybridjobs.local.braket.endpoint import BraketEndpoint
from hybridjobs.local.environment import ACCOUNT, REGION
from hybridjobs.local.runners.base import JobRun, Phase, RunningJob
from hybridjobs.local.runners.process import ProcessRunner

_ACCESS_KEY = re.compile(r"Credential=([^/]+)/")
_lock = threading.Lock()


class _Calls:
    def __init__(self, file: Path) -> None:
        self._file = file

    def add(self, access_key: str, action: str, resource: str, decision: str) -> None:
        from ministack.services import sts

        session = sts._sessions.get(access_key)
        line = {
            "principal": session["Arn"] if session else "root",
            "action": action,
            "resource": resource,
            "decision": decision,
        }
        with _lock, self._file.open("a") as file:
            file.write(json.dumps(line) + "\n")


class _RoleRunner(ProcessRunner):
    """Gives each job the credentials of its own role."""

    def start(self, run: JobRun, on_phase: Callable[[Phase], None]) -> RunningJob:
        environment = {**run.aws_environment, **_session(run.request["roleArn"].rsplit("/", 1)[1], run.job_name)}
        return super().start(replace(run, aws_environment=environment), on_phase)


def _session(role: str, name: str) -> dict[str, str]:
    from ministack.services import sts

    digest = hashlib.sha256(f"{role}/{name}".encode()).hexdigest()
    variables = {
        "AWS_ACCESS_KEY_ID": f"ASIA{digest[:16].upper()}",
        "AWS_SECRET_ACCESS_KEY": digest,
        "AWS_SESSION_TOKEN": digest[::-1],
    }
    session = {
        "Arn": f"arn:aws:sts::{ACCOUNT}:assumed-role/{role}/{name}",
        "UserId": f"{role}:{name}",
        "SecretAccessKey": variables["AWS_SECRET_ACCESS_KEY"],
        "SessionToken": variables["AWS_SESSION_TOKEN"],
    }
    sts.register_session(variables["AWS_ACCESS_KEY_ID"], session)
    return variables


def _take_loopback_for_tls() -> None:
    """Let policies that ask for TLS hold: the emulator speaks plain HTTP, on loopback only."""
    from ministack import app

    pin = app.pin_request_origin
    app.pin_request_origin = lambda source, _secure: pin(source, True)


def _decide_lists_of_one_repository() -> None:
    """Let the repository's policy count where its name comes as a list of one: the emulator looks for a single name."""
    from ministack.core import iam_actions

    extract = iam_actions.extract_resource_arn

    def extracted(
        service: str, method: str, path: str, headers: Any, body: bytes, query: Any, region: str, account: str
    ) -> str:
        if service == "ecr":
            names = json.loads(body or b"{}").get("repositoryNames") or []
            if len(names) == 1:
                return f"arn:aws:ecr:{region}:{account}:repository/{names[0]}"
        return str(extract(service, method, path, headers, body, query, region, account))

    iam_actions.extract_resource_arn = extracted


def _write_down_iam(calls: _Calls) -> None:
    from ministack.core import iam_evaluator

    enforce = iam_evaluator.enforce

    def enforced(access_key_id: str, iam_action: str, *args: Any, **options: Any) -> Any:
        refused = enforce(access_key_id, iam_action, *args, **options)
        decision = "Allowed" if refused is None else getattr(refused, "decision", None) or type(refused).__name__
        if refused is not None and not _has_policies(access_key_id):
            # The role is gone with its stack: a job that was cancelled by that still wrote its last lines.
            decision = "NoPolicies"
        calls.add(access_key_id, iam_action, options.get("resource_arn", "*"), decision)
        return refused

    iam_evaluator.enforce = enforced


def _has_policies(access_key: str) -> bool:
    from ministack.core import iam_evaluator
    from ministack.services import sts

    session = sts._sessions.get(access_key, {})
    role = session.get("Arn", "//").split("/")[1]
    return bool(iam_evaluator._gather_role_policies(role, ACCOUNT))


def _write_down_braket(calls: _Calls) -> None:
    answer = wsgi.BraketApplication._answer
    jobs = f"arn:aws:braket:{REGION}:{ACCOUNT}:job/"

    def answered(self: Any, request: Any) -> Any:
        found = self._model.find(request.method, wsgi._raw_path(request.environ))
        key = _ACCESS_KEY.search(request.headers.get("Authorization", ""))
        if found is not None and key is not None:
            operation, labels = found
            named = [value for value in labels.values() if value.startswith(jobs)]
            body = request.get_json(silent=True) or {}
            resource = named[0] if named else "*"
            calls.add(key[1], f"braket:{operation.name}", resource, "NotDecided")
            if operation.name == "CreateJob":
                # What AWS asks IAM for besides the operation itself.
                calls.add(key[1], "iam:PassRole", body["roleArn"], "NotDecided")
                if body.get("tags"):
                    calls.add(key[1], "braket:TagResource", f"{jobs}new", "NotDecided")
        return answer(self, request)

    wsgi.BraketApplication._answer = answered  # type: ignore[method-assign]


def _endpoint(
    folder: Path, environment: dict[str, str], publish_event: Callable[[Mapping[str, Any]], None]
) -> BraketEndpoint:
    calls = _Calls(Path(sys.argv[1]) / "calls.jsonl")
    # The emulator is imported, and can be changed, once it is about to serve.
    gaps.WORKAROUNDS = (
        *gaps.WORKAROUNDS,
        _take_loopback_for_tls,
        _decide_lists_of_one_repository,
        lambda: _write_down_iam(calls),
    )
    _write_down_braket(calls)
    return BraketEndpoint(folder, _RoleRunner(), environment, publish_event)


if __name__ == "__main__":
    os.environ["AUTH"] = "true"
    daemon.main(_endpoint)
