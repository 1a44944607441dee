"""A folder of job sources to write jobs into, and tables that are valid as they stand."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from hybridjobs.model.job_spec import JobSpec
from hybridjobs.model.validation import validated

WriteSource = Callable[..., Path]
MakeSpec = Callable[..., JobSpec]

JOBS_TOML = """\
[jobs.cut-18]
entry_point = "cut_source.cut"
device = "local:pennylane/lightning.qubit"
instance.type = "ml.m5.2xlarge"
limits.max_runtime_seconds = 600
"""


@pytest.fixture
def write_source(tmp_path: Path) -> WriteSource:
    """Write `job_sources/<name>/` with a jobs.toml and files; returns `job_sources`."""

    def write(
        name: str = "cut_source", jobs_toml: str | None = JOBS_TOML, files: Mapping[str, str] | None = None
    ) -> Path:
        folder = tmp_path / "job_sources" / name
        folder.mkdir(parents=True, exist_ok=True)
        if jobs_toml is not None:
            (folder / "jobs.toml").write_text(jobs_toml, encoding="utf-8")
        for path, content in (files if files is not None else {"cut.py": "def main():\n    pass\n"}).items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")
        return tmp_path / "job_sources"

    return write


@pytest.fixture
def job_table() -> dict[str, Any]:
    """A valid job, as tomllib reads its table."""
    return {
        "entry_point": "cut_source.cut",
        "device": "local:pennylane/lightning.qubit",
        "instance": {"type": "ml.m5.2xlarge"},
        "limits": {"max_runtime_seconds": 600},
    }


@pytest.fixture
def make_spec(job_table: dict[str, Any]) -> MakeSpec:
    """Validate the valid job with some of its keys replaced."""

    def make(name: str = "cut-18", **changes: Any) -> JobSpec:
        return validated(JobSpec, {**job_table, "name": name, **changes}, file="jobs.toml", prefix=f"jobs.{name}")

    return make
