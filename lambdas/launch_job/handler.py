"""The function behind the stack's custom resources, called by the Provider framework."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from dispatch.diagnosis import error_text, is_access_denied
from errors import LaunchError
from launch_job.event import read_event
from launch_job.launcher import Answer, Launcher
from launch_job.records import RESOURCE_TYPE, Records
from launch_job.request import output_prefix
from log_lines import log, without_response_url
from services import services

if TYPE_CHECKING:
    from clock import Deadline
    from launch_job.event import Request
    from services import Services

_KINDS = ("Create", "Update", "Delete")


def handle(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Serve an event of CloudFormation.

    Returns:
        `PhysicalResourceId` and `Data`: for a job its name, and JobName, OutputUri and State.

    Raises:
        LaunchError: The request can't be met; CloudFormation shows the text. It names the cause and the remedy.
    """
    log("event", event=without_response_url(event))
    return serve(services(), event, context)


def serve(services: Services, event: dict[str, Any], context: object) -> dict[str, Any]:
    """Serve an event with the given services; see `handle`."""
    request = read_event(event)
    if request.kind not in _KINDS:
        raise LaunchError(
            f"RequestType = {request.kind!r} is none of {', '.join(_KINDS)}", remedy="Call through CloudFormation"
        )
    deadline = services.deadline(context)
    try:
        if request.resource_type == RESOURCE_TYPE:
            return _records(services, request, deadline)
        return _job(services, request, deadline)
    except (ClientError, BotoCoreError) as error:
        raise _explained(error, request.kind) from error


def _job(services: Services, request: Request, deadline: Deadline) -> dict[str, Any]:
    launcher = Launcher(services, deadline)
    acts = {"Create": launcher.create, "Update": launcher.update, "Delete": launcher.delete}
    answer = acts[request.kind](request)
    log("answer", job_name=answer.job_name, state=answer.state)
    return _response(answer, services.settings.job_bucket)


def _records(services: Services, request: Request, deadline: Deadline) -> dict[str, Any]:
    records = Records(services, deadline)
    if request.kind == "Delete":
        records.close(request)
    else:
        records.publish_schemas(request)
    return {"PhysicalResourceId": request.physical_id or f"records-{services.settings.stage}"}


def _response(answer: Answer, bucket: str) -> dict[str, Any]:
    return {
        "PhysicalResourceId": answer.job_name,
        "Data": {
            "JobName": answer.job_name,
            "OutputUri": f"s3://{bucket}/{output_prefix(answer.job_name)}",
            "State": answer.state,
        },
    }


def _explained(error: ClientError | BotoCoreError, kind: str) -> LaunchError:
    code, text = error_text(error)
    operation = error.operation_name if isinstance(error, ClientError) else "a call of AWS"
    if is_access_denied(error):
        remedy = f"Give the launcher's role the permission for {operation} and try again"
    elif kind == "Delete":
        remedy = "Delete again: a job that isn't cancelled goes on and is billed until its max_runtime_seconds"
    else:
        remedy = "Deploy again"
    return LaunchError(f"{operation}: {code}: {text}", remedy=remedy)
