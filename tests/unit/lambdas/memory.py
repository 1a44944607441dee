"""The ledger, the lease, the job bucket and the stacks in plain memory: the same promises, a thousand times faster.

Their calls go through the same plan of faults as those of the boto3 clients.
"""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import IO, Any, TypeVar

from botocore.exceptions import ClientError

from aws.artifacts import Artifacts
from aws.images import Images
from aws.job_logs import JobLogs
from aws.lease import Lease, LeaseState
from aws.ledger import Ledger
from aws.stacks import Stacks
from errors import ConflictingWrite
from launches import Launch
from services import Services
from tests.unit.lambdas.plan import Plan

Result = TypeVar("Result")


class Memory:
    """What is kept, and what goes wrong."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.launches: dict[str, Launch] = {}
        self.lease = LeaseState(owner=None, expires_at=0.0, wanted=0, served=0)
        self.objects: dict[str, bytes] = {}
        self.held: dict[tuple[str, str], str] = {}
        self.stack_status = "UPDATE_COMPLETE"
        self.lock = threading.RLock()

    def call(self, name: str, act: Callable[[], Result]) -> Result:
        refused = self.plan.called(name)
        if refused is not None:
            raise ClientError(refused, name)  # type: ignore[arg-type]
        with self.lock:
            result = act()
        self.plan.answered(name)
        return result


class MemoryLedger(Ledger):
    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def get(self, name: str) -> Launch | None:
        return self._memory.call("GetItem", lambda: self._memory.launches.get(name))

    def create(self, launch: Launch) -> Launch:
        return self._memory.call("PutItem", lambda: self._write(launch, None))

    def replace(self, launch: Launch) -> Launch:
        return self._memory.call("PutItem", lambda: self._write(launch, launch.revision))

    def _write(self, launch: Launch, revision: int | None) -> Launch:
        known = self._memory.launches.get(launch.name)
        if (known.revision if known else None) != revision:
            raise ConflictingWrite(launch.name)
        written = replace(launch, revision=(revision or 0) + 1)
        self._memory.launches[launch.name] = written
        return written

    def open_launches(self) -> list[Launch]:
        found = self._memory.call("Query", lambda: list(self._memory.launches.values()))
        return sorted((launch for launch in found if launch.open_since), key=lambda launch: launch.order)

    def all_launches(self) -> Iterator[Launch]:
        return iter(self._memory.call("Query", lambda: list(self._memory.launches.values())))


class MemoryLease(Lease):
    def __init__(self, memory: Memory, owner: str) -> None:
        self._memory = memory
        self.owner = owner

    def _change(self, condition: Callable[[LeaseState], bool], **changes: Any) -> LeaseState | None:
        def act() -> LeaseState | None:
            if not condition(self._memory.lease):
                return None
            self._memory.lease = replace(self._memory.lease, **changes)
            return self._memory.lease

        return self._memory.call("UpdateItem", act)

    def want(self) -> int:
        def act() -> int:
            self._memory.lease = replace(self._memory.lease, wanted=self._memory.lease.wanted + 1)
            return self._memory.lease.wanted

        return self._memory.call("UpdateItem", act)

    def acquire(self, now: float, seconds: float) -> LeaseState | None:
        return self._change(
            lambda lease: lease.owner in {None, self.owner} or lease.expires_at < now,
            owner=self.owner,
            expires_at=now + seconds,
        )

    def renew(self, now: float, seconds: float) -> LeaseState | None:
        return self._change(lambda lease: lease.owner == self.owner, expires_at=now + seconds)

    def finish(self, served: int) -> bool:
        done = self._change(
            lambda lease: lease.owner == self.owner and lease.wanted == served, served=served, owner=None
        )
        return done is not None

    def abandon(self) -> None:
        self._change(lambda lease: lease.owner == self.owner, owner=None)

    def read(self) -> LeaseState:
        return self._memory.call("GetItem", lambda: self._memory.lease)


class MemoryArtifacts(Artifacts):
    def __init__(self, memory: Memory, bucket: str) -> None:
        self._memory = memory
        self.bucket = bucket

    def copy(self, source: str, key: str, sha256: str) -> None:
        if self._memory.call("HeadObject", lambda: self._memory.objects.get(key)) is None:
            self.put(source, key, sha256)

    def put(self, source: str, key: str, sha256: str) -> None:
        self._memory.call("CopyObject", lambda: self._memory.objects.update({key: source.encode()}))

    def open(self, key: str) -> IO[bytes] | None:
        content = self._memory.call("GetObject", lambda: self._memory.objects.get(key))
        return None if content is None else io.BytesIO(content)

    def read(self, key: str) -> tuple[bytes, str] | None:
        content = self._memory.call("GetObject", lambda: self._memory.objects.get(key))
        return None if content is None else (content, _tag(content))

    def write(self, key: str, content: bytes, *, replaces: str | None) -> bool:
        def act() -> bool:
            known = self._memory.objects.get(key)
            if (None if known is None else _tag(known)) != replaces:
                return False
            self._memory.objects[key] = content
            return True

        return self._memory.call("PutObject", act)


class MemoryStacks(Stacks):
    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def status(self, stack_id: str) -> str | None:
        return self._memory.call("DescribeStacks", lambda: self._memory.stack_status)

    def physical_id(self, stack_id: str, logical_id: str) -> str | None:
        return self._memory.call("DescribeStackResource", lambda: self._memory.held.get((stack_id, logical_id)))


class MemoryJobLogs(JobLogs):
    """Each job has printed its name."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def tail(self, job_name: str, job_arn: str, lines: int = 50) -> list[str]:
        self._memory.call("DescribeLogStreams", lambda: None)
        return self._memory.call("GetLogEvents", lambda: [f"printed by {job_name}"])


class MemoryImages(Images):
    """Everything stands for the same image."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def digest(self, repository: str, reference: str, volume_gb: int) -> str:
        # A single image that is told by its configuration: what needs the most calls.
        for operation in ("DescribeImages", "BatchGetImage", "GetDownloadUrlForLayer"):
            self._memory.call(operation, lambda: None)
        return f"sha256:{'a' * 64}"


class MemoryServices(Services):
    """The services over a memory; Braket stays behind its boto3 client."""

    memory: Memory

    @classmethod
    def over(cls, memory: Memory, services: Services) -> MemoryServices:
        made = cls(settings=services.settings, clients=services.clients, clock=services.clock)
        object.__setattr__(made, "memory", memory)
        return made

    @property
    def ledger(self) -> Ledger:
        return MemoryLedger(self.memory)

    @property
    def artifacts(self) -> Artifacts:
        return MemoryArtifacts(self.memory, self.settings.job_bucket)

    @property
    def images(self) -> Images:
        return MemoryImages(self.memory)

    @property
    def job_logs(self) -> JobLogs:
        return MemoryJobLogs(self.memory)

    @property
    def stacks(self) -> Stacks:
        return MemoryStacks(self.memory)

    def lease(self) -> Lease:
        return MemoryLease(self.memory, f"owner-{id(object())}-{self.clock.now()}")


def _tag(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
