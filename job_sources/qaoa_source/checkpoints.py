"""Saves every iteration of a run, and continues a run from what was saved.

A checkpoint holds all evaluations so far. A restarted job runs its optimiser again from the start and answers from
the record until it is used up, so every optimiser continues on exactly the trajectory that it left, whatever state
it keeps inside.
"""

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from braket.jobs import load_job_checkpoint, save_job_checkpoint
from braket.jobs.environment_variables import get_checkpoint_dir, get_job_name

from qaoa_source.hyperparameters import Hyperparameters
from qaoa_source.problem import MaxCutProblem

SUFFIX = "checkpoint-1"
# A job continues an older one for longer or samples it more, but can't change what its iterations were computed from.
_FREE = {"num_iterations", "cut_samples", "copy_checkpoints_from_job", "max_parallel", "num_nodes", "num_edges"}


class CheckpointError(RuntimeError):
    """A checkpoint was found that can't be continued: says which, why, and the remedy."""


@dataclass(frozen=True)
class Evaluation:
    """One evaluation: at which parameters, the cost, its gradient, and how many seconds it took."""

    params: list[list[float]]
    cost: float
    gradient: list[list[float]]
    seconds: float


def origin(problem: MaxCutProblem, settings: Hyperparameters) -> dict[str, Any]:
    """Everything that a trajectory follows from, to compare a checkpoint with the job that finds it."""
    values = {name: value for name, value in dataclasses.asdict(settings).items() if name not in _FREE}
    graph = json.dumps([problem.labels, [dataclasses.astuple(edge) for edge in problem.edges]])
    values["graph"] = hashlib.sha256(graph.encode()).hexdigest()
    return json.loads(json.dumps(values))  # type: ignore[no-any-return]


def save(evaluations: Sequence[Evaluation], from_where: Mapping[str, Any]) -> None:
    """Writes the checkpoint. Does nothing in a job without a checkpoint directory."""
    if "AMZN_BRAKET_CHECKPOINT_DIR" not in os.environ:
        return
    data = {"origin": dict(from_where), "evaluations": [dataclasses.asdict(evaluation) for evaluation in evaluations]}
    # A job can end while it writes: the file under the final name is always whole.
    save_job_checkpoint(data, f"{SUFFIX}-writing")
    _file(get_job_name(), f"{SUFFIX}-writing").replace(_file(get_job_name(), SUFFIX))


def load(from_where: Mapping[str, Any], other_job: str | None) -> list[Evaluation]:
    """The evaluations of this job's checkpoint, or else of `other_job`'s; none where neither left a checkpoint.

    Raises:
        CheckpointError: The checkpoint can't be read, or is of another problem or other settings.
    """
    if "AMZN_BRAKET_CHECKPOINT_DIR" not in os.environ:
        return []
    for job in (get_job_name(), other_job):
        if job is not None and _file(job, SUFFIX).exists():
            return _load(job, from_where)
    if other_job is not None:
        raise CheckpointError(
            f"copy_checkpoints_from_job = {other_job!r}: no {_file(other_job, SUFFIX).name} in the checkpoint "
            "directory. Copy that job's checkpoints to this job's checkpoint location, or leave it out."
        )
    return []


def _load(job: str, from_where: Mapping[str, Any]) -> list[Evaluation]:
    file = _file(job, SUFFIX)
    try:
        data = load_job_checkpoint(job, SUFFIX)
        evaluations = [Evaluation(**evaluation) for evaluation in data["evaluations"]]
        found = dict(data["origin"])
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{file}: not a checkpoint of this job ({type(error).__name__}). Remove it to start anew."
        ) from error
    differing = sorted(name for name in {*from_where, *found} if from_where.get(name) != found.get(name))
    if differing:
        name = differing[0]
        raise CheckpointError(
            f"{file}: made with another {', '.join(differing)} ({name} was {found.get(name)!r}, is "
            f"{from_where.get(name)!r}). Give the same values to continue it, or remove it to start anew."
        )
    return evaluations


def _file(job: str, suffix: str) -> Path:
    return Path(get_checkpoint_dir()) / f"{job}_{suffix}.json"
