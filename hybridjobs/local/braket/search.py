"""Searches: which filters exist, what they compare, and pages that hold while new things are added."""

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from hybridjobs.local.braket.errors import ServiceError, validation_error, violation

LARGEST_PAGE = 100

EQUAL = frozenset({"EQUAL"})
TEXT = frozenset({"EQUAL", "CONTAINS"})
TIME = frozenset({"EQUAL", "LT", "LTE", "GT", "GTE", "BETWEEN"})


class Sequenced(Protocol):
    """A stored thing with its number, which rises with the time of creation."""

    @property
    def sequence(self) -> int:
        """The number."""
        ...


Thing = TypeVar("Thing", bound=Sequenced)


@dataclass(frozen=True)
class FilterRule:
    """One filter name: the operators it takes, what of a thing it compares, whether it stands alone."""

    operators: frozenset[str]
    value_of: Callable[[Any], str | datetime | None]
    alone: bool = False


@dataclass(frozen=True)
class Page(Generic[Thing]):
    """Some of the found things and the token for the next ones, None after the last."""

    found: Sequence[Thing]
    next_token: str | None


def search(
    request: Mapping[str, Any],
    rules: Mapping[str, FilterRule],
    newest_first: Callable[[int | None], Iterable[Thing]],
) -> Page[Thing]:
    """Return the page of things that match all filters of `request`, newest first.

    `newest_first(before)` yields the things older than number `before` (all for None). Raises ServiceError
    (ValidationException) for filters that `rules` don't allow and for a token that another search gave.
    """
    filters = request["filters"]
    violations = list(_violations(filters, rules))
    if violations:
        raise validation_error(violations)
    digest = hashlib.sha256(json.dumps(filters, sort_keys=True).encode()).hexdigest()[:16]
    before = _number(request.get("nextToken"), digest)
    size = request.get("maxResults", LARGEST_PAGE)
    matching = (thing for thing in newest_first(before) if _matches(thing, filters, rules))
    found = list(islice(matching, size + 1))
    if len(found) <= size:
        return Page(found, None)
    return Page(found[:size], _token(found[size - 1].sequence, digest))


def _violations(filters: Sequence[Mapping[str, Any]], rules: Mapping[str, FilterRule]) -> Iterator[str]:
    for index, each in enumerate(filters):
        place = f"filters[{index}]"
        rule = rules.get(each["name"])
        if rule is None:
            yield violation(f"{place}.name", each["name"], f"Member must be one of [{', '.join(rules)}]")
            continue
        operator, values = each.get("operator", "EQUAL"), each["values"]
        if operator not in rule.operators:
            allowed = ", ".join(sorted(rule.operators))
            yield violation(f"{place}.operator", operator, f"Filter {each['name']} takes only [{allowed}]")
        if rule.alone and len(filters) > 1:
            yield violation(f"{place}.name", each["name"], "This filter can't be combined with others")
        if rule.operators is TIME:
            yield from _time_violations(place, operator, values)


def _time_violations(place: str, operator: str, values: Sequence[str]) -> Iterator[str]:
    wanted = 2 if operator == "BETWEEN" else 1
    if len(values) != wanted:
        yield violation(f"{place}.values", values, f"Operator {operator} takes {wanted} value(s)")
    for index, value in enumerate(values):
        if _moment(value) is None:
            yield violation(f"{place}.values[{index}]", value, "Member must be a time as of RFC 3339")


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


_TESTS: Mapping[str, Callable[[Any, Sequence[Any]], bool]] = {
    "EQUAL": lambda value, wanted: value in wanted,
    "CONTAINS": lambda value, wanted: any(part in value for part in wanted),
    "LT": lambda value, wanted: value < wanted[0],
    "LTE": lambda value, wanted: value <= wanted[0],
    "GT": lambda value, wanted: value > wanted[0],
    "GTE": lambda value, wanted: value >= wanted[0],
    "BETWEEN": lambda value, wanted: wanted[0] <= value <= wanted[1],
}


def _matches(thing: Any, filters: Sequence[Mapping[str, Any]], rules: Mapping[str, FilterRule]) -> bool:
    for each in filters:
        rule = rules[each["name"]]
        value = rule.value_of(thing)
        wanted = [_moment(text) for text in each["values"]] if rule.operators is TIME else each["values"]
        if value is None or not _TESTS[each.get("operator", "EQUAL")](value, wanted):
            return False
    return True


def _token(number: int, digest: str) -> str:
    return base64.urlsafe_b64encode(f"{digest}:{number}".encode()).decode()


def _number(token: str | None, digest: str) -> int | None:
    if token is None:
        return None
    try:
        given, number = base64.b64decode(token, altchars=b"-_", validate=True).decode().split(":")
        if given == digest:
            return int(number)
    except (binascii.Error, ValueError):
        pass
    raise ServiceError("ValidationException", f"nextToken '{token}' was not given by a search with these filters")
