"""The resource that stands for a stack's records: publishes their schemas, and sees the last of them written."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from dispatch.diagnosis import is_access_denied
from errors import ConflictingWrite, LaunchError
from launch_job.release import end_released, release
from launches import Launch, Released, State
from log_lines import log

if TYPE_CHECKING:
    from collections.abc import Callable

    from clock import Deadline
    from launch_job.event import Request
    from services import Services

RESOURCE_TYPE = "Custom::HybridJobRecords"
# The states of a stack whose resources all go, so that nothing can hold a job of it any more.
_GOING = frozenset({"DELETE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS"})
# Braket gives a cancelled job some minutes to save what it has.
LONGEST_WAIT_SECONDS = 180.0
_PAUSE_SECONDS = 2.0


class Records:
    """Serves one event of the resource.

    Args:
        services: What it works with.
        deadline: By when it answers.
    """

    def __init__(self, services: Services, deadline: Deadline) -> None:
        self._services = services
        self._deadline = deadline

    def publish_schemas(self, request: Request) -> None:
        """Copy the schemas into the job bucket, over those that an earlier deployment has put there.

        Raises:
            LaunchError: A schema isn't where the properties say, or isn't the one that they mean.
        """
        hashes = request.properties.get("SchemaHashes") or {}
        for name, source in sorted((request.properties.get("Schemas") or {}).items()):
            self._services.artifacts.put(source, f"schemas/{name}", hashes.get(name, ""))
            log("schema published", name=name)

    def close(self, request: Request) -> None:
        """Let every job of a stack that goes come to its record, as far as that takes no longer than some minutes.

        The stack's resources have let their launches go by now. What is still held was launched for a request whose
        Delete never came, and with the stack goes the sweep that would find it: it is let go here. Then the collector
        is given the time to write the records. A record that comes too late is written by the sweep of the next
        deployment.

        Raises:
            ClientError: The permission to end a job, or to look for one, is missing.
        """
        status = self._services.stacks.status(request.stack_id)
        if status not in _GOING:
            log("the records' resource goes without its stack: no job is ended", status=status)
            return
        waited_until = self._deadline.remaining() - LONGEST_WAIT_SECONDS
        ended: set[str] = set()
        while True:
            launches = [
                launch
                for launch in self._services.ledger.open_launches()
                if launch.identity.stack_id == request.stack_id
            ]
            for launch in launches:
                # Until that was seen to work; a start that was interrupted is looked for again and again.
                if launch.name not in ended or launch.state is State.STARTING:
                    self._guarded(launch, partial(self._end, launch, request), ended)
            if not launches:
                return
            if self._deadline.remaining() < max(waited_until, _PAUSE_SECONDS):
                log("no record yet", job_names=[launch.name for launch in launches])
                return
            self._services.clock.sleep(_PAUSE_SECONDS)

    def _end(self, launch: Launch, request: Request) -> None:
        if launch.released is not Released.NO:
            end_released(self._services, launch, self._deadline)
            return
        release(
            self._services,
            launch.name,
            why=Released.DELETED,
            request_id=request.request_id,
            deadline=self._deadline,
            reason="the stack was deleted",
        )

    def _guarded(self, launch: Launch, act: Callable[[], None], ended: set[str]) -> None:
        """One job that can't be ended doesn't keep the others from it, nor the stack from being deleted."""
        try:
            act()
        except (ClientError, BotoCoreError, ConflictingWrite, LaunchError) as error:
            if is_access_denied(error):
                raise
            log("a job could not be ended", job_name=launch.name, error=str(error))
        else:
            ended.add(launch.name)
