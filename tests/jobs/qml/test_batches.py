"""Every sample is seen once an epoch, the parts are equal, and the batches don't depend on the number of workers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qml_source.batches import Batch, ShardedBatches

SIZES = {"samples": st.integers(1, 300), "batch_size": st.integers(1, 80), "workers": st.integers(1, 9)}


def seen_by(samples: int, batch_size: int, workers: int, epoch: int = 0) -> list[list[Batch]]:
    seen = []
    for rank in range(workers):
        batches = ShardedBatches(samples, batch_size, seed=7, rank=rank, workers=workers)
        batches.set_epoch(epoch)
        seen.append(list(batches.after(0)))
    return seen


@given(**SIZES)
def test_each_sample_is_seen_exactly_once_an_epoch(samples: int, batch_size: int, workers: int) -> None:
    seen = seen_by(samples, batch_size, workers)
    rows = np.concatenate([batch.rows for worker in seen for batch in worker])
    assert sorted(rows) == list(range(samples))


@given(**SIZES)
def test_parts_of_a_batch_differ_by_one_sample_at_most(samples: int, batch_size: int, workers: int) -> None:
    for parts in zip(*seen_by(samples, batch_size, workers), strict=True):
        sizes = [len(part.rows) for part in parts]
        assert max(sizes) - min(sizes) <= 1
        assert sum(sizes) == parts[0].size <= batch_size


@given(**SIZES)
def test_batches_are_those_of_a_single_process(samples: int, batch_size: int, workers: int) -> None:
    (alone,) = seen_by(samples, batch_size, 1)
    for whole, parts in zip(alone, zip(*seen_by(samples, batch_size, workers), strict=True), strict=True):
        assert sorted(whole.rows) == sorted(np.concatenate([part.rows for part in parts]))


def test_each_epoch_has_its_own_order() -> None:
    orders = {tuple(seen_by(20, 20, 1, epoch)[0][0].rows) for epoch in range(5)}
    assert len(orders) == 5


def test_an_epoch_can_be_continued_in_its_middle() -> None:
    batches = ShardedBatches(50, 8, seed=7)
    assert [batch.number for batch in batches.after(4)] == [4, 5, 6]
    assert all(
        np.array_equal(late.rows, early.rows)
        for late, early in zip(batches.after(4), list(batches.after(0))[4:], strict=True)
    )
