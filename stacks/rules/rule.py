"""What a rule is, and how it sees a stack."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hybridjobs.model.job_spec import LAUNCH_RESOURCE_TYPE


@dataclass(frozen=True)
class Finding:
    """One place in a stack that breaks a rule: logical id, path below the resource, and what stands there."""

    logical_id: str
    location: str
    problem: str


@dataclass(frozen=True)
class Stack:
    """A synthesised stack: its template, and the path of the template's file."""

    template: Mapping[str, Any]
    path: str = ""

    def resources(self, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Logical id and properties of every resource of the type `kind`."""
        for logical_id, resource in self.template.get("Resources", {}).items():
            if resource["Type"] == kind:
                yield logical_id, resource.get("Properties", {})

    def launches(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Logical id and launch document of every job; an empty document where it can't be read."""
        for logical_id, properties in self.resources(LAUNCH_RESOURCE_TYPE):
            yield logical_id, _document(properties.get("Spec"))


@dataclass(frozen=True)
class Rule:
    """A named check: `check` is a pure function from a stack to what breaks the rule in it."""

    name: str
    description: str
    remedy: str
    check: Callable[[Stack], Iterator[Finding]]


def flat(value: object) -> str:
    """A template's value as one string, with references as `<Name>`, so that its beginning and end can be read."""
    match value:
        case {"Fn::Join": [delimiter, parts]}:
            return str(delimiter).join(map(flat, parts))
        case {"Fn::Sub": str(text)}:
            return text.replace("${", "<").replace("}", ">")
        case {"Fn::GetAtt": [resource, attribute]}:
            return f"<{resource}.{attribute}>"
        case {"Ref": name}:
            return f"<{name}>"
        case dict():
            return f"<{next(iter(value), '')}>"
    return str(value)


def _document(spec: object) -> Mapping[str, Any]:
    try:
        document = json.loads(str(spec))
    except json.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}
