"""Images built from the project's Dockerfiles go into the stage's own repository, for the machines that Braket has."""

import json
from pathlib import Path
from typing import Any

import pytest

from hybridjobs.model.errors import SpecError
from tests.infra.synthesised import Synthesise, Synthesised, flat

STAGE = """
launch = ["qaoa-18-cpu"]
removal = "destroy"
max_spend_usd = 1.0
overrides.qaoa-18-cpu.image = "asset:{image}"
"""


@pytest.fixture(scope="module")
def container_assets(project: Path) -> Path:
    folder = project / "container_assets"
    for name in ("first", "second"):
        (folder / name).mkdir()
        (folder / name / "Dockerfile").write_text("FROM scratch AS runtime\nCOPY entrypoint /opt/ml/code/\n")
    return folder


@pytest.fixture(scope="module")
def built(synthesise: Synthesise, container_assets: Path) -> Synthesised:
    return synthesise("images", STAGE.format(image="first:runtime"))


def image_asset(stage: Synthesised) -> tuple[str, dict[str, Any]]:
    assets = json.loads((stage.folder / "Jobs.assets.json").read_text())["dockerImages"]
    ((digest, asset),) = assets.items()
    return digest, asset


def test_an_image_goes_into_the_stage_s_repository_under_its_content_hash(built: Synthesised) -> None:
    digest, asset = image_asset(built)
    (destination,) = asset["destinations"].values()
    assert destination["repositoryName"] == built.the("Registry", "AWS::ECR::Repository")["RepositoryName"]
    assert destination["imageTag"] == digest
    uri = flat(built.the("Jobs", "Custom::BraketHybridJob")["ImageUri"])
    assert uri.endswith(f"/amazon-braket-hybrid-jobs-images:{digest}")


def test_an_image_is_built_for_x86_whatever_machine_builds(built: Synthesised) -> None:
    source = image_asset(built)[1]["source"]
    assert source["platform"] == "linux/amd64"
    assert (source["dockerFile"], source["dockerBuildTarget"]) == ("first/Dockerfile", "runtime")


@pytest.mark.parametrize(
    ("path", "rebuilt"),
    [
        ("first/Dockerfile", True),
        ("entrypoint/braket_entrypoint.py", True),
        ("second/Dockerfile", False),
        ("first/README.md", False),
        ("first/tests/test_image.py", False),
    ],
)
def test_only_a_change_of_its_own_files_builds_an_image_anew_and_launches_its_jobs_again(
    synthesise: Synthesise, container_assets: Path, built: Synthesised, path: str, rebuilt: bool
) -> None:
    file = container_assets / path
    file.parent.mkdir(exist_ok=True)
    before = file.read_text() if file.exists() else None
    file.write_text(f"{before or ''}# changed\n")
    try:
        stage = synthesise("images")
        digest, _ = image_asset(stage)
        changed = stage.the("Jobs", "Custom::BraketHybridJob")
    finally:
        if before is None:
            file.unlink()
        else:
            file.write_text(before)
    assert (digest != image_asset(built)[0]) is rebuilt
    assert (changed["SpecHash"] != built.the("Jobs", "Custom::BraketHybridJob")["SpecHash"]) is rebuilt


def test_a_folder_without_a_dockerfile_is_refused(synthesise: Synthesise, container_assets: Path) -> None:
    with pytest.raises(SpecError, match=r"image = .*asset:third.*: there is no container_assets/third/Dockerfile"):
        synthesise("third", STAGE.format(image="third"))
