"""The C++ engine as a program: single evaluations, and whole jobs as their container starts them."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.cpp.engine import Engine, build, missing_tools

DEVICE = "local:hybridjobs/maxcut-cpp"


@pytest.fixture(scope="session")
def program() -> Path:
    reason = missing_tools()
    if reason is not None:
        pytest.skip(f"the C++ engine can't be built here: {reason}")
    return build()


@pytest.fixture(scope="session")
def engine(program: Path) -> Iterator[Engine]:
    running = Engine(program)
    yield running
    running.close()


@dataclass
class Ended:
    """How a job ended and what it left."""

    exit_code: int
    output: str
    failure: str | None
    document: dict[str, Any] = field(default_factory=dict)

    @property
    def result(self) -> dict[str, Any]:
        assert self.exit_code == 0, self.output
        return dict(self.document["dataDictionary"])


class JobFolder:
    """The folders and variables of one job."""

    def __init__(self, program: Path, root: Path) -> None:
        self.program = program
        self.root = root
        self.checkpoints = root / "checkpoints"

    def run(
        self,
        graph: str | Path | None = "0 1\n1 2\n2 0\n3\n",
        file_name: str = "input-data.adjlist",
        device: str = DEVICE,
        name: str = "job-a",
        threads: int = 1,
        **hyperparameters: str,
    ) -> Ended:
        channel = self.root / "data" / "input-graph"
        for folder in (channel, self.checkpoints, self.root / "results", self.root / "output"):
            folder.mkdir(parents=True, exist_ok=True)
        for left in (*channel.iterdir(), *(self.root / "results").iterdir(), *(self.root / "output").iterdir()):
            left.unlink()
        if graph is None:
            channel.rmdir()
        else:
            (channel / file_name).write_text(graph.read_text() if isinstance(graph, Path) else graph)
        (self.root / "hyperparameters.json").write_text(json.dumps(hyperparameters))
        arguments = [part for key, value in hyperparameters.items() for part in (f"--{key}", value)]
        environment = {
            "AMZN_BRAKET_DEVICE_ARN": device,
            "AMZN_BRAKET_HP_FILE": str(self.root / "hyperparameters.json"),
            "AMZN_BRAKET_INPUT_DIR": str(channel.parent),
            "AMZN_BRAKET_JOB_RESULTS_DIR": str(self.root / "results"),
            "AMZN_BRAKET_CHECKPOINT_DIR": str(self.checkpoints),
            "AMZN_BRAKET_JOB_NAME": name,
            "SM_OUTPUT_DIR": str(self.root / "output"),
            "OMP_NUM_THREADS": str(threads),
            "PATH": os.environ["PATH"],
        }
        done = subprocess.run(
            [self.program, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        results, failure = self.root / "results" / "results.json", self.root / "output" / "failure"
        return Ended(
            done.returncode,
            done.stdout + done.stderr,
            failure.read_text() if failure.exists() else None,
            json.loads(results.read_text()) if results.exists() else {},
        )


@pytest.fixture
def job(program: Path, tmp_path: Path) -> JobFolder:
    return JobFolder(program, tmp_path)
