"""Saves a training as it goes on, and continues one from what was saved, with any number of workers.

A checkpoint holds the model, the optimiser, the schedule of its rate and the position in the epochs. The order of the
samples follows from seed and epoch, and batches don't depend on the number of workers, so nothing else is needed.
"""

import dataclasses
import hashlib
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from qml_source.data import Split
from qml_source.hyperparameters import Hyperparameters
from qml_source.loop import Progress, Trainer
from qml_source.ranks import Ranks

SUFFIX = "training"
# A training is continued for longer, on other machines or another simulator, but not with other arithmetic.
_FREE = {"epochs", "evaluate_every", "diff_method", "workers_per_host", "backend", "copy_checkpoints_from_job"}


class CheckpointError(RuntimeError):
    """A checkpoint was found that can't be continued: says which, why, and the remedy."""


def origin(settings: Hyperparameters, split: Split) -> dict[str, Any]:
    """Everything that a trajectory follows from, to compare a checkpoint with the job that finds it."""
    values = {name: value for name, value in dataclasses.asdict(settings).items() if name not in _FREE}
    digest = hashlib.sha256()
    for samples in (split.training, split.held_out):
        digest.update(repr((samples.features.shape, samples.labels)).encode())
        digest.update(samples.features.tobytes())
        digest.update(samples.targets.tobytes())
    return {**values, "data": digest.hexdigest()}


def save(trainer: Trainer, from_where: Mapping[str, Any]) -> None:
    """Writes the checkpoint. Does nothing in a job without a checkpoint directory."""
    if not os.environ.get("AMZN_BRAKET_CHECKPOINT_DIR"):
        return
    document = {
        "origin": dict(from_where),
        "progress": dataclasses.asdict(trainer.progress),
        "model": trainer.model.state_dict(),
        "optimizer": trainer.optimizer.state_dict(),
        "scheduler": trainer.scheduler.state_dict(),
    }
    target = _file(_job_name())
    target.parent.mkdir(parents=True, exist_ok=True)
    # A job can end while it writes: the file under the final name is always whole.
    writing = target.with_suffix(".writing")
    torch.save(document, writing)
    writing.replace(target)


def restore(trainer: Trainer, from_where: Mapping[str, Any], ranks: Ranks, other_job: str | None) -> int | None:
    """Continues this job's checkpoint, or else `other_job`'s; returns the epoch it stood in, None without either.

    Worker 0 reads the file, and every worker gets the same.

    Raises:
        CheckpointError: The checkpoint can't be read, or is of other data or other settings.
    """
    file = _found(other_job) if ranks.rank == 0 else None
    content = ranks.share(file.read_bytes() if file else None)
    if content is None:
        return None
    name = str(file or "the checkpoint")
    try:
        document = torch.load(io.BytesIO(content), weights_only=True)
        found = dict(document["origin"])
    except Exception as error:
        raise _unusable(name, error) from error
    differing = sorted(key for key in {*from_where, *found} if from_where.get(key) != found.get(key))
    if differing:
        key = differing[0]
        raise CheckpointError(
            f"{name}: made with another {', '.join(differing)} ({key} was {found.get(key)!r}, is "
            f"{from_where.get(key)!r}). Give the same values to continue it, or remove it to start anew."
        )
    try:
        trainer.model.load_state_dict(document["model"])
        trainer.optimizer.load_state_dict(document["optimizer"])
        trainer.scheduler.load_state_dict(document["scheduler"])
        trainer.progress = Progress(**document["progress"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise _unusable(name, error) from error
    return trainer.progress.epoch


def _unusable(name: str, error: Exception) -> CheckpointError:
    return CheckpointError(f"{name}: not a checkpoint of this job ({type(error).__name__}). Remove it to start anew.")


def _found(other_job: str | None) -> Path | None:
    if not os.environ.get("AMZN_BRAKET_CHECKPOINT_DIR"):
        return None
    for job in (_job_name(), other_job):
        if job is not None and _file(job).exists():
            return _file(job)
    if other_job is not None:
        raise CheckpointError(
            f"copy_checkpoints_from_job = {other_job!r}: no {_file(other_job).name} in the checkpoint directory. Copy "
            "that job's checkpoints to this job's checkpoint location, or leave it out."
        )
    return None


def _job_name() -> str:
    return os.environ["AMZN_BRAKET_JOB_NAME"]


def _file(job: str) -> Path:
    return Path(os.environ["AMZN_BRAKET_CHECKPOINT_DIR"]) / f"{job}_{SUFFIX}.pt"
