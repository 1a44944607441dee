"""Cases at and past every limit of an operation's input, generated from botocore's service model."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from botocore.model import ListShape, MapShape, Shape, StringShape, StructureShape

# Tried in turn for a text that a pattern refuses.
_ODD_TEXTS = (" ", "_", "-", "a\nb", "\u00e9!", "")


@dataclass(frozen=True)
class Case:
    """`value` at `path` (list indices and map keys are path steps); `field` is how an error must name the place."""

    path: tuple[str | int, ...]
    field: str
    value: Any
    allowed: bool
    why: str

    def __str__(self) -> str:
        return f"{self.field}-{'allows' if self.allowed else 'refuses'}-{self.why}"


def cases(shape: Shape, example: Any, path: tuple[str | int, ...] = (), field: str = "") -> Iterator[Case]:
    """Yield the cases for `shape`, of which `example` is a complete valid value."""
    if isinstance(shape, StructureShape):
        yield from _structure_cases(shape, example, path, field)
    elif isinstance(shape, ListShape):
        yield from _size_cases(shape, lambda n: [example[0]] * n, path, field)
        yield from cases(shape.member, example[0], (*path, 0), f"{field}[0]")
    elif isinstance(shape, MapShape):
        yield from _size_cases(shape, lambda n: {f"key-{i}": "value" for i in range(n)}, path, field)
        key = next(iter(example))
        yield from cases(shape.value, example[key], (*path, key), f"{field}.{key}")
        for case in _string_cases(shape.key, key, path, f"{field} (key)"):
            yield Case(path, case.field, {case.value: example[key]}, case.allowed, case.why)
    elif isinstance(shape, StringShape):
        yield from _string_cases(shape, example, path, field)
    else:
        yield from _number_cases(shape, path, field)
    yield Case(path, field, _of_another_type(shape), allowed=False, why="another type")


def _structure_cases(shape: StructureShape, example: Any, path: tuple[str | int, ...], field: str) -> Iterator[Case]:
    prefix = f"{field}." if field else ""
    yield Case((*path, "unknownMember"), f"{prefix}unknownMember", "x", allowed=False, why="an unknown member")
    for name, member in shape.members.items():
        required = name in shape.required_members
        yield Case((*path, name), prefix + name, None, allowed=not required, why="absence")
        if name in example:
            yield from cases(member, example[name], (*path, name), prefix + name)


def _size_cases(shape: Shape, of_size: Any, path: tuple[str | int, ...], field: str) -> Iterator[Case]:
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if high is not None:
        yield Case(path, field, of_size(high), allowed=True, why=f"size {high}")
        yield Case(path, field, of_size(high + 1), allowed=False, why=f"size {high + 1}")
    if low:
        yield Case(path, field, of_size(low), allowed=True, why=f"size {low}")
        yield Case(path, field, of_size(low - 1), allowed=False, why=f"size {low - 1}")


def _string_cases(shape: Shape, example: str, path: tuple[str | int, ...], field: str) -> Iterator[Case]:
    assert isinstance(shape, StringShape)
    pattern = shape.metadata.get("pattern")
    for choice in shape.enum:
        yield Case(path, field, choice, allowed=True, why=choice)
    if shape.enum:
        yield Case(path, field, "not-in-the-enum", allowed=False, why="a value outside the enum")
        return
    for case in _size_cases(shape, lambda n: (example + "a" * n)[:n], path, field):
        # A text of the smallest length may be one that the pattern refuses: then it says nothing about the length.
        if case.allowed and pattern and not re.fullmatch(pattern, case.value):
            continue
        yield case
    if pattern:
        odd = next((text for text in _ODD_TEXTS if not re.fullmatch(pattern, text)), None)
        assert odd is not None, f"no text is refused by {pattern}"
        yield Case(path, field, odd, allowed=False, why="a text outside the pattern")


def _number_cases(shape: Shape, path: tuple[str | int, ...], field: str) -> Iterator[Case]:
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    for limit, step in ((low, -1), (high, 1)):
        if limit is not None:
            yield Case(path, field, limit, allowed=True, why=str(limit))
            yield Case(path, field, limit + step, allowed=False, why=str(limit + step))
    yield Case(path, field, 1.5, allowed=False, why="a fraction")
    yield Case(path, field, True, allowed=False, why="a boolean")


def _of_another_type(shape: Shape) -> Any:
    return 7 if isinstance(shape, StringShape | StructureShape | ListShape | MapShape) else "seven"


def placed(case: Case, request: dict[str, Any]) -> Any:
    """Set the value of `case` in `request`, or remove the member where it is None, and return the request."""
    if not case.path:
        return case.value
    place: Any = request
    for step in case.path[:-1]:
        place = place.setdefault(step, {}) if isinstance(place, dict) else place[step]
    if case.value is None:
        place.pop(case.path[-1], None)
    else:
        place[case.path[-1]] = case.value
    return request
