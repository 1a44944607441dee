"""One worker of a data-parallel training, started by the launcher; not an entry point of a job.

Only the standard library is imported before the worker has its own GPU: whatever is imported afterwards sees that one
alone, and can't allocate on another worker's.
"""

import ctypes
import os
import signal
import sys
import threading
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def end_with_launcher(launcher: int) -> None:
    """Ends this process when its launcher is gone, by whatever end: nobody else would end it or wait for it."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        threading.Thread(target=_watch_parent, args=(launcher,), daemon=True).start()
    if os.getppid() != launcher:  # it ended before the request was made
        os._exit(1)


def _watch_parent(launcher: int) -> None:
    while os.getppid() == launcher:
        time.sleep(1)
    os._exit(1)


def main() -> int:
    """Takes part in the training that the environment describes; returns the exit code."""
    end_with_launcher(int(os.environ["QML_LAUNCHER_PID"]))
    from qml_source.own_gpu import own_gpu  # noqa: PLC0415 - see the module's description

    os.environ.update(own_gpu(os.environ))
    from qml_source import failures  # noqa: PLC0415 - see the module's description

    folder, rank = Path(os.environ[failures.FOLDER_VARIABLE]), int(os.environ["RANK"])
    host = os.environ.get("SM_CURRENT_HOST") or "localhost"
    try:
        from qml_source import participation  # noqa: PLC0415 - see the module's description

        participation.take_part()
    except BaseException as error:  # noqa: BLE001 - whatever ends a worker must reach the launcher as the job's reason
        failures.record(folder, error, rank=rank, host=host, consequence=type(error).__name__ == "PeerLostError")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
