"""The answer of a finished optimisation: the best cut, how it was found, and what it compares with."""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qaoa_source import cuts, memory
from qaoa_source.ansatz import SampledState, whole_circuit
from qaoa_source.cost import CostModel
from qaoa_source.reductions import component_states

# A forward pass over a state of this many qubits takes some ten seconds on one core.
SAMPLED_WIRES = 26
# Copies of a state while it is made and sampled, measured with PennyLane 0.45.
_SAMPLING_COPIES = 5


def sampled_states(model: CostModel) -> list[SampledState]:
    """The circuits that make the final state, or none where it is too large to hold."""
    if model.contracted is not None:
        return []
    if model.settings.reduction == "none":
        nodes = model.problem.nodes
        states = [SampledState(whole_circuit(model.problem, model.settings.p), tuple(range(nodes)))]
    else:
        states = component_states(model.problem, model.settings.p)
    if not model.request.embedded:
        return states
    largest = max(state.circuit.wires for state in states)
    needed = _SAMPLING_COPIES * 16 * 2.0 ** min(largest, 1000)
    free = memory.available() if model.gpu is None else model.gpu.free
    return states if largest <= SAMPLED_WIRES and needed <= free else []


def best_cut(model: CostModel, parameters: NDArray[np.float64], draw: int) -> dict[str, Any]:
    """The best cut found with the final parameters, beside the optimum, or a bound, and classical controls."""
    problem, settings = model.problem, model.settings
    states = sampled_states(model)
    if states:
        bits = cuts.sample(problem, states, parameters, model.device(draw), settings.cut_samples)
        found = cuts.best_of(problem, bits)
        method = f"best of {settings.cut_samples} samples of the final state"
    else:
        correlations = model.objective(draw).correlations(parameters)
        found = cuts.from_correlations(problem, correlations)
        method = "signs of the edge correlations along a spanning forest, then local search; not a sample of the state"
    optimum = cuts.optimum(problem)
    control = cuts.classical_control(problem, settings.cut_samples, np.random.default_rng(settings.seed))
    return {
        "best_cut": plain(found.value),
        "best_partition": found.partition,
        "best_cut_method": method,
        "optimum": None if optimum is None else plain(optimum),
        "cut_upper_bound": plain(cuts.upper_bound(problem) if optimum is None else optimum),
        "best_cut_ratio": found.value / optimum if optimum else None,
        "classical_control": {name: plain(value) for name, value in control.items()},
    }


def plain(value: float) -> float | int:
    """A whole number as int, so that the cut of an unweighted graph reads 21 and not 21.0."""
    return int(value) if float(value).is_integer() else float(value)


def threads() -> dict[str, str | int | None]:
    """What limits the simulators' threads, to be recorded beside the times."""
    return {"cpus": len(os.sched_getaffinity(0)), "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS")}
