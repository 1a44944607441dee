"""What an error of CreateJob means for the launch, and what the reader of the reason should do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, ParamValidationError

# The codes of Braket and DynamoDB, of S3, of S3 without a body, and of botocore itself.
ACCESS_CODES = frozenset({"AccessDeniedException", "AccessDenied", "403", "NoCredentialsError"})


class Verdict(Enum):
    """What to do with a launch whose CreateJob raised."""

    WAIT_FOR_QUOTA = "the account's limit is reached: wait, and try no other launch of that instance type"
    WAIT_FOR_DEVICE = "the device is offline: wait, and go on with the others"
    SLOW_DOWN = "Braket asks for fewer calls: wait, and start nothing more for now"
    UNCERTAIN = "the job may exist: look it up before anything else"
    TAKEN = "the name or the token is in use: look the job up"
    ROLE_NOT_READY = "the job role is so new that Braket can't assume it yet: try again in a moment"
    REJECT = "it will never work: give the launch up"


@dataclass(frozen=True)
class Diagnosis:
    """A verdict, and the reason that is written into the ledger and shown to people."""

    verdict: Verdict
    reason: str


def diagnose(error: Exception, request: dict[str, Any], *, region: str) -> Diagnosis:
    """Judge an error that CreateJob raised for a request."""
    code, message = error_text(error)
    verdict = _verdict(error, code, message.lower())
    remedy = _remedy(verdict, code, message.lower(), request, region)
    return Diagnosis(verdict, f"CreateJob: {code}: {message.rstrip('.')}. {remedy}")


def error_text(error: Exception) -> tuple[str, str]:
    """Return an error's code and message, for errors of the service and of botocore alike."""
    if isinstance(error, ClientError):
        details = error.response.get("Error", {})
        return details.get("Code") or "Unknown", details.get("Message") or str(error)
    return type(error).__name__, str(error)


def is_access_denied(error: Exception) -> bool:
    """Tell whether a call was refused for want of permission or of credentials."""
    return error_text(error)[0] in ACCESS_CODES


def is_transient(error: Exception) -> bool:
    """Tell whether the same call may succeed a little later."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= 500 or status == 429 or "Throttl" in error_text(error)[0]
    return isinstance(error, BotoCoreError) and not isinstance(error, (ParamValidationError, NoCredentialsError))


_VERDICTS = {
    "ServiceQuotaExceededException": Verdict.WAIT_FOR_QUOTA,
    "ConflictException": Verdict.TAKEN,
    "DeviceOfflineException": Verdict.WAIT_FOR_DEVICE,
    "DeviceRetiredException": Verdict.REJECT,
    "TooManyRequestsException": Verdict.SLOW_DOWN,
}


def _verdict(error: Exception, code: str, message: str) -> Verdict:
    if code in _VERDICTS:
        return _VERDICTS[code]
    if "Throttl" in code:
        return Verdict.SLOW_DOWN
    # "assume" and "role" are what every known form of this message says.
    if code in {"ValidationException", "AccessDeniedException"} and "assume" in message and "role" in message:
        return Verdict.ROLE_NOT_READY
    return Verdict.UNCERTAIN if is_transient(error) else Verdict.REJECT


def _remedy(verdict: Verdict, code: str, message: str, request: dict[str, Any], region: str) -> str:
    if verdict is Verdict.REJECT:
        return _refusal_remedy(code, message, request, region)
    instance = request["instanceConfig"]["instanceType"]
    return {
        Verdict.WAIT_FOR_QUOTA: (
            f"The launch waits. If it waits although no job runs: raise the quota of {instance} for hybrid jobs, or of "
            f"concurrent hybrid jobs, in Service Quotas (service code `braket`, region {region})"
        ),
        Verdict.TAKEN: f"Another job is called {request['jobName']}: raise the stage's `run` and deploy again",
        Verdict.WAIT_FOR_DEVICE: "The launch waits until the device is back",
        Verdict.SLOW_DOWN: "The launch waits for the next pass",
        Verdict.UNCERTAIN: "The next pass looks whether the job exists",
        Verdict.ROLE_NOT_READY: f"Let braket.amazonaws.com assume {request['roleArn']}: deploy the Jobs stack again",
    }[verdict]


def _refusal_remedy(code: str, message: str, request: dict[str, Any], region: str) -> str:
    if code == "DeviceRetiredException":
        return f"Choose another `device` than {request['deviceConfig']['device']}"
    if code in ACCESS_CODES:
        return _access_remedy(message, request, region)
    if code in {"ValidationException", "ParamValidationError"}:
        return "Correct the job in its jobs.toml and deploy again"
    return f"Read the message; the request is in the launch ledger under {request['jobName']}"


def _access_remedy(message: str, request: dict[str, Any], region: str) -> str:
    if "not authorized to use this resource" in message:
        return (
            "This is the account's standing, not its IAM policies: raise the quota of "
            f"{request['instanceConfig']['instanceType']} in Service Quotas (service code `braket`, region {region}), "
            "and if it is above 0 ask AWS Support to enable hybrid jobs for the account"
        )
    if "passrole" in message:
        return f"Allow the launcher's role iam:PassRole on {request['roleArn']} to braket.amazonaws.com"
    if "explicit deny" in message or "service control policy" in message:
        return f"A policy denies it on purpose: ask whoever owns that policy, or deploy to another region than {region}"
    return (
        "Allow the launcher's role braket:CreateJob and braket:TagResource, and see that the service-linked role "
        f"AWSServiceRoleForAmazonBraket exists (region {region})"
    )
