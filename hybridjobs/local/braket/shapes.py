"""Checks a value against a shape of the service model: types, required members, lengths, ranges, patterns, enums."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from botocore.model import ListShape, MapShape, Shape, StringShape, StructureShape

from hybridjobs.local.braket.errors import violation

Walker = Callable[[Any, Any, str], Iterator[str]]

_JSON_TYPE = {"structure": dict, "map": dict, "list": list, "string": str, "boolean": bool}


def violations_of(shape: Shape, value: Any, field: str) -> Iterator[str]:
    """Yield what is wrong with `value`, a decoded JSON value, at `field`, a dotted path for the message."""
    if value is None:
        yield violation(field, None, "Member must not be null")
    elif shape.serialization.get("jsonvalue") and not isinstance(value, str):
        return
    elif not _has_type(shape, value):
        yield violation(field, value, f"Member must be of type {shape.type_name}")
    else:
        walk: Walker | None = _WALKERS.get(shape.type_name)
        if walk is not None:
            yield from walk(shape, value, field)


def _has_type(shape: Shape, value: Any) -> bool:
    if shape.type_name in {"integer", "long"}:
        return isinstance(value, int) and not isinstance(value, bool)
    if shape.type_name in {"float", "double"}:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if shape.type_name == "timestamp":
        return isinstance(value, int | float | str) and not isinstance(value, bool)
    return isinstance(value, _JSON_TYPE.get(shape.type_name, object))


def _structure(shape: StructureShape, value: Mapping[str, Any], field: str) -> Iterator[str]:
    prefix = f"{field}." if field else ""
    for name in shape.required_members:
        if value.get(name) is None:
            yield violation(prefix + name, None, "Member must not be null")
    for name, member in value.items():
        if name not in shape.members:
            known = ", ".join(shape.members)
            yield violation(prefix + name, member, f"Member is not known here; the known ones are {known}")
        elif member is not None:
            yield from violations_of(shape.members[name], member, prefix + name)
    if shape.is_tagged_union and len([member for member in value.values() if member is not None]) != 1:
        yield violation(field, value, f"Exactly one of {', '.join(shape.members)} must be set")


def _list(shape: ListShape, value: list[Any], field: str) -> Iterator[str]:
    yield from _length(shape, len(value), value, field)
    for index, item in enumerate(value):
        yield from violations_of(shape.member, item, f"{field}[{index}]")


def _map(shape: MapShape, value: Mapping[str, Any], field: str) -> Iterator[str]:
    yield from _length(shape, len(value), sorted(value), field)
    for key, item in value.items():
        yield from violations_of(shape.key, key, f"{field} (key)")
        yield from violations_of(shape.value, item, f"{field}.{key}")


def _string(shape: StringShape, value: str, field: str) -> Iterator[str]:
    yield from _length(shape, len(value), value, field)
    pattern = shape.metadata.get("pattern")
    # The service matches the whole value, although its model doesn't anchor the patterns.
    if pattern and not _compiled(pattern).fullmatch(value):
        yield violation(field, value, f"Member must satisfy regular expression pattern: {pattern}")
    if shape.enum and value not in shape.enum:
        yield violation(field, value, f"Member must satisfy enum value set: [{', '.join(shape.enum)}]")


def _number(shape: Shape, value: float, field: str) -> Iterator[str]:
    minimum, maximum = shape.metadata.get("min"), shape.metadata.get("max")
    if minimum is not None and value < minimum:
        yield violation(field, value, f"Member must have value greater than or equal to {minimum}")
    if maximum is not None and value > maximum:
        yield violation(field, value, f"Member must have value less than or equal to {maximum}")


def _length(shape: Shape, length: int, value: object, field: str) -> Iterator[str]:
    minimum, maximum = shape.metadata.get("min"), shape.metadata.get("max")
    if minimum is not None and length < minimum:
        yield violation(field, value, f"Member must have length greater than or equal to {minimum}")
    if maximum is not None and length > maximum:
        yield violation(field, value, f"Member must have length less than or equal to {maximum}")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


_WALKERS: Mapping[str, Walker] = {
    "structure": _structure,
    "list": _list,
    "map": _map,
    "string": _string,
    "integer": _number,
    "long": _number,
    "float": _number,
    "double": _number,
}
