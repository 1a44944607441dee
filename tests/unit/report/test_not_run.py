"""The report names the jobs that were not run, each with its reason."""

import io
import json

from rich.console import Console

from hybridjobs.report.table import json_text, show

NOT_RUN = {"qaoa-18-gpu": "ml.g6.2xlarge has a GPU, this machine has none"}


def test_table_and_json_name_them() -> None:
    console = Console(file=io.StringIO(), record=True, width=120)
    show(console, [], [], NOT_RUN)
    assert "not run: qaoa-18-gpu (ml.g6.2xlarge has a GPU, this machine has none)" in console.export_text()
    assert json.loads(json_text([], [], NOT_RUN))["not_run"] == NOT_RUN
