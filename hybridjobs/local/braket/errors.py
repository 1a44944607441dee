"""Errors that the endpoint answers, in the service's names."""

from collections.abc import Mapping
from typing import Any


class ServiceError(Exception):
    """An error that is answered to the client.

    `code` is the name of an exception shape of the service model (its HTTP status comes from there),
    `members` are further members of that shape, such as `reason` of ValidationException.
    """

    def __init__(self, code: str, message: str, members: Mapping[str, Any] | None = None):
        super().__init__(message)
        self.code = code
        self.message = message
        self.members = dict(members or {})


def validation_error(violations: list[str]) -> ServiceError:
    """Join what is wrong with one request into a single ValidationException, as the service words it."""
    count = len(violations)
    plural = "error" if count == 1 else "errors"
    return ServiceError("ValidationException", f"{count} validation {plural} detected: " + "; ".join(violations))


def violation(field: str, value: object, constraint: str) -> str:
    """Word one violated constraint so that field and value can be read from it."""
    shown = "null" if value is None else f"'{_shortened(value)}'"
    return f"Value {shown} at '{field}' failed to satisfy constraint: {constraint}"


def _shortened(value: object) -> str:
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]}... ({len(text)} characters)"


def token_conflict(client_token: str, arn: str) -> ServiceError:
    """Return the error for a client token that comes again with another request."""
    return ServiceError(
        "ConflictException",
        f"clientToken '{client_token}' was used before for another request, which made {arn}; "
        "send a new token with each new request",
    )
