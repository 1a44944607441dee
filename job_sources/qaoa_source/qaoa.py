"""Entry point of the job: reads what it is asked, optimises, finds the best cut, saves the result.

An exception ends the job as failed with its message as the reason; none is turned into a printed line.
"""

import dataclasses
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from braket.jobs import get_hyperparameters, get_input_data_dir, get_job_device_arn, save_job_result
from braket.jobs.metrics import log_metric
from numpy.typing import NDArray

from qaoa_source import checkpoints, cuts
from qaoa_source.ansatz import whole_circuit
from qaoa_source.devices import DeviceRequest, check_method, open_device, parse_device, versions
from qaoa_source.evaluation import AdjointMethod, GradientMethod, InterfaceMethod, Objective, ParameterShiftMethod
from qaoa_source.graph_files import read_channel
from qaoa_source.hyperparameters import HyperparameterError, Hyperparameters, parse_hyperparameters
from qaoa_source.optimise import OPTIMIZERS
from qaoa_source.problem import MaxCutProblem, random_problem

CHANNEL = "input-graph"


def main() -> None:
    """Runs the job that the container's environment describes."""
    settings = parse_hyperparameters(get_hyperparameters())
    request = parse_device(get_job_device_arn())
    check_method(request, settings)
    problem = find_problem(settings)
    run = Run(problem, settings, request)
    parameters = run.optimise()
    save_job_result(run.result(parameters))


def find_problem(settings: Hyperparameters) -> MaxCutProblem:
    """The graph of the input channel, or the generated one that the hyperparameters describe.

    Raises:
        HyperparameterError: Both are given, or neither.
        GraphError: The channel's graph can't be used.
    """
    channel = Path(get_input_data_dir(CHANNEL))
    given = "AMZN_BRAKET_INPUT_DIR" in os.environ and channel.is_dir()
    if settings.num_nodes is None or settings.num_edges is None:
        if not given:
            raise HyperparameterError(
                [f"no graph: give the job an input channel {CHANNEL}, or num_nodes and num_edges for a generated one"]
            )
        return read_channel(channel)
    if given:
        raise HyperparameterError(
            [f"num_nodes = {settings.num_nodes} but the input channel {CHANNEL} holds a graph: give one of the two"]
        )
    return random_problem(settings.num_nodes, settings.num_edges, settings.seed)


class Run:
    """One optimisation with its record of evaluations."""

    def __init__(self, problem: MaxCutProblem, settings: Hyperparameters, request: DeviceRequest) -> None:
        self._problem = problem
        self._settings = settings
        self._request = request
        self._circuits = (whole_circuit(problem, settings.p),)
        self._origin = checkpoints.origin(problem, settings)
        self._recorded = checkpoints.load(self._origin, settings.copy_checkpoints_from_job)
        self._resumed_from = min(len(self._recorded), settings.num_iterations)
        self._done = 0
        self._device = self._open(0)
        self._objective = self._objective_on(self._device)

    def optimise(self) -> NDArray[np.float64]:
        """Returns the parameters that the optimiser ends with."""
        optimizer = OPTIMIZERS[self._settings.optimizer]
        parameters = optimizer(self._evaluate, self._settings.start(), self._settings)
        self._recorded = self._recorded[: self._done]
        return parameters

    def _open(self, draw: int) -> Any:
        """A device whose measurements follow from the seed and the number of the evaluation alone."""
        seed = int(np.random.SeedSequence((self._settings.seed, draw)).generate_state(1)[0])
        return open_device(self._request, self._settings, wires=self._problem.nodes, seed=seed)

    def _objective_on(self, device: Any) -> Objective:
        settings = self._settings
        method: GradientMethod
        if settings.interface != "auto":
            method = InterfaceMethod(device, settings.interface, settings.diff_method, settings.shots)
        elif settings.diff_method == "adjoint":
            method = AdjointMethod(device)
        else:
            method = ParameterShiftMethod(device, settings.shots)
        return Objective(self._problem, self._circuits, device, method, settings.shots)

    def _evaluate(self, parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        if self._done < len(self._recorded):
            evaluation = self._recorded[self._done]
            if not np.array_equal(parameters, evaluation.params):
                raise checkpoints.CheckpointError(
                    f"iteration {self._done} of the checkpoint is at other parameters than this job reaches: it was "
                    "made by another version of the job or its libraries. Remove it to start anew."
                )
            self._done += 1
            return evaluation.cost, np.array(evaluation.gradient)
        if self._settings.shots is not None:
            self._objective = self._objective_on(self._open(self._done))
        begun = time.perf_counter()
        cost, gradient = self._objective.value_and_gradient(parameters)
        seconds = time.perf_counter() - begun
        self._recorded.append(checkpoints.Evaluation(parameters.tolist(), cost, gradient.tolist(), seconds))
        log_metric("Cost", cost, iteration_number=self._done)
        log_metric("iteration_seconds", seconds, iteration_number=self._done)
        self._done += 1
        checkpoints.save(self._recorded, self._origin)
        return cost, gradient

    def result(self, parameters: NDArray[np.float64]) -> dict[str, Any]:
        """What results.json holds: plain JSON values only."""
        problem, settings = self._problem, self._settings
        if settings.shots is not None:
            self._objective = self._objective_on(self._open(settings.num_iterations))
        cost = self._objective.value(parameters)
        log_metric("Cost", cost, iteration_number=self._done)
        sampler = self._open(settings.num_iterations + 1)
        state = cuts.SampledState(self._circuits[0], tuple(range(problem.nodes)))
        best = cuts.best_of(problem, cuts.sample(problem, [state], parameters, sampler, settings.cut_samples))
        optimum = cuts.optimum(problem)
        generator = np.random.default_rng(settings.seed)
        control = cuts.classical_control(problem, settings.cut_samples, generator)
        return {
            "cost": cost,
            "costs": [evaluation.cost for evaluation in self._recorded],
            "params": parameters.tolist(),
            "iteration_seconds": [evaluation.seconds for evaluation in self._recorded],
            "iterations": len(self._recorded),
            "resumed_from_iteration": self._resumed_from,
            "nodes": problem.nodes,
            "edges": len(problem.edges),
            "node_labels": list(problem.labels),
            "p": settings.p,
            "diff_method": settings.diff_method,
            "device": self._request.text,
            "device_name": self._device.name,
            "best_cut": _plain(best.value),
            "best_partition": best.partition,
            "best_cut_method": f"best of {settings.cut_samples} samples of the final state",
            "optimum": None if optimum is None else _plain(optimum),
            "cut_upper_bound": _plain(cuts.upper_bound(problem) if optimum is None else optimum),
            "approximation_ratio": None if not optimum else -cost / optimum,
            "best_cut_ratio": None if not optimum else best.value / optimum,
            "classical_control": {name: _plain(value) for name, value in control.items()},
            "versions": versions(self._request),
            "threads": os.environ.get("OMP_NUM_THREADS"),
            "seed": settings.seed,
            "settings": dataclasses.asdict(settings),
        }


def _plain(value: float) -> float | int:
    """A whole number as int, so that the cut of an unweighted graph reads 21 and not 21.0."""
    return int(value) if float(value).is_integer() else float(value)


if __name__ == "__main__":
    main()
