"""Builds the C++ engine, and talks to it: one process answers any number of problems."""

import fcntl
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qaoa_source.problem import MaxCutProblem
from tests.debian_packages import NotInstallableError, install_package

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "container_assets" / "cpp" / "engine"
BUILD = ROOT / ".cache" / "maxcut-cpp"


def missing_tools() -> str | None:
    """What this machine lacks to build the engine, None when nothing."""
    for tool in ("g++", "make"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    if not _has_json_header():
        try:
            install_package("nlohmann-json3-dev")
        except NotInstallableError as error:
            return f"the header nlohmann/json.hpp is missing, and {error}"
    return None


def _has_json_header() -> bool:
    preprocess = ["g++", "-x", "c++", "-E", "-include", "nlohmann/json.hpp", "/dev/null"]
    return subprocess.run(preprocess, capture_output=True, check=False).returncode == 0


def build() -> Path:
    """Builds what has changed and returns the program; only one process builds at a time."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = subprocess.run(
            ["make", "-s", "-j2", f"BUILD={BUILD}"], cwd=SOURCE, capture_output=True, text=True, check=False
        )
    assert made.returncode == 0, made.stderr
    return BUILD / "maxcut-cpp"


class Engine:
    """A running `maxcut-cpp evaluate`."""

    def __init__(self, program: Path) -> None:
        self._process = subprocess.Popen(
            [program, "evaluate"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def answer(self, problem: MaxCutProblem, parameters: NDArray[np.float64], **more: Any) -> dict[str, Any]:
        edges = [[edge.first, edge.second, edge.weight] for edge in problem.edges]
        request = {"nodes": problem.nodes, "edges": edges, "parameters": parameters.tolist(), **more}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        line = self._process.stdout.readline()
        assert line, f"the engine ended with exit code {self._process.wait()}"
        return dict(json.loads(line))

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
