"""A process that simulates: reads one JSON request a line from standard input, answers one JSON line each.

Request: {"device": "SV1" | "DM1"} asks for the device's capabilities; with "action" (the text of an OpenQASM or
JAQCD program document) and "shots" it asks for a result document. Answer: {"result": {...}} or {"error": "..."}.
It ends when its input does, so that it can't outlive its parent.
"""

import json
import os
import queue
import sys
import threading
import time
from typing import Any

import psutil
from braket.default_simulator import DensityMatrixSimulator, StateVectorSimulator
from braket.ir.jaqcd import Program as JaqcdProgram
from braket.ir.openqasm import Program as OpenQASMProgram

from hybridjobs.local.braket.programs import JAQCD, OPENQASM, memory_needed, qubit_count

_SIMULATORS = {"SV1": StateVectorSimulator, "DM1": DensityMatrixSimulator}
_PROGRAMS = {OPENQASM: OpenQASMProgram, JAQCD: JaqcdProgram}


def main() -> None:
    """Answer requests until the input ends."""
    # Whatever a library prints must not get between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=[requests], daemon=True).start()
    while line := requests.get():
        try:
            answer: dict[str, Any] = {"result": answer_to(json.loads(line))}
        except Exception as error:  # noqa: BLE001 - every failure of a program is an answer, and the next one follows
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _read(requests: "queue.SimpleQueue[str]") -> None:
    """Pass the requests on, and end the process with its input, in the middle of a computation too."""
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)


def answer_to(request: dict[str, Any]) -> dict[str, Any]:
    """Compute one answer; any exception tells why the program can't be simulated."""
    device = request["device"]
    simulator = _SIMULATORS[device]()
    if "action" not in request:
        capabilities: dict[str, Any] = json.loads(simulator.properties.json())
        return capabilities
    action = json.loads(request["action"])
    kind = action["braketSchemaHeader"]["name"]
    _check_memory(device, qubit_count(action))
    program = _PROGRAMS[kind].parse_raw(request["action"])
    started = time.monotonic()
    result: dict[str, Any] = json.loads(simulator.run(program, shots=request["shots"]).json())
    # The schema of results has measurements only where there are some.
    result["measurements"] = result["measurements"] or None
    result["additionalMetadata"]["simulatorMetadata"] = {
        "braketSchemaHeader": {"name": "braket.task_result.simulator_metadata", "version": "1"},
        "executionDuration": round((time.monotonic() - started) * 1000),
    }
    return result


def _check_memory(device: str, qubits: int) -> None:
    available = psutil.virtual_memory().available
    needed = memory_needed(device, qubits)
    if needed > available:
        raise MemoryError(
            f"{qubits} qubits on {device} need {needed / 2**30:.1f} GiB, and this machine has "
            f"{available / 2**30:.1f} GiB free; the service itself would run it"
        )


if __name__ == "__main__":
    main()
