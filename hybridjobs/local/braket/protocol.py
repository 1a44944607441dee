"""Turns HTTP requests into checked parameters and results into rest-json bodies, as the service model says."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn

from botocore.model import ListShape, MapShape, OperationModel, Shape, StructureShape

from hybridjobs.local.braket.errors import ServiceError, validation_error, violation
from hybridjobs.local.braket.shapes import violations_of


def parse_request(
    operation: OperationModel, labels: Mapping[str, str], query: Sequence[tuple[str, str]], body: bytes
) -> dict[str, Any]:
    """Return the parameters of a request to `operation`; ServiceError (ValidationException) with all that is wrong.

    Members go where the model puts them: `labels` come from the path, `query` holds decoded name-value pairs, and
    `body` is JSON. A member whose value is null counts as absent, as in every rest-json service.
    """
    shape = operation.input_shape
    if not isinstance(shape, StructureShape):
        return {}
    in_body = {name for name, member in shape.members.items() if "location" not in member.serialization}
    parameters = {name: value for name, value in _body_members(body).items() if value is not None}
    outside = shape.members.keys() - in_body
    misplaced = [
        violation(name, parameters.pop(name), "Member does not belong in the body")
        for name in sorted(outside & parameters.keys())
    ]
    unread = dict.fromkeys(name for name, _ in query)
    for name in outside:
        member = shape.members[name]
        wire_name = member.serialization.get("name", name)
        if member.serialization["location"] == "uri":
            parameters[name] = labels[wire_name]
        elif wire_name in unread:
            del unread[wire_name]
            parameters[name] = _query_value(member, [value for key, value in query if key == wire_name])
    misplaced += [violation(name, "", "Query parameter is not known here") for name in unread]
    violations = misplaced + list(violations_of(shape, parameters, ""))
    if violations:
        raise validation_error(violations)
    return {name: _text_of_json(shape.members[name], value) for name, value in parameters.items()}


def _body_members(body: bytes) -> dict[str, Any]:
    if not body:
        return {}
    try:
        document = json.loads(body, parse_constant=_refuse_constant)
    except ValueError as error:
        raise ServiceError("ValidationException", f"The request body is not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise ServiceError("ValidationException", "The request body must be a JSON object")
    return document


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _query_value(shape: Shape, values: list[str]) -> Any:
    if isinstance(shape, ListShape):
        return [_query_value(shape.member, [value]) for value in values]
    text = values[-1]
    if shape.type_name in {"integer", "long"} and text.lstrip("-").isdecimal():
        return int(text)
    if shape.type_name == "boolean" and text in {"true", "false"}:
        return text == "true"
    return text


def _text_of_json(shape: Shape, value: Any) -> Any:
    """Members that carry a JSON document may come as text or as the document itself; text is what is kept."""
    if shape.serialization.get("jsonvalue") and not isinstance(value, str):
        return json.dumps(value, separators=(",", ":"))
    return value


def serialise_response(operation: OperationModel, result: Mapping[str, Any]) -> bytes:
    """Return the body for `result`, whose members are named as in the model; members that are None are left out.

    ValueError for a member that the model doesn't have or a required one that is missing.
    """
    shape = operation.output_shape
    document = {} if shape is None else _serialised(shape, result, operation.name)
    return json.dumps(document, separators=(",", ":")).encode()


def _serialised(shape: Shape, value: Any, field: str) -> Any:
    if isinstance(shape, StructureShape):
        present = {name: member for name, member in value.items() if member is not None}
        unknown = present.keys() - shape.members.keys()
        missing = set(shape.required_members) - present.keys()
        if unknown or missing:
            raise ValueError(f"{field}: members unknown to the model {sorted(unknown)}, missing {sorted(missing)}")
        return {name: _serialised(shape.members[name], member, f"{field}.{name}") for name, member in present.items()}
    if isinstance(shape, ListShape):
        return [_serialised(shape.member, item, field) for item in value]
    if isinstance(shape, MapShape):
        return {key: _serialised(shape.value, item, f"{field}.{key}") for key, item in value.items()}
    if shape.type_name == "timestamp":
        return _timestamp(shape, value)
    return value


def _timestamp(shape: Shape, value: datetime) -> str | float:
    if shape.serialization.get("timestampFormat") == "iso8601":
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value.timestamp()
