"""Runs the single-process job within the test's own process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.qml.job_run import DEFAULT_QUBIT, SONAR, Host

RunSingle = Callable[..., dict[str, Any]]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path / "host")


@pytest.fixture
def run_single(host: Host, monkeypatch: pytest.MonkeyPatch) -> RunSingle:
    def run(
        data: str | Path = SONAR, device: str = DEFAULT_QUBIT, name: str = "job-a", **hyperparameters: str
    ) -> dict[str, Any]:
        from qml_source import train_single

        host.name = name
        for variable, value in host.prepare(hyperparameters, data, device).items():
            monkeypatch.setenv(variable, value)
        (host.results / "results.json").unlink(missing_ok=True)
        train_single.main()
        return host.result()

    return run
