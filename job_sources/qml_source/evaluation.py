"""Measures a model on samples that it isn't trained on."""

from dataclasses import dataclass

import torch

from qml_source.loss import correct, margin_losses
from qml_source.model import DressedCircuit
from qml_source.ranks import Ranks
from qml_source.tensors import SampleTensors, parts


@dataclass(frozen=True)
class Measured:
    """The mean loss, and the share of samples whose class the model tells right."""

    loss: float
    accuracy: float


def measure(model: DressedCircuit, samples: SampleTensors, ranks: Ranks) -> Measured:
    """Measures on all samples, which the workers divide among themselves; all get the same answer."""
    totals = torch.zeros(2, dtype=torch.float64, device=samples.targets.device)
    mine = torch.arange(ranks.rank, len(samples), ranks.size, device=samples.targets.device)
    with torch.no_grad():
        for rows in parts(mine, model.execution.largest_batch):
            outputs = model(samples.features[rows])
            totals[0] += margin_losses(outputs, samples.targets[rows]).sum()
            totals[1] += correct(outputs, samples.targets[rows])
    ranks.add_up(totals)
    loss, right = (totals / len(samples)).tolist()
    return Measured(loss, right)
