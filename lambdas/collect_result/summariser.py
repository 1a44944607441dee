"""Publishes the summary of a benchmark run when the last of its jobs has ended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from collect_result.record import document_bytes, read_record, record_key
from collect_result.summary import latest_key, make_summary, members, summary_key
from errors import ConflictingWrite
from log_lines import log

if TYPE_CHECKING:
    from collections.abc import Sequence

    from launches import Launch
    from services import Services

_WRITE_TRIES = 10


class Summariser:
    """Writes summaries so that none is ever replaced by an older view of the same run."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def update(self, launch: Launch) -> None:
        """Publish the summary of the run that a launch is a part of, if all of its jobs have their records."""
        if launch.benchmark is None:
            return
        if self._publish(summary_key(launch.benchmark, launch.identity.run), launch):
            self._publish(latest_key(launch.benchmark), launch)

    def _publish(self, key: str, launch: Launch) -> bool:
        """Write one object; returns whether the run is complete.

        What is replaced is read before anything that the summary is made of: if another writer comes in between, the
        write fails and everything is read anew. So the last write has seen all that was there before it.
        """
        for _ in range(_WRITE_TRIES):
            current = self._services.artifacts.read(key)
            summary = self._summary(launch)
            if summary is None:
                return False
            content = document_bytes(summary)
            if current is not None and (current[0] == content or _asked_at(current[0]) > summary["requested_at"]):
                return True
            if self._services.artifacts.write(key, content, replaces=current[1] if current else None):
                log("summary written", key=key)
                return True
        raise ConflictingWrite(key)

    def _summary(self, launch: Launch) -> dict[str, Any] | None:
        launches = members(self._services.ledger.all_launches(), launch)
        return (
            make_summary(launches, self._records(launches), stage=self._services.settings.stage) if launches else None
        )

    def _records(self, launches: Sequence[Launch]) -> dict[str, dict[str, Any]]:
        found = {launch.name: self._services.artifacts.read(record_key(launch.name)) for launch in launches}
        records = {name: read_record(read[0]) for name, read in found.items() if read is not None}
        return {name: record for name, record in records.items() if record is not None}


def _asked_at(content: bytes) -> str:
    try:
        return str(json.loads(content)["requested_at"])
    except (ValueError, KeyError, TypeError):
        return ""
