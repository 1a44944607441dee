"""The job's hyperparameters: read as strings, checked all at once before any work."""

import difflib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

DIFFERENTIATION_METHODS = ("adjoint", "parameter-shift", "backprop")
INTERFACES = ("auto", "autograd", "torch")
REDUCTIONS = ("none", "symmetry", "light-cone", "auto")
OPTIMIZERS = ("gradient-descent", "adam", "lbfgs")
PRECISIONS = ("double", "single")


class HyperparameterError(ValueError):
    """One or more hyperparameters are invalid: lists every one of them with its value and the remedy."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = tuple(problems)
        count = "1 invalid hyperparameter" if len(problems) == 1 else f"{len(problems)} invalid hyperparameters"
        super().__init__(f"{count}: " + "; ".join(problems))


@dataclass(frozen=True)
class Hyperparameters:
    """What a job is asked to do.

    p: layers of the ansatz. seed: of the initial parameters, of the sampled cuts, of a generated graph.
    num_iterations: evaluations of cost and gradient. stepsize: of gradient descent and Adam.
    shots: measurements a circuit, or None for exact expectation values.
    interface: "auto" asks the device for the gradient itself, the others go through a PennyLane QNode.
    diff_method: how gradients are computed; never chosen silently.
    reduction: exact simplification of the circuits before they are simulated.
    initial_parameters: gammas then betas, p of each, or None for the documented small random values.
    num_nodes, num_edges: of a generated graph, where there is no input channel.
    cut_samples: bit strings drawn from the final state to find the best cut.
    copy_checkpoints_from_job: the job whose checkpoint to continue when this job has none of its own.
    max_parallel, parametrize_differentiable: handed to Braket's own devices; embedded simulators have no use for them.
    """

    p: int = 2
    seed: int = 1967
    num_iterations: int = 5
    stepsize: float = 0.1
    shots: int | None = None
    interface: str = "auto"
    diff_method: str = "adjoint"
    reduction: str = "none"
    optimizer: str = "gradient-descent"
    precision: str = "double"
    initial_parameters: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    num_nodes: int | None = None
    num_edges: int | None = None
    cut_samples: int = 1000
    copy_checkpoints_from_job: str | None = None
    max_parallel: int = 10
    parametrize_differentiable: bool = True

    def start(self) -> NDArray[np.float64]:
        """The parameters of the first iteration, shape (2, p): gammas, then betas."""
        if self.initial_parameters is not None:
            return np.array(self.initial_parameters, dtype=np.float64)
        # The documented job draws from numpy's legacy generator, so the same seed gives its starting point.
        return 0.01 * np.random.RandomState(self.seed).uniform(size=(2, self.p))


def _integer(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = low - 1
        if not low <= number <= high:
            raise ValueError(f"give a whole number from {low} to {high}")
        return number

    return parse


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise ValueError("give a positive number")
    return number


def _choice(options: tuple[str, ...]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in options:
            raise ValueError(f"give one of {', '.join(options)}")
        return text

    return parse


def _shots(text: str) -> int | None:
    if text.lower() in {"", "none", "0"}:
        return None
    try:
        return _integer(1, 10**8)(text)
    except ValueError:
        raise ValueError("give the number of measurements, or leave it out for exact expectation values") from None


def _boolean(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError("give true or false")
    return text.lower() == "true"


def _interface(text: str) -> str:
    if text in {"tf", "tensorflow"}:
        raise ValueError(f"this job has no TensorFlow interface; give one of {', '.join(INTERFACES)}")
    return _choice(INTERFACES)(text)


def _parameters(text: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    remedy = "give two lists of p finite numbers, gammas then betas, for example [[0.1, 0.2], [0.3, 0.4]]"
    try:
        gammas, betas = json.loads(text)
        values = (tuple(float(value) for value in gammas), tuple(float(value) for value in betas))
    except (ValueError, TypeError):
        raise ValueError(remedy) from None
    if len(values[0]) != len(values[1]) or not all(math.isfinite(value) for row in values for value in row):
        raise ValueError(remedy)
    return values


def _job_name(text: str) -> str:
    if not text.strip():
        raise ValueError("give the name of a job, or leave it out")
    return text


_PARSERS: Mapping[str, Callable[[str], Any]] = {
    "p": _integer(1, 50),
    "seed": _integer(0, 2**32 - 1),
    "num_iterations": _integer(1, 100_000),
    "stepsize": _positive,
    "shots": _shots,
    "interface": _interface,
    "diff_method": _choice(DIFFERENTIATION_METHODS),
    "reduction": _choice(REDUCTIONS),
    "optimizer": _choice(OPTIMIZERS),
    "precision": _choice(PRECISIONS),
    "initial_parameters": _parameters,
    "num_nodes": _integer(2, 100_000),
    "num_edges": _integer(1, 10_000_000),
    "cut_samples": _integer(1, 1_000_000),
    "copy_checkpoints_from_job": _job_name,
    "max_parallel": _integer(1, 1000),
    "parametrize_differentiable": _boolean,
}


def parse_hyperparameters(given: Mapping[str, str]) -> Hyperparameters:
    """Turns the strings that a job receives into checked values.

    Keys beginning `sagemaker_` belong to the container and are passed over.

    Raises:
        HyperparameterError: Names every invalid or unknown hyperparameter, its value and the remedy.
    """
    values: dict[str, Any] = {}
    problems: list[str] = []
    for name, text in given.items():
        if name.startswith("sagemaker_"):
            continue
        parse = _PARSERS.get(name)
        if parse is None:
            near = difflib.get_close_matches(name, _PARSERS, n=1)
            problems.append(f"{name} is unknown, " + (f"did you mean {near[0]}?" if near else "leave it out"))
            continue
        try:
            values[name] = parse(str(text).strip())
        except ValueError as error:
            problems.append(f"{name} = {text!r}: {error}")
    problems.extend(_contradictions(Hyperparameters(**values), values))
    if problems:
        raise HyperparameterError(problems)
    return Hyperparameters(**values)


def _contradictions(settings: Hyperparameters, given: Mapping[str, Any]) -> list[str]:
    problems = []
    if settings.shots is not None and settings.diff_method != "parameter-shift":
        problems.append(
            f"diff_method = {settings.diff_method!r} needs exact expectation values but shots = {settings.shots}: "
            "give diff_method = parameter-shift, or leave shots out"
        )
    if settings.shots is not None and settings.optimizer == "lbfgs":
        problems.append("optimizer = 'lbfgs' needs exact gradients: leave shots out, or give gradient-descent or adam")
    if settings.diff_method == "backprop" and settings.interface == "auto":
        problems.append("diff_method = 'backprop' needs interface = autograd or torch")
    rows = settings.initial_parameters
    if rows is not None and len(rows[0]) != settings.p:
        problems.append(f"initial_parameters has {len(rows[0])} gammas and betas but p = {settings.p}: give p of each")
    if ("num_nodes" in given) != ("num_edges" in given):
        problems.append("num_nodes and num_edges describe a generated graph together: give both or neither")
    elif settings.num_nodes is not None and settings.num_edges is not None:
        most = settings.num_nodes * (settings.num_nodes - 1) // 2
        if settings.num_edges > most:
            problems.append(f"num_edges = {settings.num_edges}: {settings.num_nodes} nodes have at most {most} edges")
    return problems
