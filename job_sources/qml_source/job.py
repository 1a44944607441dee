"""What the job was given: hyperparameters, device and samples, read and checked before anything is computed.

Every worker reads it, so the variables of the container are read directly: importing the Braket SDK takes longer than
many a training.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from qml_source.data import DataError, Samples, Split, read_channel, split
from qml_source.hyperparameters import Hyperparameters, parse_hyperparameters
from qml_source.simulators import DeviceRequest, check_method, parse_device

CHANNEL = "input-data"


@dataclass(frozen=True)
class Job:
    """A job's request."""

    settings: Hyperparameters
    device: DeviceRequest
    samples: Samples
    split: Split


def read_settings(environment: Mapping[str, str] = os.environ) -> Hyperparameters:
    """The job's hyperparameters.

    Raises:
        HyperparameterError: Some can't be used.
    """
    file = environment.get("AMZN_BRAKET_HP_FILE")  # absent when the job has none
    return parse_hyperparameters(json.loads(Path(file).read_text(encoding="utf-8")) if file else {})


def read_job(environment: Mapping[str, str] = os.environ) -> Job:
    """Reads what the container's environment describes.

    Raises:
        HyperparameterError, DeviceError, DataError: Something of it can't be used.
    """
    settings = read_settings(environment)
    device = parse_device(environment["AMZN_BRAKET_DEVICE_ARN"])
    check_method(device, settings)
    folder = environment.get("AMZN_BRAKET_INPUT_DIR")
    if not folder:
        raise DataError(f"the job has no input channel {CHANNEL}. Give it one with a file of samples.")
    samples = read_channel(Path(folder) / CHANNEL)
    parts = split(samples, seed=settings.seed, ndata=settings.ndata, held_out=settings.held_out)
    return Job(settings, device, samples, parts)
