"""What can be said of the project's images without building them."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ASSETS = Path(__file__).parents[2] / "container_assets"
DOCKERFILES = sorted(ASSETS.glob("*/Dockerfile"))
LOCKS = sorted(ASSETS.glob("*/requirements*.txt"))


def folder_of(file: Path) -> str:
    return file.parent.name


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=folder_of)
def test_hadolint_has_nothing_to_say(dockerfile: Path) -> None:
    done = subprocess.run(["hadolint", "--no-color", dockerfile], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=folder_of)
def test_bases_are_pinned_and_can_be_replaced(dockerfile: Path) -> None:
    text = dockerfile.read_text()
    arguments = dict(re.findall(r"^ARG (\w+_IMAGE)=(\S+)$", text, re.MULTILINE))
    stages = re.findall(r"^FROM \S+ AS (\S+)$", text, re.MULTILINE)
    for base in re.findall(r"^FROM (\S+)", text, re.MULTILINE):
        assert base in stages or base.strip("${}") in arguments, f"{base} can't be replaced by a build argument"
    for image in arguments.values():
        pinned = re.search(r"@sha256:[0-9a-f]{64}$", image)
        # AWS's registry has no public digests; its full tags are never moved.
        full_tag = re.fullmatch(r"\d{12}\.dkr\.ecr\.\S+:\d+\.\d+(\.\d+)?-\S+", image)
        assert pinned or full_tag, f"{image} may be another image tomorrow"


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=folder_of)
def test_an_image_says_what_it_is_and_lets_train_through(dockerfile: Path) -> None:
    text = dockerfile.read_text()
    assert "org.opencontainers.image.title" in text
    assert "SAGEMAKER_PROGRAM=braket_entrypoint.py" in text
    assert "COPY entrypoint/braket_entrypoint.py /opt/ml/code/braket_entrypoint.py" in text
    assert not re.search(r"^(ENTRYPOINT|CMD|USER|# syntax)", text, re.MULTILINE)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda file: f"{folder_of(file)}/{file.stem}")
def test_every_requirement_is_locked_with_hashes_and_without_addresses(lock: Path) -> None:
    text = lock.read_text()
    assert "://" not in text
    for requirement in re.split(r"(?<!\\)\n", text.strip()):
        assert re.match(r"[a-z0-9_.-]+==\S+", requirement), requirement
        assert "--hash=sha256:" in requirement, requirement


def test_what_starts_a_job_is_locked_alike_in_all_images() -> None:
    def versions(lock: Path) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for name, version in re.findall(r"^([a-z0-9_.-]+)==(\S+)", lock.read_text(), re.MULTILINE):
            found.setdefault(name, set()).add(version)
        return found

    small, whole = versions(ASSETS / "cpp" / "requirements.txt"), versions(ASSETS / "pennylane" / "requirements.txt")
    assert small == versions(ASSETS / "julia" / "requirements.txt")
    assert {"boto3", "sagemaker-training", "pip"} <= small.keys() <= whole.keys()
    assert small["sagemaker-training"] == whole["sagemaker-training"]


def test_the_julia_gpu_image_names_its_cuda_libraries_since_no_driver_is_there_to_choose_them() -> None:
    """CUDA.jl's installation guide, "Precompiling CUDA.jl without CUDA"."""
    folder = ASSETS / "julia" / "cuda"
    project = tomllib.loads((folder / "Project.toml").read_text())
    preferences = tomllib.loads((folder / "LocalPreferences.toml").read_text())
    for library, chosen in preferences.items():
        assert library in project["extras"], f"a preference for {library} is read only where the project names it"
        assert chosen["version"].startswith("12."), chosen
    assert list(preferences) == ["CUDA_Runtime_jll"]
