"""The training loop: one step a batch, on all workers together.

Each worker computes the gradient of its part of the batch: of the sum of its losses over the size of the whole batch.
The parts' sum, one exchange a step, is the gradient of the batch's mean loss, whatever the number of workers and
however unequal their parts. So every worker makes the step that one process alone would have made.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from qml_source.batches import Batch, ShardedBatches
from qml_source.evaluation import Measured, measure
from qml_source.hyperparameters import Hyperparameters
from qml_source.loss import correct, margin_losses
from qml_source.model import DressedCircuit
from qml_source.ranks import Ranks
from qml_source.tensors import SampleTensors, parts


class TrainingError(ArithmeticError):
    """Training can't go on: says in which step, why, and the remedy."""


@dataclass
class EpochRecord:
    """One finished epoch.

    training_loss, training_accuracy: over all samples, each measured just before the step that it took part in.
    seconds: of the training steps; the measurement on the held-out samples is apart, in held_out_seconds.
    """

    training_loss: float
    training_accuracy: float
    seconds: float
    held_out_loss: float | None = None
    held_out_accuracy: float | None = None
    held_out_seconds: float | None = None


@dataclass
class Progress:
    """Where a training stands: finished epochs, and of the current one the batches done and their sums.

    `records` holds EpochRecord as dictionaries, so that all of it is plain values.
    """

    batches_done: int = 0
    loss_sum: float = 0.0
    correct: float = 0.0
    seconds: float = 0.0
    records: list[dict[str, Any]] = field(default_factory=list)

    @property
    def epoch(self) -> int:
        """The number of the current epoch."""
        return len(self.records)


class Trainer:
    """A model with its optimiser, and how far its training has come."""

    def __init__(
        self,
        model: DressedCircuit,
        training: SampleTensors,
        held_out: SampleTensors,
        settings: Hyperparameters,
        ranks: Ranks,
    ) -> None:
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=1, gamma=settings.gamma)
        self.progress = Progress()
        self._parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._training = training
        self._held_out = held_out
        self._settings = settings
        self._ranks = ranks
        self._batches = ShardedBatches(
            len(training), settings.batch_size, seed=settings.seed, rank=ranks.rank, workers=ranks.size
        )

    def train(self, after_step: Callable[[], None], after_epoch: Callable[[int, EpochRecord], None]) -> None:
        """Goes on from where it stands to the last epoch."""
        while self.progress.epoch < self._settings.epochs:
            self._train_epoch(after_step)
            self.scheduler.step()
            record = self._finish_epoch()
            after_epoch(self.progress.epoch - 1, record)

    def _train_epoch(self, after_step: Callable[[], None]) -> None:
        progress = self.progress
        self._batches.set_epoch(progress.epoch)
        for batch in self._batches.after(progress.batches_done):
            begun = time.perf_counter()
            loss_sum, right = self.step(batch)
            progress.loss_sum += loss_sum
            progress.correct += right
            progress.seconds += time.perf_counter() - begun
            progress.batches_done = batch.number + 1
            if progress.batches_done < len(self._batches):
                after_step()

    def step(self, batch: Batch) -> tuple[float, float]:
        """One step of the optimiser; returns the batch's sum of losses and its correct outputs, of all workers."""
        self.optimizer.zero_grad(set_to_none=True)
        totals = torch.zeros(2, dtype=torch.float64, device=self._training.targets.device)
        rows = torch.as_tensor(batch.rows, device=self._training.targets.device)
        for part in parts(rows, self.model.execution.largest_batch):
            outputs = self.model(self._training.features[part])
            losses = margin_losses(outputs, self._training.targets[part])
            torch.autograd.backward(losses.sum() / batch.size)
            totals[0] += losses.detach().sum()
            totals[1] += correct(outputs.detach(), self._training.targets[part])
        gradients = [self._gradient(parameter, bool(len(rows))) for parameter in self._parameters]
        together = torch.cat([*(gradient.reshape(-1).to(torch.float64) for gradient in gradients), totals])
        self._ranks.add_up(together)
        if not bool(torch.isfinite(together).all()):
            raise TrainingError(
                f"epoch {self.progress.epoch}, batch {batch.number}: the loss or its gradient is not finite. Give a "
                f"smaller lr (it is {self._settings.lr:g}), or features of moderate size (scaling = standard)."
            )
        offset = 0
        for parameter in self._parameters:
            summed = together[offset : offset + parameter.numel()]
            parameter.grad = summed.reshape(parameter.shape).to(parameter.dtype)
            offset += parameter.numel()
        self.optimizer.step()
        return float(together[-2]), float(together[-1])

    @staticmethod
    def _gradient(parameter: Tensor, has_samples: bool) -> Tensor:
        if parameter.grad is not None:
            return parameter.grad
        if has_samples:
            raise TrainingError(f"a parameter of shape {tuple(parameter.shape)} takes no part in the output")
        return torch.zeros_like(parameter)

    def _finish_epoch(self) -> EpochRecord:
        progress, samples = self.progress, len(self._training)
        record = EpochRecord(progress.loss_sum / samples, progress.correct / samples, progress.seconds)
        number = progress.epoch + 1
        due = number % self._settings.evaluate_every == 0 or number == self._settings.epochs
        if len(self._held_out) and due:
            begun = time.perf_counter()
            measured: Measured = measure(self.model, self._held_out, self._ranks)
            record.held_out_seconds = time.perf_counter() - begun
            record.held_out_loss, record.held_out_accuracy = measured.loss, measured.accuracy
        self.progress = Progress(records=[*progress.records, asdict(record)])
        return record
