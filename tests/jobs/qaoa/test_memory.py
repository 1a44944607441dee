"""A job that doesn't fit is refused before it allocates anything, with what would fit; one that fits stays there."""

import subprocess
import sys
from collections.abc import Mapping

import pytest

from qaoa_source import memory
from qaoa_source.devices import parse_device
from qaoa_source.hyperparameters import Hyperparameters
from qaoa_source.memory import GIB, MemoryEstimateError
from qaoa_source.problem import MaxCutProblem, random_problem
from qaoa_source.reductions import Plan, plan

LIGHTNING = parse_device("local:pennylane/lightning.qubit")
GPU = parse_device("local:pennylane/lightning.gpu")


def every_reduction(problem: MaxCutProblem) -> Mapping[str, Plan]:
    return {name: plan(problem, 2, name) for name in ("none", "symmetry", "light-cone")}


def test_refusal_names_need_and_what_would_fit() -> None:
    problem = random_problem(24, 36, 1967)
    with pytest.raises(MemoryEstimateError) as error:
        memory.check(
            plan(problem, 2, "none"), LIGHTNING, Hyperparameters(), 1.2 * GIB, lambda: every_reduction(problem)
        )
    message = str(error.value)
    assert "reduction = none on lightning.qubit needs 2.02 GiB for 24 qubits (a state of 0.25 GiB)" in message
    assert "this instance has 1.2 GiB free" in message
    for remedy in ("reduction = symmetry", "reduction = light-cone", "precision = single", "ml.m5.large (8 GiB)"):
        assert remedy in message


def test_gpu_is_measured_against_its_own_memory() -> None:
    problem = random_problem(30, 45, 1967)
    whole = plan(problem, 2, "none")
    with pytest.raises(MemoryEstimateError, match=r"the GPU has 24 GiB free.*instance type ml.p4d|the GPU has 24 GiB"):
        memory.check(whole, GPU, Hyperparameters(), 24 * GIB, dict)
    assert memory.check(whole, GPU, Hyperparameters(), 100 * GIB, dict).total == 4 * 16 * 2**30


def test_what_nothing_holds_says_so() -> None:
    problem = random_problem(2000, 3000, 1)
    with pytest.raises(MemoryEstimateError, match="No reduction and no instance would hold it"):
        memory.check(plan(problem, 2, "none"), LIGHTNING, Hyperparameters(), GIB, dict)


def test_available_memory_is_this_machines() -> None:
    assert 0.05 * GIB < memory.available() < 100_000 * GIB


MEASURE = """
import numpy as np
from qaoa_source.devices import open_device, parse_device
from qaoa_source.evaluation import *
from qaoa_source.hyperparameters import Hyperparameters
from qaoa_source.memory import peak
from qaoa_source.problem import random_problem
from qaoa_source.reductions import plan
problem = random_problem(21, 3, 1)
device = open_device(parse_device("local:pennylane/lightning.qubit"), Hyperparameters(), wires=21)
objective = Objective(problem, plan(problem, 1, "none").circuits, device, AdjointMethod(device))
objective.value_and_gradient(np.array([[0.1], [0.2]]))
print(peak())
"""


def test_estimate_is_what_a_job_takes() -> None:
    paths = f"import sys; sys.path[:0] = {[path for path in sys.path if path]!r}\n"
    output = subprocess.run(
        [sys.executable, "-c", paths + MEASURE], capture_output=True, text=True, check=True, timeout=120
    ).stdout
    estimate = memory.need(plan(random_problem(21, 3, 1), 1, "none"), LIGHTNING, Hyperparameters())
    assert 0.7 * estimate.total < float(output) < 1.05 * estimate.total


def test_contraction_that_does_not_fit_says_what_would() -> None:
    with pytest.raises(MemoryEstimateError, match=r"needs 20.2 GiB.*ml.m5.2xlarge \(32 GiB\), a smaller p"):
        memory.check_bytes(20 * GIB, 4 * GIB)
    assert memory.check_bytes(GIB, 4 * GIB).total > GIB
