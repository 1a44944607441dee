"""Where a worker's tensors are."""

from dataclasses import dataclass

import torch

from qml_source.simulators import DeviceRequest


@dataclass(frozen=True)
class Place:
    """`tensors` is PyTorch's device, `sharers` how many workers share this host's memory."""

    tensors: torch.device
    sharers: int = 1


def choose_place(device: DeviceRequest, sharers: int = 1) -> Place:
    """On the GPU for a simulator that PyTorch differentiates through, where there is one; else in main memory.

    Lightning takes and returns numbers in main memory, on whatever it computes. A worker sees one GPU, its own.
    """
    on_gpu = not device.is_lightning and torch.cuda.is_available()
    return Place(torch.device("cuda", 0) if on_gpu else torch.device("cpu"), sharers)
