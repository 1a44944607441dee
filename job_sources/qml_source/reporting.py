"""What worker 0 tells of a training: metrics as it goes on, the result and the model at its end."""

import dataclasses
import os
import statistics
from pathlib import Path
from typing import Any

import torch
from braket.jobs import save_job_result
from braket.jobs.environment_variables import get_results_dir
from braket.jobs.metrics import log_metric

from qml_source import classical
from qml_source.devices import versions
from qml_source.job import Job
from qml_source.loop import EpochRecord, Trainer
from qml_source.memory import peak_megabytes
from qml_source.place import Place
from qml_source.ranks import Ranks

MODEL_FILE = "model.pt"


def report_epoch(epoch: int, record: EpochRecord) -> None:
    """Logs an epoch's figures as the job's metrics."""
    values = {
        "training_loss": record.training_loss,
        "training_accuracy": record.training_accuracy,
        "held_out_loss": record.held_out_loss,
        "held_out_accuracy": record.held_out_accuracy,
        "epoch_seconds": record.seconds,
    }
    for name, value in values.items():
        if value is not None:
            # The log's reader drops a value that doesn't print as a number, as a tensor doesn't.
            log_metric(name, float(value), iteration_number=epoch)


def save_outcome(
    job: Job, trainer: Trainer, ranks: Ranks, place: Place, device_name: str, resumed: int | None
) -> dict[str, Any]:
    """Writes the model and results.json into the results folder, and returns the result."""
    torch.save(trainer.model.document(), Path(get_results_dir()) / MODEL_FILE)
    result = {**_result(job, trainer, ranks, place), "device_name": device_name, "resumed_from_epoch": resumed}
    save_job_result(result)
    return result


def _result(job: Job, trainer: Trainer, ranks: Ranks, place: Place) -> dict[str, Any]:
    """What results.json holds: plain JSON values only."""
    records = [EpochRecord(**record) for record in trainer.progress.records]
    last = records[-1]
    seconds = [record.seconds for record in records]
    # The first epoch also pays for plans and allocation.
    typical = statistics.median(seconds[1:] or seconds)
    samples = len(job.split.training)
    return {
        "training_loss": [record.training_loss for record in records],
        "training_accuracy": [record.training_accuracy for record in records],
        "held_out_loss": [record.held_out_loss for record in records],
        "held_out_accuracy": [record.held_out_accuracy for record in records],
        "final": {
            "training_loss": last.training_loss,
            "training_accuracy": last.training_accuracy,
            "held_out_loss": last.held_out_loss,
            "held_out_accuracy": last.held_out_accuracy,
        },
        "classical_control": {
            "majority_class_held_out_accuracy": _majority_share(job),
            "logistic_regression_held_out_accuracy": classical.held_out_accuracy(job.split),
            "logistic_regression_penalty": classical.PENALTY,
        },
        # A report takes iterations of any job; here they are epochs.
        "iterations": len(records),
        "iteration_seconds": seconds,
        "seconds_per_epoch": typical,
        "seconds_per_sample": typical / samples,
        "held_out_seconds": [record.held_out_seconds for record in records],
        "training_samples": samples,
        "held_out_samples": len(job.split.held_out),
        "batch_size": job.settings.batch_size,
        "nwires": job.settings.nwires,
        "parameters": sum(parameter.numel() for parameter in trainer.model.parameters()),
        "labels": {"+1": job.samples.labels[0], "-1": job.samples.labels[1]},
        "device": job.device.text,
        "diff_method": job.device.differentiation,
        "gpu": torch.cuda.get_device_name(0) if torch.cuda.is_available() else None,
        "tensors_on": place.tensors.type,
        "workers": ranks.size,
        "workers_per_host": place.sharers,
        "backend": ranks.backend,
        "threads": torch.get_num_threads(),
        "omp_num_threads": os.environ.get("OMP_NUM_THREADS"),
        "peak_memory_megabytes": peak_megabytes(),
        "model_file": MODEL_FILE,
        "versions": versions(job.device),
        "seed": job.settings.seed,
        "settings": dataclasses.asdict(job.settings),
    }


def _majority_share(job: Job) -> float | None:
    """The accuracy on the held-out samples of naming the training samples' more frequent class every time."""
    if not len(job.split.held_out):
        return None
    majority = 1.0 if job.split.training.targets.sum() >= 0 else -1.0
    return float((job.split.held_out.targets == majority).mean())
