"""Jobs on GPU instances are launched everywhere but in an embedded cloud on a machine without a GPU, which says so."""

import json
from pathlib import Path

import pytest
from aws_cdk import App, CustomResource

import app as application
from hybridjobs.local import left_out as subject
from hybridjobs.model.stage import load_stage

PROJECT = Path(__file__).resolve().parents[2]
GPU_JOBS = {"qaoa-18-gpu", "qaoa-24-gpu"}


def launched(project: Path, stage: str, context: dict[str, str]) -> int:
    """How many job resources the app adds."""
    settings = json.loads((PROJECT / "cdk.json").read_text())["context"] | {"stage": stage} | context
    app = App(context=settings, analytics_reporting=False)
    application.build(app, project)
    return sum(isinstance(construct, CustomResource) for construct in app.node.find_child("Jobs").node.find_all())


@pytest.mark.parametrize(("gpus", "missing"), [(0, GPU_JOBS), (1, set())])
def test_what_the_machine_cannot_run_is_left_out_of_the_app_and_named_with_its_reason(
    project: Path, monkeypatch: pytest.MonkeyPatch, gpus: int, missing: set[str]
) -> None:
    monkeypatch.setattr(subject, "gpu_count", lambda: gpus)
    named = subject.left_out(project, "local")
    assert named.keys() == missing
    assert all("ml.g6.2xlarge has a GPU, this machine has none" in reason for reason in named.values())
    jobs = load_stage(project / "stages", "local").launch
    extra = launched(project, "empty", {})
    assert launched(project, "local", subject.gpu_context()) - extra == len(set(jobs) - missing)


def test_a_deployment_to_an_account_launches_them(project: Path) -> None:
    jobs = load_stage(project / "stages", "local").launch
    assert set(jobs) >= GPU_JOBS
    assert launched(project, "local", {}) - launched(project, "empty", {}) == len(jobs)
