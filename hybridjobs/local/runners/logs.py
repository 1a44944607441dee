"""A job's log lines on their way to CloudWatch Logs, as they come, and into a file beside the job."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_logs.type_defs import InputLogEventTypeDef

# The limits of PutLogEvents
EVENT_OVERHEAD_BYTES = 26
LONGEST_EVENT_BYTES = 256 * 1024 - EVENT_OVERHEAD_BYTES
LARGEST_BATCH_BYTES = 1_048_576
LARGEST_BATCH_EVENTS = 10_000

LARGEST_FILE_BYTES = 64 << 20
_LARGEST_BACKLOG_EVENTS = 50_000


def _size(event: "InputLogEventTypeDef") -> int:
    return len(event["message"].encode()) + EVENT_OVERHEAD_BYTES


def next_batch(events: list["InputLogEventTypeDef"]) -> list["InputLogEventTypeDef"]:
    """Take from the front of `events` what one PutLogEvents call may carry."""
    total = taken = 0
    for event in events[:LARGEST_BATCH_EVENTS]:
        total += _size(event)
        if total > LARGEST_BATCH_BYTES:
            break
        taken += 1
    batch = events[:taken]
    del events[:taken]
    return batch


class LogStream:
    """One log stream of one host; `write` may be called from any thread.

    A service that doesn't answer costs log lines, never the job: a batch that can't be sent is counted in the file.
    """

    def __init__(self, client: "CloudWatchLogsClient", group: str, stream: str, file: Path, period_seconds: float):
        self._client = client
        self._group = group
        self._stream = stream
        self._period = period_seconds
        file.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = file.open("ab", buffering=0)
        self._written = 0
        self._events: list[InputLogEventTypeDef] = []
        self._changed = threading.Condition()
        self._closing = False
        self._last_time = 0
        self._sender = threading.Thread(target=self._send_all, name=f"log {stream}", daemon=True)
        self._sender.start()

    def write(self, line: str) -> None:
        """Add one line; blocks while the service is far behind, so that memory stays bounded."""
        message = line.encode(errors="replace")[:LONGEST_EVENT_BYTES].decode(errors="ignore") or " "
        with self._changed:
            self._append_to_file(line)
            while len(self._events) >= _LARGEST_BACKLOG_EVENTS and not self._closing:
                self._changed.wait(self._period)
            self._last_time = max(self._last_time, time.time_ns() // 1_000_000)
            self._events.append({"timestamp": self._last_time, "message": message})

    def close(self) -> None:
        """Send what is left and close the file; lines that come later are dropped."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._sender.join()
        self._file.close()

    def _append_to_file(self, line: str) -> None:
        if self._file.closed or self._written > LARGEST_FILE_BYTES:
            return
        data = line.encode(errors="replace") + b"\n"
        self._written += len(data)
        if self._written > LARGEST_FILE_BYTES:
            data = b"(the rest of this log is in CloudWatch Logs only)\n"
        self._file.write(data)

    def _send_all(self) -> None:
        self._create()
        while True:
            with self._changed:
                if not self._closing:
                    self._changed.wait(self._period)
                closing = self._closing
                events, self._events = self._events, []
                self._changed.notify_all()
            while events:
                self._send(next_batch(events))
            if closing:
                return

    def _create(self) -> None:
        group, stream = self._group, self._stream
        self._try_to_create(lambda: self._client.create_log_group(logGroupName=group))
        self._try_to_create(lambda: self._client.create_log_stream(logGroupName=group, logStreamName=stream))

    def _try_to_create(self, create: Callable[[], object]) -> None:
        try:
            create()
        except ClientError as error:
            # By its code: a client's exception classes are made anew in each thread that first asks for them.
            if error.response["Error"]["Code"] != "ResourceAlreadyExistsException":
                self._note(f"{self._group}/{self._stream} could not be created: {error}")
        except BotoCoreError as error:
            self._note(f"{self._group}/{self._stream} could not be created: {error}")

    def _send(self, batch: list["InputLogEventTypeDef"]) -> None:
        try:
            self._client.put_log_events(logGroupName=self._group, logStreamName=self._stream, logEvents=batch)
        except (ClientError, BotoCoreError) as error:
            self._note(f"{len(batch)} lines could not be sent to CloudWatch Logs: {error}")

    def _note(self, text: str) -> None:
        with self._changed:
            self._append_to_file(f"({text})")
