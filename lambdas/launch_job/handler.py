"""The function behind `Custom::BraketHybridJob`, called by the Provider framework."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from dispatch.diagnosis import error_text, is_access_denied
from errors import LaunchError
from launch_job.event import read_event
from launch_job.launcher import Answer, Launcher
from launch_job.request import output_prefix
from log_lines import log, without_response_url
from services import services

if TYPE_CHECKING:
    from services import Services


def handle(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Serve an event of CloudFormation.

    Returns:
        `PhysicalResourceId`, the job's name, and `Data` with JobName, OutputUri and State.

    Raises:
        LaunchError: The request can't be met; CloudFormation shows the text. It names the cause and the remedy.
    """
    log("event", event=without_response_url(event))
    return serve(services(), event, context)


def serve(services: Services, event: dict[str, Any], context: object) -> dict[str, Any]:
    """Serve an event with the given services; see `handle`."""
    launcher = Launcher(services, services.deadline(context))
    request = read_event(event)
    acts = {"Create": launcher.create, "Update": launcher.update, "Delete": launcher.delete}
    act = acts.get(request.kind)
    if act is None:
        raise LaunchError(
            f"RequestType = {request.kind!r} is none of {', '.join(acts)}", remedy="Call through CloudFormation"
        )
    try:
        answer = act(request)
    except (ClientError, BotoCoreError) as error:
        raise _explained(error, request.kind) from error
    log("answer", job_name=answer.job_name, state=answer.state)
    return _response(answer, services.settings.job_bucket)


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
