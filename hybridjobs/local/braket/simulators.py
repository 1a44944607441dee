"""The on-demand simulators: a client for processes that simulate, ended and started again as needed."""

import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

_COMMAND = [sys.executable, "-m", "hybridjobs.local.braket.simulator_worker"]
_END_TIMEOUT_SECONDS = 10


class SimulationError(Exception):
    """A program that couldn't be simulated; the message says why."""


class Simulator:
    """One simulating process, started at the first request; requests of several threads wait for each other."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._closed = False
        self._request_lock = threading.Lock()
        self._process_lock = threading.Lock()

    def capabilities(self, device: str) -> dict[str, Any]:
        """Return what the simulator behind `device` ("SV1" or "DM1") can do, as a device capabilities document."""
        return self._ask({"device": device})

    def simulate(self, device: str, action: str, shots: int) -> dict[str, Any]:
        """Return the result document of the program document `action`; SimulationError where there is none."""
        return self._ask({"device": device, "action": action, "shots": shots})

    def stop(self) -> None:
        """End the process, whatever it computes; the request under way raises SimulationError."""
        with self._process_lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(_END_TIMEOUT_SECONDS)

    def close(self) -> None:
        """End the process for good: later requests raise SimulationError."""
        with self._process_lock:
            self._closed = True
        self.stop()

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        with self._request_lock:
            process = self._running()
            try:
                line = self._exchange(process, json.dumps(request))
            except (OSError, ValueError):
                line = ""
            if not line:
                raise SimulationError(self._ending(process))
        answer = json.loads(line)
        if "error" in answer:
            raise SimulationError(answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    @staticmethod
    def _exchange(process: "subprocess.Popen[str]", request: str) -> str:
        requests, answers = process.stdin, process.stdout
        if requests is None or answers is None:
            raise ValueError("The simulator must be started with pipes")
        requests.write(request + "\n")
        requests.flush()
        return answers.readline()

    def _running(self) -> "subprocess.Popen[str]":
        with self._process_lock:
            if self._closed:
                raise SimulationError("The simulator is closed")
            if self._process is None or self._process.poll() is not None:
                self._process = subprocess.Popen(
                    _COMMAND,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    encoding="utf-8",
                )
            return self._process

    @staticmethod
    def _ending(process: "subprocess.Popen[str]") -> str:
        process.kill()
        status = process.wait(_END_TIMEOUT_SECONDS)
        hint = "; the machine may have run out of memory" if status == -9 else ""
        return f"The simulator ended with status {status}{hint}"
