"""What trainings of a model took side by side: their workers, what parallel ones saved, and what was published."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rich.table import Table

from hybridjobs.report.rows import number, numbers
from hybridjobs.report.text import plain

# Of two costs that differ by less, neither is called the lower: a job's own times vary by as much.
_SAME_COST = 0.02
_SAME_TRAINING = ("nwires", "training_samples", "batch_size", "device")


@dataclass(frozen=True)
class Training:
    """One training of a benchmark.

    `seconds_per_epoch` is the median of all epochs but the first, which pays for plans and allocation, where there are
    others. `epoch_usd` is what they cost on all instances. Against the same training on one worker (for a published
    figure, against the published single process) `speed_up` is its time over this one's, `efficiency` the speed-up
    over the number of workers, `cost_ratio` this one's cost of an epoch over its; published figures have none, since
    their single process left most of what it was billed for idle. The accuracies are on samples that were held out,
    the second a logistic regression's. What isn't known is None.
    """

    name: str
    benchmark: str | None
    device: str
    instance: str
    workers: int | None
    seconds_per_epoch: float
    epoch_usd: float | None
    held_out_accuracy: float | None = None
    logistic_accuracy: float | None = None
    published: bool = False
    speed_up: float | None = None
    efficiency: float | None = None
    cost_ratio: float | None = None

    def as_json(self) -> dict[str, Any]:
        """The training as JSON types."""
        return asdict(self)

    def remark(self) -> str | None:
        """What parallel training saved, in a sentence; None for a single worker and where nothing compares."""
        if self.published or self.speed_up is None or self.workers == 1:
            return None
        faster = f"{self.name} took 1/{self.speed_up:.3g} of the time of one worker"
        if self.speed_up <= 1:
            slower = f"{self.name} took {1 / self.speed_up:.3g} times as long as one worker"
            return f"{slower}: parallel training saved nothing."
        if self.cost_ratio is None:
            return f"{faster}; whether it saved money is unknown, since a price is: every worker is billed."
        cost = f"and an epoch cost {self.cost_ratio:.3g} times as much"
        if self.cost_ratio > 1 - _SAME_COST:
            return f"{faster}, {cost}: parallel training saved time, not money."
        return f"{faster}, {cost}: it saved time and money."


def trainings(
    records: Iterable[Mapping[str, Any]], published: Mapping[str, Sequence[Mapping[str, Any]]]
) -> list[Training]:
    """Read the trainings out of the records of ended jobs, each benchmark's published figures after its jobs'.

    Args:
        records: Documents of the schema `hybrid-jobs/record/1`.
        published: Published figures by the benchmark's name, as its summary holds them.
    """
    measured = [each for each in map(_Measured.read, records) if each is not None]
    found = [_compared(each, measured) for each in measured]
    for benchmark in dict.fromkeys(each.benchmark for each in found):
        found += _published(benchmark, published.get(benchmark or "", ()))
    return sorted(found, key=lambda each: each.benchmark or "")


def training_table(rows: Sequence[Training]) -> Table:
    """The trainings as a table."""
    drawn = Table(title="Training", title_justify="left")
    for heading in ("benchmark", "job", "device", "instance"):
        drawn.add_column(heading, overflow="fold")
    for heading in (
        "workers",
        "s / epoch",
        "speed-up",
        "efficiency",
        "USD / epoch",
        "cost ratio",
        "held out",
        "logistic",
    ):
        drawn.add_column(heading, justify="right")
    for row in rows:
        drawn.add_row(
            plain(row.benchmark or "-"),
            plain(row.name),
            plain(row.device),
            row.instance,
            _shown(row.workers, "d"),
            _shown(row.seconds_per_epoch, ".3g"),
            _shown(row.speed_up, ".3g"),
            _shown(row.efficiency, ".2f"),
            _shown(row.epoch_usd, ".3g"),
            _shown(row.cost_ratio, ".3g"),
            _shown(row.held_out_accuracy, ".3f"),
            _shown(row.logistic_accuracy, ".3f"),
        )
    return drawn


@dataclass(frozen=True)
class _Measured:
    training: Training
    same: tuple[object, ...]
    instance: Mapping[str, Any]

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> "_Measured | None":
        results = record.get("results") or {}
        workers, seconds = number(results.get("workers")), numbers(results.get("iteration_seconds"))
        if not workers or not seconds or number(results.get("training_samples")) is None:
            return None
        spec = record.get("spec") or {}
        benchmark = (spec.get("benchmark") or {}).get("name")
        typical = statistics.median(seconds[1:] or seconds)
        instance, price = record["instance"], (record.get("price") or {}).get("usd_per_minute")
        final, control = results.get("final") or {}, results.get("classical_control") or {}
        training = Training(
            name=spec.get("name") or record["job_name"],
            benchmark=benchmark,
            device=record["device"],
            instance=_instance(instance),
            workers=int(workers),
            seconds_per_epoch=typical,
            epoch_usd=None if price is None else typical / 60 * price * instance["count"],
            held_out_accuracy=number(final.get("held_out_accuracy")),
            logistic_accuracy=number(control.get("logistic_regression_held_out_accuracy")),
        )
        same = (benchmark, record.get("stack_id"), *(results.get(key) for key in _SAME_TRAINING))
        return cls(training, same, instance)


def _compared(one: _Measured, all_of_them: Sequence[_Measured]) -> Training:
    """Compare a training with the last one that is the same but for its single worker."""
    alone = next((each for each in reversed(all_of_them) if each.same == one.same and each.training.workers == 1), None)
    if alone is None or one.training.workers is None:
        return one.training
    speed_up = alone.training.seconds_per_epoch / one.training.seconds_per_epoch
    cost_ratio = _ratio(one.training.epoch_usd, alone.training.epoch_usd)
    if cost_ratio is None and one.instance["type"] == alone.instance["type"]:
        cost_ratio = one.instance["count"] / alone.instance["count"] / speed_up  # whatever the price is
    return replace(one.training, speed_up=speed_up, efficiency=speed_up / one.training.workers, cost_ratio=cost_ratio)


def _published(benchmark: str | None, figures: Sequence[Mapping[str, Any]]) -> list[Training]:
    found: list[Training] = []
    for figure in figures:
        seconds, iterations = figure["seconds_per_iteration"], figure["iterations"]
        one = Training(
            name="published",
            benchmark=benchmark,
            device=figure["device"],
            instance=_instance(figure["instance"]),
            workers=figure["gpus"] or None,  # one process a GPU; on CPUs it isn't known how many
            seconds_per_epoch=seconds,
            epoch_usd=_ratio(figure.get("cost_usd"), iterations),
            published=True,
        )
        first = found[0] if found else one
        speed_up = first.seconds_per_epoch / seconds
        efficiency = None if one.workers is None else speed_up / one.workers
        found.append(replace(one, speed_up=speed_up, efficiency=efficiency))
    return found


def _instance(instance: Mapping[str, Any]) -> str:
    kind = str(instance["type"])
    return kind if instance["count"] == 1 else f"{instance['count']} x {kind}"


def _ratio(above: float | None, below: float | None) -> float | None:
    return None if above is None or not below else above / below


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
