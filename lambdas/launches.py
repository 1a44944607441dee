"""A launch: one job that a deployment asked for, from the request to the end of the job. No AWS here."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """Where a launch stands."""

    PENDING = "PENDING"  # waits for a free place
    STARTING = "STARTING"  # CreateJob is being called, or was called by someone who didn't live to say how it ended
    STARTED = "STARTED"  # Braket has the job
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    WITHDRAWN = "WITHDRAWN"  # deleted before Braket ever had a job
    REJECTED = "REJECTED"  # CreateJob, or what comes before it, refused for good


OPEN_STATES = frozenset({State.PENDING, State.STARTING, State.STARTED})
ENDED_STATES = frozenset({State.COMPLETED, State.FAILED, State.CANCELLED})


class Released(StrEnum):
    """Why CloudFormation no longer holds a launch."""

    NO = ""
    DELETED = "deleted"  # a Delete, or the rollback of an Update that was never answered
    FAILED = "failed"  # the launcher answered FAILED


def canonical_json(value: Any) -> str:
    """Write a value so that equal values give equal text: sorted keys, no spaces, ASCII, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


@dataclass(frozen=True)
class Identity:
    """What makes two requests the same launch."""

    job: str
    stack_id: str
    logical_id: str
    spec_hash: str
    run: str

    def name(self, generation: int = 0) -> str:
        """Return the job's name, which is also the custom resource's physical id.

        Braket keeps a cancelled job for ever, so a launch that is wanted again after its job was cancelled for a
        Delete is the next generation and has a name of its own.
        """
        parts = [self.stack_id, self.logical_id, self.spec_hash, self.run]
        if generation:
            parts.append(str(generation))
        return f"{self.job}-{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()[:10]}"


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One launch as the ledger holds it.

    `request` is the CreateJob request with its client token; absent for a launch that was given up before it was
    built. `request_ids` are CloudFormation's requests that have asked for this launch or let it go. `overtaken_at`
    is when a Delete came whose Create had not: the request that it has overtaken may still be on its way.
    `open_since` orders the launches that still need attention and is absent for the others. `revision` counts the
    writes.
    """

    name: str
    state: State
    identity: Identity
    requested_at: str
    updated_at: str
    spec: dict[str, Any] | None = None
    request: dict[str, Any] | None = None
    price: dict[str, Any] | None = None
    request_ids: frozenset[str] = frozenset()
    released: Released = Released.NO
    overtaken_at: str | None = None
    open_since: str | None = None
    job_arn: str | None = None
    reason: str | None = None
    revision: int = 0

    @property
    def is_open(self) -> bool:
        """Whether the launch still needs attention."""
        return self.state in OPEN_STATES

    @property
    def is_used_up(self) -> bool:
        """Whether its name can't be launched again: it was let go, and Braket has or had a job of that name."""
        return self.released is not Released.NO and self.state in {State.STARTING, State.STARTED, State.CANCELLED}

    @property
    def order(self) -> tuple[str, str]:
        """Sorts launches in the order in which they were asked for."""
        return (self.open_since or self.requested_at, self.name)

    @property
    def image_digest(self) -> str | None:
        """The digest (`sha256:...`) of the image that the job runs, where it is known."""
        image = ((self.request or {}).get("algorithmSpecification") or {}).get("containerImage") or {}
        _, separator, digest = str(image.get("uri", "")).partition("@")
        return digest if separator else None

    @property
    def benchmark(self) -> str | None:
        """The benchmark that the job is a part of."""
        benchmark = (self.spec or {}).get("benchmark")
        return str(benchmark["name"]) if benchmark else None

    def made_by(self, request_id: str) -> bool:
        """Tell whether that request of CloudFormation made this launch, and not only asked about it."""
        return (self.request or {}).get("clientToken") == client_token(self.name, request_id)

    def moved(self, state: State, now: str, **changes: Any) -> Launch:
        """Return the launch in another state; leaving the open states takes it out of the queue."""
        moved = replace(self, state=state, updated_at=now, **changes)
        return moved if moved.is_open else replace(moved, open_since=None)

    def tags(self, stage: str) -> dict[str, str]:
        """Return the tags by which the job can be found without its name."""
        tags = {
            "hybrid-jobs:stage": stage,
            "hybrid-jobs:stack-id": self.identity.stack_id,
            "hybrid-jobs:logical-id": self.identity.logical_id,
            "hybrid-jobs:spec-hash": self.identity.spec_hash,
        }
        if self.benchmark:
            tags["hybrid-jobs:benchmark"] = self.benchmark
        return tags

    def owns(self, tags: dict[str, str]) -> bool:
        """Tell whether a job of this name that carries such tags is this launch's and not a stranger's."""
        expected = {
            "hybrid-jobs:stack-id": self.identity.stack_id,
            "hybrid-jobs:logical-id": self.identity.logical_id,
        }
        return all(tags.get(key, value) == value for key, value in expected.items())


def client_token(name: str, request_id: str) -> str:
    """Return the CreateJob token of a launch: the same for every retry, another when it is asked for anew."""
    return hashlib.sha256(f"{name}\n{request_id}".encode()).hexdigest()
