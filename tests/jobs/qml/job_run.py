"""Runs the job as its container does: environment in, results.json out."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import qml_source

SOURCE = Path(qml_source.__file__).parent
SONAR = SOURCE / "inputs" / "sonar.all-data"
NEEDS_TORCH = "PyTorch is not installed in this environment, and training runs on it"
DEFAULT_QUBIT = "local:pennylane/default.qubit"
LIGHTNING = "local:pennylane/lightning.qubit"
SMALL = {"nwires": "4", "batch_size": "8", "epochs": "2", "lr": "0.05"}


@dataclass
class Host:
    """The folders and variables of one host of a job."""

    root: Path
    name: str = "job-a"
    more: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for folder in (self.channel, self.results, self.checkpoints):
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def channel(self) -> Path:
        return self.root / "data" / "input-data"

    @property
    def results(self) -> Path:
        return self.root / "results"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def log(self) -> str:
        return (self.root / "log").read_text()

    def prepare(
        self, hyperparameters: Mapping[str, str], data: str | Path = SONAR, device: str = DEFAULT_QUBIT
    ) -> dict[str, str]:
        """Writes the files and returns the variables."""
        text = data.read_text() if isinstance(data, Path) else data
        (self.channel / "sonar.all-data").write_text(text)
        file = self.root / "hyperparameters.json"
        file.write_text(json.dumps({**SMALL, **hyperparameters}))
        return {
            "AMZN_BRAKET_DEVICE_ARN": device,
            "AMZN_BRAKET_HP_FILE": str(file),
            "AMZN_BRAKET_INPUT_DIR": str(self.channel.parent),
            "AMZN_BRAKET_JOB_RESULTS_DIR": str(self.results),
            "AMZN_BRAKET_CHECKPOINT_DIR": str(self.checkpoints),
            "AMZN_BRAKET_JOB_NAME": self.name,
            **self.more,
        }

    def start(self, entry_point: str, variables: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        """Starts an entry point in a process of its own, whose output goes to `log`."""
        search_path = os.pathsep.join(filter(None, [str(SOURCE.parent), variables.get("PYTHONPATH", "")]))
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables, "PYTHONPATH": search_path}
        with (self.root / "log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"qml_source.{entry_point}"],
                env=environment,
                cwd=self.root,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def result(self) -> dict[str, Any]:
        """What the job wrote as its result."""
        document = json.loads((self.results / "results.json").read_text())
        assert document["braketSchemaHeader"]["name"] == "braket.jobs_data.persisted_job_data"
        assert document["dataFormat"] == "plaintext"
        return dict(document["dataDictionary"])
