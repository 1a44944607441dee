"""The loss: how far an output is from the right side of zero by a margin."""

import torch
from torch import Tensor

MARGIN = 0.1


def margin_losses(outputs: Tensor, targets: Tensor) -> Tensor:
    """max(0, -target x output + margin) a sample, for targets +1 and -1: PyTorch's margin ranking loss against 0."""
    return torch.clamp(MARGIN - targets * outputs, min=0)


def correct(outputs: Tensor, targets: Tensor) -> Tensor:
    """How many outputs, of which 0 or more means the class +1, are of their target's class."""
    return ((outputs >= 0) == (targets > 0)).sum()
