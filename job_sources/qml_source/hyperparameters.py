"""The job's hyperparameters: read as strings, checked all at once before any work."""

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

DIFFERENTIATION_METHODS = ("auto", "adjoint", "backprop")
PRECISIONS = ("double", "single")
SCALINGS = ("none", "standard")
BACKENDS = ("auto", "gloo", "nccl", "smddp")
# The second entangling layer couples wires this far apart.
WIDEST_REACH = 3


class HyperparameterError(ValueError):
    """One or more hyperparameters are invalid: lists every one of them with its value and the remedy."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = tuple(problems)
        count = "1 invalid hyperparameter" if len(problems) == 1 else f"{len(problems)} invalid hyperparameters"
        super().__init__(f"{count}: " + "; ".join(problems))


@dataclass(frozen=True)
class Hyperparameters:
    """What a job is asked to do.

    nwires: qubits. ndata: samples to train on, None for all that are not held out.
    batch_size: samples of one step on all workers together, however many there are.
    epochs, lr, gamma: passes over the data, Adam's learning rate, and the factor it is multiplied by after each epoch.
    seed: of the choice of samples, of the initial weights, and of the order of samples in each epoch.
    held_out: the share of all samples that is kept from training and measured on; 0 for none.
    evaluate_every: epochs between two measurements on the held-out samples; the last epoch is always measured.
    scaling: "standard" shifts and scales each feature to mean 0 and deviation 1 over the training samples.
    diff_method: "auto" takes the device's own: adjoint on lightning, backprop on the batched simulators.
    precision: of the circuit and the weights.
    workers_per_host: of data-parallel training, None for one a GPU, or one a CPU on a host without GPUs.
    backend: of data-parallel training, "auto" for what suits the place where the gradients are.
    copy_checkpoints_from_job: the job whose checkpoint to continue when this job has none of its own.
    """

    nwires: int = 10
    ndata: int | None = 64
    batch_size: int = 64
    epochs: int = 5
    gamma: float = 0.99
    lr: float = 0.1
    seed: int = 42
    held_out: float = 0.2
    evaluate_every: int = 1
    scaling: str = "none"
    diff_method: str = "auto"
    precision: str = "double"
    workers_per_host: int | None = None
    backend: str = "auto"
    copy_checkpoints_from_job: str | None = None


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


def _number(low: float, high: float, *, low_included: bool, high_included: bool, wanted: str) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        above = number >= low if low_included else number > low
        below = number <= high if high_included else number < high
        if not (above and below):
            raise ValueError(f"give {wanted}")
        return number

    return parse


def _choice(options: tuple[str, ...]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in options:
            raise ValueError(f"give one of {', '.join(options)}")
        return text

    return parse


def _samples(text: str) -> int | None:
    if text.lower() == "all":
        return None
    try:
        return _integer(1, 10**9)(text)
    except ValueError:
        raise ValueError("give the number of samples to train on, or all") from None


def _wires(text: str) -> int:
    wires = _integer(2, 1000)(text)
    if wires == WIDEST_REACH:
        raise ValueError(
            f"the second entangling layer couples wires {WIDEST_REACH} apart, on {WIDEST_REACH} wires each with "
            "itself; give 2, or 4 or more"
        )
    return wires


def _job_name(text: str) -> str:
    if not text.strip():
        raise ValueError("give the name of a job, or leave it out")
    return text


_PARSERS: Mapping[str, Callable[[str], Any]] = {
    "nwires": _wires,
    "ndata": _samples,
    "batch_size": _integer(1, 10**9),
    "epochs": _integer(1, 1_000_000),
    "gamma": _number(0, 1, low_included=False, high_included=True, wanted="a number above 0, at most 1"),
    "lr": _number(0, math.inf, low_included=False, high_included=False, wanted="a positive number"),
    "seed": _integer(0, 2**32 - 1),
    "held_out": _number(0, 1, low_included=True, high_included=False, wanted="a share from 0 to less than 1"),
    "evaluate_every": _integer(1, 1_000_000),
    "scaling": _choice(SCALINGS),
    "diff_method": _choice(DIFFERENTIATION_METHODS),
    "precision": _choice(PRECISIONS),
    "workers_per_host": _integer(1, 1024),
    "backend": _choice(BACKENDS),
    "copy_checkpoints_from_job": _job_name,
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
    if problems:
        raise HyperparameterError(problems)
    return Hyperparameters(**values)


def check_workers(settings: Hyperparameters, workers: int) -> None:
    """Refuses more workers than samples in a batch: some would wait for the others throughout, and be paid for.

    Raises:
        HyperparameterError: Names both numbers and the remedy.
    """
    if workers > settings.batch_size:
        raise HyperparameterError(
            [
                f"batch_size = {settings.batch_size} is shared by {workers} workers, of which "
                f"{workers - settings.batch_size} would idle: give at least {workers}, or use fewer workers"
            ]
        )
