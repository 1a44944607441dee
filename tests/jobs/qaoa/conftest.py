"""Runs the job as its container does: environment in, results.json out."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from qaoa_source import qaoa

SOURCE = Path(qaoa.__file__).parent


@dataclass
class JobFolders:
    """Where one job reads and writes."""

    root: Path

    @property
    def graph(self) -> Path:
        return self.root / "data" / "input-graph"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def results(self) -> Path:
        return self.root / "results"


RunJob = Callable[..., dict[str, Any]]


@pytest.fixture
def folders(tmp_path: Path) -> JobFolders:
    made = JobFolders(tmp_path)
    for folder in (made.checkpoints, made.results):
        folder.mkdir(parents=True)
    return made


@pytest.fixture
def run_job(folders: JobFolders, monkeypatch: pytest.MonkeyPatch) -> RunJob:
    def run(
        graph: str | Path | None = "0 1\n1 2\n2 0\n3\n",
        file_name: str = "input-data.adjlist",
        device: str = "local:pennylane/lightning.qubit",
        name: str = "job-a",
        **hyperparameters: str,
    ) -> dict[str, Any]:
        folders.graph.mkdir(parents=True, exist_ok=True)
        if isinstance(graph, Path):
            graph = graph.read_text()
        if graph is None:
            folders.graph.rmdir()
        else:
            (folders.graph / file_name).write_text(graph)
        hyperparameter_file = folders.root / "hyperparameters.json"
        hyperparameter_file.write_text(json.dumps(hyperparameters))
        results = folders.results / "results.json"
        results.unlink(missing_ok=True)
        monkeypatch.setenv("AMZN_BRAKET_DEVICE_ARN", device)
        monkeypatch.setenv("AMZN_BRAKET_HP_FILE", str(hyperparameter_file))
        monkeypatch.setenv("AMZN_BRAKET_INPUT_DIR", str(folders.graph.parent))
        monkeypatch.setenv("AMZN_BRAKET_JOB_RESULTS_DIR", str(folders.results))
        monkeypatch.setenv("AMZN_BRAKET_CHECKPOINT_DIR", str(folders.checkpoints))
        monkeypatch.setenv("AMZN_BRAKET_JOB_NAME", name)
        qaoa.main()
        document = json.loads(results.read_text())
        assert document["braketSchemaHeader"]["name"] == "braket.jobs_data.persisted_job_data"
        assert document["dataFormat"] == "plaintext"
        return dict(document["dataDictionary"])

    return run
