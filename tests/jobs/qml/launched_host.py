"""Launchers of hosts with stub workers, as train_dp starts them, forked from a process that has PyTorch loaded.

Reads JSON lines. {"variables", "log"} starts a launcher and prints its process number; {"wait": number} waits for it
and prints its exit code, negative for a signal.
"""

import json
import os
import sys
import traceback
from collections.abc import Mapping

from qml_source import host_watch
from qml_source.launcher import launch
from qml_source.simulators import parse_device
from qml_source.topology import read_topology


def start(variables: Mapping[str, str], log: str) -> int:
    """Forks one host's launcher, whose output goes to `log`."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        file = os.open(log, os.O_WRONLY | os.O_CREAT)
        os.dup2(file, 1)
        os.dup2(file, 2)
        os.environ.update(variables)
        if "STUB_CAUSE_SECONDS" in variables:
            host_watch.CAUSE_SECONDS = host_watch.FAREWELL_SECONDS = float(variables["STUB_CAUSE_SECONDS"])
        device, workers = parse_device(os.environ["AMZN_BRAKET_DEVICE_ARN"]), int(os.environ["STUB_WORKERS"])
        launch(read_topology(os.environ, device, workers), worker="stub_worker")
        code = 0
    except BaseException:  # noqa: BLE001 - the fork must never go on in its parent's loop
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


for line in sys.stdin:
    request = json.loads(line)
    if "wait" in request:
        print(os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1]), flush=True)
    else:
        print(start(request["variables"], request["log"]), flush=True)
