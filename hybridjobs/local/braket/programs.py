"""What can be told of a quantum program without simulating it."""

import re
from collections.abc import Mapping
from typing import Any

OPENQASM = "braket.ir.openqasm.program"
JAQCD = "braket.ir.jaqcd.program"

_REGISTER = re.compile(r"^\s*qubit\s*(?:\[\s*(\d+)\s*\])?\s+\w", re.MULTILINE)
_PHYSICAL_QUBIT = re.compile(r"\$(\d+)")
_BYTES_PER_AMPLITUDE = 16
# The state itself and the working copies of the simulator.
_COPIES = 4


def qubit_count(action: Mapping[str, Any]) -> int:
    """Return how many qubits a program document uses at least: registers or physical qubits, or the instructions'."""
    if action["braketSchemaHeader"]["name"] == JAQCD:
        return len({qubit for each in action.get("instructions", []) for qubit in _targets(each)})
    source = action.get("source", "")
    declared = sum(int(size or 1) for size in _REGISTER.findall(source))
    return declared or len(set(_PHYSICAL_QUBIT.findall(source)))


def _targets(instruction: Mapping[str, Any]) -> list[int]:
    places = [instruction.get(name) for name in ("target", "control", "targets", "controls")]
    return [qubit for place in places if place is not None for qubit in (place if isinstance(place, list) else [place])]


def memory_needed(device: str, qubits: int) -> int:
    """Return the bytes that a simulation needs: 2^n amplitudes for SV1, 4^n for DM1, with working copies."""
    exponent = qubits if device == "SV1" else 2 * qubits
    return _BYTES_PER_AMPLITUDE * _COPIES << exponent
