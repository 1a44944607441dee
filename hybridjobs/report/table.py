"""The report as a table for a terminal or a log, and as JSON for programs."""

import json
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from hybridjobs.report.rows import Row
from hybridjobs.report.text import plain
from hybridjobs.report.training import Training, training_table

_NOTE = "* one iteration ran, so the first one's time is shown"


def json_text(rows: Sequence[Row], trainings: Sequence[Training], not_run: Mapping[str, str]) -> str:
    """The report as one JSON document, `{"rows": [...], "trainings": [...], "not_run": {<job>: <reason>}}`."""
    document = {
        "rows": [each.as_json() for each in rows],
        "trainings": [each.as_json() for each in trainings],
        "not_run": dict(not_run),
    }
    return json.dumps(document, indent=2)


def show(console: Console, rows: Sequence[Row], trainings: Sequence[Training], not_run: Mapping[str, str]) -> None:
    """Print the report: all jobs, those that were not run with the reason, and trainings side by side.

    What parallel training saved is said in a sentence each.
    """
    console.print(table(rows))
    for job, reason in not_run.items():
        console.print(plain(f"not run: {job} ({reason})"))
    if trainings:
        console.print(training_table(trainings))
    for each in trainings:
        if (remark := each.remark()) is not None:
            console.print(plain(remark))


def table(rows: Sequence[Row]) -> Table:
    """The rows as a table; a job that did not complete shows its reason below its name."""
    drawn = Table(caption=_NOTE if any(row.only_first_iteration for row in rows) else None, caption_justify="left")
    drawn.add_column("job", overflow="fold")
    drawn.add_column("status")
    drawn.add_column("device", overflow="fold")
    for heading in ("nodes", "iterations", "s / iteration", "cost before / after", "best cut / optimum"):
        drawn.add_column(heading, justify="right")
    for heading in ("USD at most", "USD"):
        drawn.add_column(heading, justify="right")
    for row in rows:
        drawn.add_row(
            plain(row.job_name if row.reason is None else f"{row.job_name}\n{row.reason}"),
            row.status,
            plain(row.device if row.diff_method is None else f"{row.device}, {row.diff_method}"),
            _number(row.nodes),
            _number(row.iterations),
            _seconds(row),
            "-" if row.cost_after is None else f"{_cost(row.cost_before)} / {_cost(row.cost_after)}",
            "-" if row.best_cut is None else f"{_number(row.best_cut)} / {_number(row.optimum)}",
            _usd(row.worst_case_usd),
            _usd(row.cost_usd),
        )
    return drawn


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def _cost(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _seconds(row: Row) -> str:
    if row.seconds_per_iteration is None:
        return "-"
    return f"{row.seconds_per_iteration:.3g}{'*' if row.only_first_iteration else ''}"


def _usd(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4f}"
