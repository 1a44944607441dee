"""Divides each epoch's samples into batches, and each batch among the workers.

Batches are made as if there were one worker: an epoch is one permutation of all samples, cut into batches of the size
that the user names, the last one smaller where the numbers don't divide. Worker r of w takes the samples r, r + w,
r + 2 w, ... of every batch. So workers' parts differ by at most one sample, every sample is seen exactly once an epoch,
nothing is dropped or padded, and the batches don't depend on the number of workers.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Batch:
    """This worker's samples of a batch, perhaps none, and how many all workers have together."""

    number: int
    rows: NDArray[np.intp]
    size: int


class ShardedBatches:
    """The batches of an epoch, as one of `workers` workers sees them."""

    def __init__(self, samples: int, batch_size: int, *, seed: int, rank: int = 0, workers: int = 1) -> None:
        self._samples = samples
        self._batch_size = batch_size
        self._seed = seed
        self._rank = rank
        self._workers = workers
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Chooses the epoch whose order of samples is used; each has its own."""
        self._epoch = epoch

    def __len__(self) -> int:
        return math.ceil(self._samples / self._batch_size)

    def after(self, batches: int) -> Iterator[Batch]:
        """The epoch's batches but the first `batches`."""
        order = np.random.default_rng((self._seed, self._epoch)).permutation(self._samples)
        for number in range(batches, len(self)):
            whole = order[number * self._batch_size : (number + 1) * self._batch_size]
            yield Batch(number, whole[self._rank :: self._workers], len(whole))
