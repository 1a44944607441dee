"""A synthesised stage, as the tests look at it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aws_cdk.assertions import Template

STACKS = ("Registry", "Storage", "Jobs")


@dataclass(frozen=True)
class Synthesised:
    """The templates of one stage, and the folder of its cloud assembly."""

    stage: str
    folder: Path
    documents: Mapping[str, Mapping[str, Any]]

    def template(self, stack: str) -> Template:
        return Template.from_json(dict(self.documents[stack]))

    def resources(self, stack: str, kind: str) -> dict[str, dict[str, Any]]:
        resources = self.documents[stack]["Resources"]
        return {name: each for name, each in resources.items() if each["Type"] == kind}

    def the(self, stack: str, kind: str) -> dict[str, Any]:
        """The properties of the only resource of this kind."""
        (resource,) = self.resources(stack, kind).values()
        return dict(resource["Properties"])

    def everything(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Stack, logical id and resource, of all resources."""
        for stack in STACKS:
            for name, resource in self.documents[stack]["Resources"].items():
                yield stack, name, resource


Synthesise = Callable[..., Synthesised]


def flat(reference: object) -> str:
    """A resolved value as one string, references as <Name>."""
    match reference:
        case str():
            return reference
        case {"Ref": name}:
            return f"<{name}>"
        case {"Fn::GetAtt": [resource, attribute]}:
            return f"<{resource}.{attribute}>"
        case {"Fn::Sub": str(template)}:
            return template.replace("${", "<").replace("}", ">")
        case {"Fn::Join": [delimiter, parts]}:
            return str(delimiter).join(map(flat, parts))
    raise AssertionError(f"unexpected reference {reference!r}")


def many(value: object) -> list[Any]:
    """A policy element as a list."""
    return value if isinstance(value, list) else [value]
