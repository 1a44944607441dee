"""State-change events: how they look, and their delivery at least once from the store's outbox."""

import json
import logging
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol

from hybridjobs.local.braket.life_cycle import Job

FIRST_RETRY_SECONDS = 0.2
LONGEST_RETRY_SECONDS = 30.0

_logger = logging.getLogger(__name__)

Publish = Callable[[Mapping[str, Any]], None]


def job_state_change(job: Job, moment: datetime) -> dict[str, Any]:
    """Return the EventBridge entry for the state `job` is in now, JSON-able: `Time` is ISO 8601 text.

    The service documents no detail for job events; these fields are the ones that public consumers of them read, in
    the style of the documented task event.
    """
    detail = {
        "jobArn": job.arn,
        "status": job.status,
        "deviceArn": job.device,
        "createdAt": _text(job.created_at),
        "startedAt": _text(job.started_at),
        "endedAt": _text(job.ended_at),
        "eventName": "MODIFY" if job.status != "QUEUED" else "INSERT",
    }
    return state_change("Braket Job State Change", job.arn, detail, moment)


def state_change(detail_type: str, arn: str, detail: Mapping[str, Any], moment: datetime) -> dict[str, Any]:
    """Return an EventBridge entry of the service; members of `detail` that are None are left out."""
    return {
        "Source": "aws.braket",
        "DetailType": detail_type,
        "Detail": json.dumps({name: value for name, value in detail.items() if value is not None}),
        "Resources": [arn],
        "Time": moment.isoformat(),
    }


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Outbox(Protocol):
    """Entries that are stored together with the state change that they tell of; `new_events` is set for each."""

    new_events: threading.Event

    def pending_events(self, limit: int) -> list[tuple[int, dict[str, Any]]]:
        """Return the oldest entries with their numbers."""
        ...

    def drop_event(self, number: int) -> None:
        """Forget a delivered entry."""
        ...


class EventPublisher:
    """Delivers the outbox in order from a thread of its own; what can't be delivered is kept and tried again."""

    def __init__(self, outbox: Outbox, publish: Publish):
        self._outbox = outbox
        self._publish = publish
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="braket-events", daemon=True)

    def start(self) -> None:
        """Begin with whatever an earlier process left."""
        self._thread.start()

    def stop(self) -> None:
        """Make one last attempt and end the thread; what is left stays stored for the next start."""
        self._stopping.set()
        self._outbox.new_events.set()
        self._thread.join()

    def _work(self) -> None:
        delay = FIRST_RETRY_SECONDS
        while True:
            # Read before delivering: what is stored during the last attempt waits for the next start.
            last = self._stopping.is_set()
            self._outbox.new_events.clear()
            delivered = self._deliver()
            if last:
                return
            if delivered:
                delay = FIRST_RETRY_SECONDS
                self._outbox.new_events.wait()
            else:
                self._stopping.wait(delay)
                delay = min(2 * delay, LONGEST_RETRY_SECONDS)

    def _deliver(self) -> bool:
        while entries := self._outbox.pending_events(limit=100):
            for number, entry in entries:
                try:
                    self._publish({**entry, "Time": datetime.fromisoformat(entry["Time"])})
                except Exception:  # whatever the bus raises, the event must not be lost
                    _logger.exception("Event %s could not be delivered; it will be tried again", number)
                    return False
                self._outbox.drop_event(number)
        return True
