"""One training from request to result, the same for a single process and for one of several workers."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from qml_source import checkpoints
from qml_source.data import Samples
from qml_source.devices import check_memory
from qml_source.execution import open_execution
from qml_source.hyperparameters import check_workers
from qml_source.job import Job
from qml_source.loop import EpochRecord, Trainer
from qml_source.model import PRECISIONS, DressedCircuit, seeded_model
from qml_source.place import Place
from qml_source.ranks import Ranks
from qml_source.tensors import on_device

# Between two epochs' ends a checkpoint is written at most this often.
SAVE_SECONDS = 60.0


def train(job: Job, ranks: Ranks, place: Place) -> dict[str, Any] | None:
    """Trains to the end. Worker 0 alone reports, saves, and returns the result; the others return None.

    Raises:
        DeviceError, CheckpointError, TrainingError, PeerLostError: The training can't start or can't go on.
    """
    settings = job.settings
    check_workers(settings, ranks.size)
    check_memory(job.device, settings, place.sharers)
    execution, device_name = open_execution(job.device, settings, place.sharers)
    model = seeded_model(
        settings.seed,
        features=job.samples.features.shape[1],
        nwires=settings.nwires,
        labels=job.samples.labels,
        precision=settings.precision,
        device=job.device.text,
        execution=execution,
    )
    if settings.scaling == "standard":
        standardise(model, job.split.training)
    model.to(place.tensors)
    dtype = PRECISIONS[settings.precision]
    trainer = Trainer(
        model,
        on_device(job.split.training, dtype, place.tensors),
        on_device(job.split.held_out, dtype, place.tensors),
        settings,
        ranks,
    )
    from_where = checkpoints.origin(settings, job.split)
    resumed = checkpoints.restore(trainer, from_where, ranks, settings.copy_checkpoints_from_job)
    if ranks.rank != 0:
        trainer.train(lambda: None, lambda _epoch, _record: None)
        return None
    from qml_source import reporting  # noqa: PLC0415 - the Braket SDK, which the other workers would import in vain

    keeper = _Keeper(trainer, from_where)

    def after_epoch(epoch: int, record: EpochRecord) -> None:
        keeper.save()
        reporting.report_epoch(epoch, record)

    trainer.train(keeper.save_if_due, after_epoch)
    return reporting.save_outcome(job, trainer, ranks, place, device_name, resumed)


def standardise(model: DressedCircuit, samples: Samples) -> None:
    """Has the model shift and scale each feature to mean 0 and standard deviation 1 over these samples."""
    deviation = samples.features.std(axis=0)
    with torch.no_grad():
        model.shift.copy_(torch.as_tensor(samples.features.mean(axis=0)))
        # A feature that never changes says nothing: it becomes 0 and stays finite.
        model.scale.copy_(torch.as_tensor(np.where(deviation > 0, deviation, 1.0)))


class _Keeper:
    """Saves checkpoints, not too often."""

    def __init__(self, trainer: Trainer, from_where: Mapping[str, Any]) -> None:
        self._trainer = trainer
        self._from_where = from_where
        self._last = time.monotonic()

    def save(self) -> None:
        checkpoints.save(self._trainer, self._from_where)
        self._last = time.monotonic()

    def save_if_due(self) -> None:
        if time.monotonic() - self._last >= SAVE_SECONDS:
            self.save()
