"""Reads CloudFormation's event: what it asks for, and for which launch. No AWS here."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from errors import LaunchError
from launches import Identity

SPEC_VERSIONS = ("1",)
_SPEC_KEYS = frozenset(
    {
        "checkpoints",
        "device",
        "entry_point",
        "hyperparameters",
        "image",
        "inputs",
        "instance",
        "max_runtime_seconds",
        "source",
    }
)
_REMEDY = "Deploy with the version of this project that synthesized the stack"


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What a custom resource's properties ask for.

    `spec` is the launch document, `input_files` maps `<channel>/<path>` to an s3 address, `image_uri` is absent where
    the spec names a stock image or an image of its own.
    """

    identity: Identity
    spec: dict[str, Any]
    source_archive: str
    input_files: dict[str, str] = field(default_factory=dict)
    image_uri: str | None = None
    price: dict[str, Any] | None = None

    def require_complete(self) -> None:
        """Make sure that the spec says all that a launch needs; a Delete needs less.

        Raises:
            LaunchError: It doesn't.
        """
        missing = sorted(_SPEC_KEYS - set(self.spec))
        if missing:
            raise LaunchError(f"the spec of {self.identity.job} has no {', '.join(missing)}", remedy=_REMEDY)


@dataclass(frozen=True, kw_only=True)
class Request:
    """One event. `physical_id` is None for a Create."""

    kind: str
    resource_type: str
    request_id: str
    stack_id: str
    logical_id: str
    physical_id: str | None
    properties: dict[str, Any]
    old_properties: dict[str, Any] | None

    def wish(self) -> Wish:
        """Return what the event's properties ask for.

        Raises:
            LaunchError: They can't be read.
        """
        return _wish(self.stack_id, self.logical_id, self.properties)

    def old_wish(self) -> Wish | None:
        """Return what the properties before an Update asked for; None if there are none or they can't be read."""
        if not self.old_properties:
            return None
        try:
            return _wish(self.stack_id, self.logical_id, self.old_properties)
        except LaunchError:
            return None


def read_event(event: dict[str, Any]) -> Request:
    """Read an event as the Provider framework hands it on.

    Raises:
        LaunchError: A field is absent.
    """
    try:
        return Request(
            kind=event["RequestType"],
            resource_type=event["ResourceType"],
            request_id=event["RequestId"],
            stack_id=event["StackId"],
            logical_id=event["LogicalResourceId"],
            physical_id=event.get("PhysicalResourceId"),
            properties=event.get("ResourceProperties") or {},
            old_properties=event.get("OldResourceProperties"),
        )
    except KeyError as error:
        raise LaunchError(
            f"the event has no {error.args[0]}", remedy="Call this function through CloudFormation only"
        ) from error


def _wish(stack_id: str, logical_id: str, properties: dict[str, Any]) -> Wish:
    version = properties.get("SpecVersion")
    if version not in SPEC_VERSIONS:
        raise LaunchError(f"SpecVersion = {version!r} is not one of {', '.join(SPEC_VERSIONS)}", remedy=_REMEDY)
    text = properties.get("Spec")
    spec_hash = properties.get("SpecHash")
    if not isinstance(text, str) or hashlib.sha256(text.encode()).hexdigest() != spec_hash:
        raise LaunchError(f"SpecHash = {spec_hash!r} is not the SHA-256 of Spec", remedy=_REMEDY)
    try:
        spec = json.loads(text)
        return Wish(
            identity=Identity(
                job=spec["name"],
                stack_id=stack_id,
                logical_id=logical_id,
                spec_hash=spec_hash,
                run=str(properties.get("Run", "1")),
            ),
            spec=spec,
            source_archive=properties["SourceArchive"],
            input_files=dict(properties.get("InputFiles") or {}),
            image_uri=properties.get("ImageUri") or None,
            price=json.loads(properties.get("Price") or "null"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise LaunchError(f"the properties of {logical_id} can't be read: {error!r}", remedy=_REMEDY) from error
