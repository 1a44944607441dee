"""A job source with locked requirements has a Python environment of its own, made for it and seen by nobody else."""

import hashlib
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from .conftest import Workbench

USE = """
import importlib.metadata, six
assert six.__version__ == '99.0'
assert importlib.metadata.version('six') == '99.0'
"""
OTHER = "import six, boto3\nassert six.__version__ != '99.0'\n"


@pytest.fixture
def wheel_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package index that holds a future version of an installed package, and the wheel's SHA-256."""
    wheel = tmp_path / "index" / "six-99.0-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as bundle:
        bundle.writestr("six.py", "__version__ = '99.0'\n")
        bundle.writestr("six-99.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: six\nVersion: 99.0\n")
        bundle.writestr("six-99.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        bundle.writestr("six-99.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def test_a_locked_version_wins_over_the_installed_one_in_its_job_alone(workbench: Workbench, wheel_hash: str) -> None:
    locked = {"job/main.py": USE, "job/requirements.txt": f"six==99.0 --hash=sha256:{wheel_hash}\n"}
    run = workbench.run(locked)
    job = workbench.start(run)
    beside = workbench.complete({"job/main.py": OTHER})
    assert beside.outcome.failure_reason is None, beside.log
    ended = workbench.finish(run, job)
    assert ended.outcome.failure_reason is None, ended.log


def test_a_package_that_is_not_the_locked_one_fails_the_job_before_its_code_runs(
    workbench: Workbench, wheel_hash: str
) -> None:
    wrong = wheel_hash[::-1]
    ended = workbench.complete(
        {"job/main.py": "print('ran')", "job/requirements.txt": f"six==99.0 --hash=sha256:{wrong}\n"}
    )
    assert ended.reason.startswith("AlgorithmError: RequirementsError: pip could not install job/requirements.txt")
    assert wrong in ended.reason
    assert "ran" not in ended.log.splitlines()


def test_a_jobs_commands_and_folders_are_its_own_whatever_comes_with_the_variables_for_aws(
    workbench: Workbench,
) -> None:
    code = "import os, shutil\nprint(shutil.which('pip'), os.environ['HOME'], os.environ['TMPDIR'], sep='\\n')\n"
    run = workbench.run({"job/main.py": code})
    machine = {"PATH": str(Path(sys.executable).parent), "HOME": "/of/this/machine", "TMPDIR": "/of/this/machine"}
    run = replace(run, aws_environment={**run.aws_environment, **machine})
    ended = workbench.finish(run, workbench.start(run))
    lines = ended.log.splitlines()
    assert str(ended.host() / "python" / "bin" / "pip") in lines
    assert str(ended.host() / "home") in lines
    assert "/of/this/machine" not in ended.log
