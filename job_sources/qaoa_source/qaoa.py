"""Entry point of the job: reads what it is asked, optimises, finds the best cut, saves the result.

An exception ends the job as failed with its message as the reason; none is turned into a printed line.
"""

import dataclasses
import math
import os
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from braket.jobs import get_hyperparameters, get_input_data_dir, get_job_device_arn, save_job_result
from braket.jobs.metrics import log_metric
from numpy.typing import NDArray

from qaoa_source import checkpoints, memory
from qaoa_source.answer import best_cut, threads
from qaoa_source.cost import CostModel, choose
from qaoa_source.devices import check_method, parse_device, versions
from qaoa_source.graph_files import read_channel
from qaoa_source.hyperparameters import HyperparameterError, Hyperparameters, parse_hyperparameters
from qaoa_source.optimise import OPTIMIZERS
from qaoa_source.problem import MaxCutProblem, random_problem

CHANNEL = "input-graph"
# After this many iterations every second one is saved, then every third: a checkpoint holds the whole record.
CHECKPOINTED_EACH = 1000


class NotFiniteError(ArithmeticError):
    """The cost or its gradient is no finite number, so no later iteration could be one."""


def main() -> None:
    """Runs the job that the container's environment describes."""
    settings = parse_hyperparameters(get_hyperparameters())
    request = parse_device(get_job_device_arn())
    check_method(request, settings)
    problem = find_problem(settings)
    begun = time.perf_counter()
    model = choose(problem, settings, request)
    print(f"{problem.nodes} nodes, {len(problem.edges)} edges on {request.text}; {model.plan.reason}", flush=True)
    run = Run(model, time.perf_counter() - begun)
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

    def __init__(self, model: CostModel, setup_seconds: float) -> None:
        self._model = model
        self._setup_seconds = setup_seconds
        self._origin = checkpoints.origin(model.problem, model.settings)
        recorded = checkpoints.load(self._origin, model.settings.copy_checkpoints_from_job)
        self._recorded = recorded[: model.settings.num_iterations]
        self._resumed_from = len(self._recorded)
        self._done = 0
        self._objective = model.objective(0)

    def optimise(self) -> NDArray[np.float64]:
        """Returns the parameters that the optimiser ends with, shape (2, p)."""
        settings = self._model.settings
        return OPTIMIZERS[settings.optimizer](self._evaluate, settings.start(), settings)

    def _evaluate(self, parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        if self._done < len(self._recorded):
            return self._replay(parameters)
        if self._model.settings.shots is not None:
            self._objective = self._model.objective(self._done)
        begun = time.perf_counter()
        cost, gradient = self._objective.value_and_gradient(parameters)
        seconds = time.perf_counter() - begun
        self._check(cost, gradient, parameters)
        self._recorded.append(checkpoints.Evaluation(parameters.tolist(), cost, gradient.tolist(), seconds))
        log_metric("Cost", cost, iteration_number=self._done)
        log_metric("iteration_seconds", seconds, iteration_number=self._done)
        self._done += 1
        if self._done % (1 + self._done // CHECKPOINTED_EACH) == 0:
            checkpoints.save(self._recorded, self._origin)
        return cost, gradient

    def _check(self, cost: float, gradient: NDArray[np.float64], parameters: NDArray[np.float64]) -> None:
        if math.isfinite(cost) and np.isfinite(gradient).all():
            return
        raise NotFiniteError(
            f"iteration {self._done}: cost = {cost}, gradient = {gradient.tolist()} at parameters = "
            f"{parameters.tolist()}. Give a smaller stepsize, or a graph whose weights add up to a finite number."
        )

    def _replay(self, parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        evaluation = self._recorded[self._done]
        if not np.array_equal(parameters, evaluation.params):
            raise checkpoints.CheckpointError(
                f"iteration {self._done} of the checkpoint is at other parameters than this job reaches: it was "
                "made by another version of the job or its libraries. Remove it to start anew."
            )
        self._done += 1
        return evaluation.cost, np.array(evaluation.gradient)

    def result(self, parameters: NDArray[np.float64]) -> dict[str, Any]:
        """What results.json holds: plain JSON values only."""
        model, settings, problem = self._model, self._model.settings, self._model.problem
        draw = settings.num_iterations
        if settings.shots is not None:
            self._objective = model.objective(draw)
        cost = self._objective.value(parameters)
        self._check(cost, np.zeros(0), parameters)
        log_metric("Cost", cost, iteration_number=self._done)
        found = best_cut(model, parameters, draw + 1)
        seconds = [evaluation.seconds for evaluation in self._recorded]
        return {
            "cost": cost,
            "costs": [evaluation.cost for evaluation in self._recorded],
            "params": parameters.tolist(),
            "iterations": len(seconds),
            "iteration_seconds": seconds,
            "first_iteration_seconds": seconds[0],
            "median_iteration_seconds": statistics.median(seconds[1:]) if len(seconds) > 1 else None,
            "setup_seconds": self._setup_seconds,
            "resumed_from_iteration": self._resumed_from,
            "nodes": problem.nodes,
            "edges": len(problem.edges),
            "node_labels": list(problem.labels),
            "p": settings.p,
            "diff_method": settings.diff_method,
            "reduction": model.plan.reduction,
            "reduction_reason": model.plan.reason,
            "reduction_work": dict(model.plan.compared),
            "circuits": len(model.plan.circuits),
            "circuit_executions": model.circuit_executions,
            "qubits": model.plan.wires or None,
            "device": model.request.text,
            "device_name": model.device_name,
            "gpu": None if model.gpu is None else model.gpu.name,
            **found,
            "approximation_ratio": -cost / found["optimum"] if found["optimum"] else None,
            "memory_estimate_bytes": model.need.total,
            "peak_memory_bytes": memory.peak(),
            "versions": versions(model.request),
            "threads": threads(),
            "seed": settings.seed,
            "settings": dataclasses.asdict(settings),
        }


if __name__ == "__main__":
    main()
