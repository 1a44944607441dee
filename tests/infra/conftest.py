"""The stacks of a few stages, synthesised once a test run: a synthesis costs seconds."""

import json
import shutil
from pathlib import Path

import pytest
from aws_cdk import App

import app as application
from tests.infra.synthesised import STACKS, Synthesise, Synthesised

PROJECT = Path(__file__).resolve().parents[2]

RETAINED = """
launch = ["qaoa-18-cpu"]
removal = "retain"
max_spend_usd = 1.0
retain_records_days = 90
pull_principals = ["arn:aws:iam::111122223333:root", "arn:aws:iam::111122223333:role/ImageReader"]
"""
DISPOSABLE = """
launch = []
removal = "destroy"
max_spend_usd = 0.0
"""


def copy_project(root: Path) -> Path:
    """Copy what a synthesis reads, so that a test can have stages of its own and compare runs."""
    for name in ("lambdas", "job_sources", "container_assets", "stages"):
        shutil.copytree(PROJECT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("app.py", "cdk.json"):
        shutil.copy(PROJECT / name, root)
    return root


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This project with two more stages."""
    root = copy_project(tmp_path_factory.mktemp("project"))
    (root / "stages" / "kept.toml").write_text(RETAINED)
    (root / "stages" / "empty.toml").write_text(DISPOSABLE)
    return root


@pytest.fixture(scope="session")
def synthesise(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Synthesise:
    """A function that synthesises a stage, from its TOML if that is given."""

    def synthesised(stage: str, toml: str | None = None, folder: Path | None = None) -> Synthesised:
        if toml is not None:
            (project / "stages" / f"{stage}.toml").write_text(toml)
        folder = folder or tmp_path_factory.mktemp(f"assembly-{stage}")
        context = json.loads((PROJECT / "cdk.json").read_text())["context"] | {"stage": stage}
        # The CDK's own template validation takes several times as long as the rest; one CI step runs it.
        app = App(
            context=context,
            outdir=str(folder),
            analytics_reporting=False,
            builtin_cloud_formation_validation=False,
        )
        application.build(app, project)
        app.synth()
        documents = {name: json.loads((folder / f"{name}.template.json").read_text()) for name in STACKS}
        return Synthesised(stage=stage, folder=folder, documents=documents)

    return synthesised


@pytest.fixture(scope="session")
def local(synthesise: Synthesise) -> Synthesised:
    """The stage of the embedded cloud."""
    return synthesise("local")


@pytest.fixture(scope="session")
def kept(synthesise: Synthesise) -> Synthesised:
    """A stage for any account that keeps what it holds and lets others pull."""
    return synthesise("kept")


@pytest.fixture(scope="session")
def empty(synthesise: Synthesise) -> Synthesised:
    """A disposable stage for any account that launches nothing."""
    return synthesise("empty")
