"""Exact expectation values without a state vector: tensor network contraction on light cones, with gradients.

    from contraction import maxcut_qaoa
    qaoa = maxcut_qaoa(graph, depth=2)
    energy, gradient = qaoa.value_and_gradient(gammas, betas)

    device = qml.device("hybridjobs.contraction", wires=60)      # where the package is installed
    device = contraction.device.ContractionDevice(wires=60)      # where its folder is on the path

Heavy libraries are imported where they are used: numba by the compiled sweeps, torch by circuits, PennyLane by the
device.
"""

from contraction.cost import Cost
from contraction.errors import ContractionError, MissingLibraryError, TooLargeError, UnsupportedCircuitError
from contraction.maxcut import MaxCutQaoa, maxcut_qaoa

__all__ = [
    "ContractionError",
    "Cost",
    "MaxCutQaoa",
    "MissingLibraryError",
    "TooLargeError",
    "UnsupportedCircuitError",
    "maxcut_qaoa",
]
