"""Samples as PyTorch tensors, where the model computes."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from qml_source.data import Samples


@dataclass(frozen=True)
class SampleTensors:
    """Features of shape (samples, features), targets of shape (samples,): +1 or -1."""

    features: Tensor
    targets: Tensor

    def __len__(self) -> int:
        return len(self.targets)


def parts(rows: Tensor, size: int) -> Iterator[Tensor]:
    """Consecutive parts of at most this many rows; nothing of an empty tensor."""
    for first in range(0, len(rows), size):
        yield rows[first : first + size]


def on_device(samples: Samples, dtype: torch.dtype, place: torch.device) -> SampleTensors:
    """Copies samples to where the model computes."""
    return SampleTensors(
        torch.as_tensor(samples.features, dtype=dtype, device=place),
        torch.as_tensor(samples.targets, dtype=dtype, device=place),
    )
