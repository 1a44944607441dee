"""Predicts the labels of new samples by a trained model."""

from pathlib import Path
from typing import Any

import torch

from qml_source.data import read_features
from qml_source.model import load_model


def predict(model_file: Path | str, data_file: Path | str, device: str | None = None) -> list[dict[str, Any]]:
    """One `{"label": ..., "output": ...}` a line of `data_file`: numbers separated by commas, a label may follow.

    The sign of the output is the class; its size is the distance from the border between the two. Without a device the
    model is evaluated on the simulator that suits its qubits.

    Raises:
        ModelError: The model's file can't be used.
        DataError: The data can't be used.
        DeviceError: The device can't be used.
    """
    model = load_model(Path(model_file), device)
    features = torch.as_tensor(read_features(Path(data_file), model.features))
    labels, outputs = model.classify(features)
    return [{"label": label, "output": output} for label, output in zip(labels, outputs.tolist(), strict=True)]
