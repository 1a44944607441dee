"""What the jobs of a stage may cost at most, known before anything is launched."""

from collections.abc import Sequence
from typing import Final

from hybridjobs.model.errors import SpecError
from hybridjobs.model.job_spec import JobSpec
from hybridjobs.model.prices import price_of
from hybridjobs.model.stage import StageSettings

_HEADINGS: Final = ("job", "instances", "at most", "USD/min", "worst case")


def worst_case_usd(spec: JobSpec) -> float | None:
    """Calculate what a job costs in US dollars if it runs until it is stopped; None where that is unknown.

    It is unknown without a documented price of the instance, and for devices other than embedded simulators, whose
    quantum tasks are billed on top.
    """
    price = price_of(spec.instance.type)
    if price is None or not spec.device.startswith("local:"):
        return None
    return price.usd_per_minute * spec.limits.max_runtime_seconds / 60 * spec.instance.count


def check_spending(stage: StageSettings, specs: Sequence[JobSpec]) -> None:
    """Refuse to launch `specs` for more than the stage may spend.

    Raises SpecError, with a table of all jobs, when the sum of the worst cases exceeds `max_spend_usd`, and when a
    worst case is unknown and the stage does not `allow_unknown_price`.
    """
    worst_cases = [(spec, worst_case_usd(spec)) for spec in specs]
    unknown = [spec.name for spec, usd in worst_cases if usd is None]
    total = sum(usd for _, usd in worst_cases if usd is not None)
    if unknown and not stage.allow_unknown_price:
        raise SpecError(
            f"nobody knows what {', '.join(unknown)} may cost",
            file=stage.file,
            key="allow_unknown_price",
            value=False,
            remedy="Use an instance of known price, or write allow_unknown_price = true",
            details=spending_table(specs),
        )
    if total > stage.max_spend_usd:
        raise SpecError(
            f"the jobs may cost {total:.4f} USD if each runs until it is stopped",
            file=stage.file,
            key="max_spend_usd",
            value=stage.max_spend_usd,
            remedy="Raise max_spend_usd, launch fewer jobs, or lower their limits.max_runtime_seconds",
            details=spending_table(specs),
        )


def spending_table(specs: Sequence[JobSpec]) -> str:
    """Lay out the worst case of each job and their sum as lines of text."""
    rows = [_HEADINGS, *(_row(spec) for spec in specs)]
    worst_cases = [worst_case_usd(spec) for spec in specs]
    known = sum(usd for usd in worst_cases if usd is not None)
    rows.append(("total", "", "", "", f"{known:.4f} USD" + (" and more" if None in worst_cases else "")))
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _row(spec: JobSpec) -> tuple[str, str, str, str, str]:
    price, usd = price_of(spec.instance.type), worst_case_usd(spec)
    return (
        spec.name,
        f"{spec.instance.count} x {spec.instance.type}",
        f"{spec.limits.max_runtime_seconds / 60:g} min",
        f"{price.usd_per_minute:g}" if price else "unknown",
        f"{usd:.4f} USD" if usd is not None else "unknown",
    )
