"""Stack events of one millisecond: the emulator makes whole stacks in one, and gives all of their events the same time.

The CDK CLI puts events into the order of their times, and shows those of one millisecond backwards: a resource would be
complete before its creation began.
"""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

_STEP = timedelta(milliseconds=1)


def apply() -> None:
    """Give each stack event a later time than the one before it."""
    from ministack.services.cloudformation import stacks  # noqa: PLC0415

    stacks.now_iso = _ascending_times(lambda: datetime.now(UTC))


def _ascending_times(now: Callable[[], datetime]) -> Callable[[], str]:
    lock = threading.Lock()
    latest = now()

    def next_time() -> str:
        nonlocal latest
        with lock:
            latest = max(now(), latest + _STEP)
            return latest.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"

    return next_time
