"""`hybridjobs image`: what keeps an image from running jobs is told, with its remedy, before anything is paid for."""

import hashlib
import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hybridjobs.images.build import ImageBuildError, build_command, build_image
from hybridjobs.images.checks import ImageFacts, problems_of
from hybridjobs.images.probe import ImageNotThereError, facts_of, parsed_answers
from hybridjobs.images.push import check_image, push_image
from hybridjobs.images.registry import RegistryError, StageRegistry
from hybridjobs.local.cloud import LocalCloud
from hybridjobs.local.docker_for_cdk import is_login, translated
from hybridjobs.model.errors import SpecError
from hybridjobs.model.image_build import ImageBuild, load_image_build

FIT = ImageFacts(
    architecture="amd64",
    size_bytes=2_000_000_000,
    variables={"SAGEMAKER_PROGRAM": "braket_entrypoint.py"},
    programs=frozenset({"train", "python"}),
    python_version=(3, 12),
    modules=frozenset({"boto3", "pip"}),
    has_program_file=True,
)


def told(facts: ImageFacts, volume_gb: int = 30) -> str:
    return "\n".join(map(str, problems_of(facts, volume_gb)))


def test_an_image_with_all_that_the_service_needs_is_fit() -> None:
    assert problems_of(FIT, 30) == []


@pytest.mark.parametrize(
    ("changes", "problem", "remedy"),
    [
        ({"programs": frozenset({"python"})}, "command train", "pip install sagemaker-training"),
        ({"programs": frozenset({"train"})}, "no python on the PATH", "python-is-python3"),
        ({"python_version": None}, "does not run", "3.10 or newer"),
        ({"python_version": (3, 9)}, "is Python 3.9", "3.10 or newer"),
        ({"modules": frozenset({"pip"})}, "no boto3", "pip install boto3"),
        ({"modules": frozenset({"boto3"})}, "no pip", "python3-pip"),
        ({"variables": {}}, "SAGEMAKER_PROGRAM is not set", "ENV SAGEMAKER_PROGRAM=braket_entrypoint.py"),
        ({"has_program_file": False}, "no /opt/ml/code/braket_entrypoint.py", "COPY entrypoint/braket_entrypoint.py"),
        ({"passes_command": False, "entrypoint": ("/run",)}, "does not run the command train", "ENTRYPOINT []"),
        ({"has_shell": False}, "no /bin/sh", "debian:bookworm-slim"),
        ({"architecture": "arm64"}, "every instance type of Braket is x86-64", "--platform linux/amd64"),
        ({"size_bytes": 31_000_000_000}, "unpacks to 31.0 GB", "instance.volume_gb = 64"),
    ],
)
def test_what_an_image_lacks_is_told_with_how_to_add_it(changes: dict[str, Any], problem: str, remedy: str) -> None:
    (found,) = problems_of(replace(FIT, **changes), 30)
    assert problem in str(found)
    assert remedy in str(found)


def test_everything_that_is_missing_is_told_at_once() -> None:
    bare = told(ImageFacts(architecture="amd64", size_bytes=1))
    for missing in ("train", "python", "SAGEMAKER_PROGRAM"):
        assert missing in bare


def test_what_an_image_prints_itself_is_no_answer() -> None:
    assert parsed_answers("hello program=train\nprogram=python\npython=3.11\nmodule=pip\nprogram-file=no\n") == {
        "programs": frozenset({"python"}),
        "modules": frozenset({"pip"}),
        "python_version": (3, 11),
        "has_program_file": False,
    }


def test_a_build_is_for_x86_and_gives_secrets_as_files() -> None:
    settings = ImageBuild(
        network="host", secrets={"certificates": "/ca.crt"}, arguments={"cpp": {"BASE_IMAGE": "mirror:1"}}
    )
    command = build_command("cpp", target="runtime", settings=settings)
    assert command[:3] == ["build", "--platform", "linux/amd64"]
    assert "id=certificates,src=/ca.crt" in command
    assert "BASE_IMAGE=mirror:1" in command
    assert "hybrid-jobs-cpp-runtime:local" in command
    others = build_command("cpp", settings=settings, arguments={"BASE_IMAGE": "mine:2"})
    assert "BASE_IMAGE=mine:2" in others
    assert "BASE_IMAGE=mirror:1" not in others
    assert "BASE_IMAGE=mirror:1" not in build_command("julia", settings=settings)


def test_a_folder_without_a_dockerfile_is_not_built(tmp_path: Path) -> None:
    (tmp_path / "julia").mkdir()
    (tmp_path / "julia" / "Dockerfile").touch()
    with pytest.raises(ImageBuildError, match='Did you mean "julia"'):
        build_image(tmp_path, "jula", ["build"])


def test_a_secret_that_is_not_there_is_refused_before_a_build(tmp_path: Path) -> None:
    file = tmp_path / "build.toml"
    file.write_text('[secrets]\nindex = "/nowhere/index"\n')
    with pytest.raises(SpecError, match=r"secrets.index = ./nowhere/index.: there is no such file"):
        load_image_build(str(file))
    assert load_image_build(None) == ImageBuild()


def test_the_cdk_cli_reaches_the_embedded_registry_under_the_names_of_aws() -> None:
    name = "000000000000.dkr.ecr.us-east-1.amazonaws.com/amazon-braket-x:1"
    environment = {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}
    assert translated(["push", name], environment) == ["push", "127.0.0.1:4566/amazon-braket-x:1"]
    other = ["build", "--build-arg", "BASE_IMAGE=111122223333.dkr.ecr.us-east-1.amazonaws.com/base:1", "."]
    assert translated(other, environment) == other
    assert is_login(["login", "--username", "AWS", "--password-stdin", "https://000000000000.dkr.ecr"])
    assert not is_login(["build", "--tag", "x", "login"])


def archive_of(**files: bytes) -> io.BytesIO:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, content in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    raw.seek(0)
    return raw


def image_for(client: Any, architecture: str) -> str:
    """Load an empty image that says which processor it is for."""
    layer = archive_of(file=b"").getvalue()
    rootfs = {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]}
    configuration = {"architecture": architecture, "os": "linux", "config": {}, "rootfs": rootfs}
    manifest = [{"Config": "configuration", "RepoTags": [], "Layers": ["layer"]}]
    whole = archive_of(
        **{"manifest.json": json.dumps(manifest).encode()},
        configuration=json.dumps(configuration).encode(),
        layer=layer,
    )
    (image,) = client.images.load(whole.getvalue())
    return str(image.id)


def built(client: Any, base: str, *lines: str) -> str:
    dockerfile = "\n".join([f"FROM {base}", *lines]).encode()
    image, _ = client.images.build(
        fileobj=archive_of(Dockerfile=dockerfile), custom_context=True, rm=True, network_mode="none"
    )
    return str(image.id)


def test_the_test_image_is_fit_and_broken_ones_are_told_apart(engine_client: Any, base_image_name: str) -> None:
    facts = facts_of(engine_client, base_image_name)
    assert facts.programs == {"train", "python"}
    assert (facts.has_program_file, facts.passes_command) == (True, True)
    assert facts.python_version is not None
    assert "boto3" in facts.modules
    swallowing = built(
        engine_client, base_image_name, 'ENTRYPOINT ["/bin/sh", "-c", "exit 0"]', "ENV PATH=/usr/bin:/bin"
    )
    broken = facts_of(engine_client, swallowing)
    assert not broken.passes_command
    assert broken.programs == {"python"}
    passing = built(engine_client, base_image_name, 'ENTRYPOINT ["/usr/bin/env"]', "ENV SAGEMAKER_PROGRAM=other.py")
    fine = facts_of(engine_client, passing)
    assert fine.passes_command
    assert not fine.has_program_file
    shell_less = built(engine_client, "scratch", "LABEL empty=yes")
    assert not facts_of(engine_client, shell_less).has_shell
    assert engine_client.containers.list(all=True, filters={"label": "hybrid-jobs.probe"}) == []


def test_an_image_for_another_processor_is_refused_without_running_it(engine_client: Any) -> None:
    arm = image_for(engine_client, "arm64")
    with pytest.raises(SpecError, match=r"architecture = .arm64"):
        check_image(engine_client, arm, 30)


def test_an_image_that_is_not_there_is_named(engine_client: Any) -> None:
    with pytest.raises(ImageNotThereError, match="hybridjobs image build"):
        facts_of(engine_client, "hybrid-jobs-nowhere:1")


def image_test_command(image: str) -> "subprocess.CompletedProcess[str]":
    program = Path(sys.executable).with_name("hybridjobs")
    return subprocess.run([program, "image", "test", image], capture_output=True, text=True, check=False, timeout=120)


# The test image has all that a job needs but pip, whose place an empty module takes here.
ADD_PIP = "RUN python -c \"import boto3, pathlib; pathlib.Path(boto3.__file__).parents[1].joinpath('pip.py').touch()\""


def test_the_command_tells_what_an_image_lacks_and_passes_a_good_one(engine_client: Any, base_image_name: str) -> None:
    good = built(engine_client, base_image_name, ADD_PIP)
    passed = image_test_command(good)
    assert (passed.returncode, passed.stderr) == (0, "")
    assert passed.stdout == f"{good} can run jobs\n"
    without_train = built(engine_client, good, "ENV PATH=/usr/bin:/bin")
    refused = image_test_command(without_train)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert without_train in refused.stderr
    assert "the command train, with which the service starts a job, is not on the PATH" in refused.stderr
    assert "Add RUN pip install sagemaker-training==" in refused.stderr
    assert "Traceback" not in refused.stderr
    absent = image_test_command("hybrid-jobs-nowhere:1")
    assert absent.returncode == 1
    assert "Build it with `hybridjobs image build`, or pull it" in absent.stderr


@pytest.fixture
def registry(tmp_path: Path, engine_client: Any) -> Iterator[StageRegistry]:
    """The repository of a stage in an embedded cloud, known by its contract."""
    cloud = LocalCloud(tmp_path)
    cloud.up(bound=True)
    try:
        cloud.client("ecr").create_repository(repositoryName="amazon-braket-pushed")
        yield StageRegistry.of(
            SimpleNamespace(  # type: ignore[arg-type]
                parameters={"repository-uri": "000000000000.dkr.ecr.us-east-1.amazonaws.com/amazon-braket-pushed"},
                endpoint_url=cloud.environment()["AWS_ENDPOINT_URL"],
                session=SimpleNamespace(region_name="us-east-1", client=lambda name, **_: cloud.client(name)),
            )
        )
    finally:
        cloud.down()


def test_a_push_answers_with_a_digest_and_a_tag_never_moves(
    registry: StageRegistry, engine_client: Any, base_image_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is checked before has tests of its own, and the test image would not pass: it has no pip.
    monkeypatch.setattr("hybridjobs.images.push.check_image", lambda client, reference, volume_gb: None)
    target = f"{registry.uri}:1"
    first = push_image(engine_client, base_image_name, registry, target=target, volume_gb=30)
    assert first.startswith(f"{registry.uri}@sha256:")
    assert push_image(engine_client, base_image_name, registry, target=target, volume_gb=30) == first
    assert push_image(engine_client, base_image_name, registry, target=None, volume_gb=30) == first
    other = built(engine_client, base_image_name, "LABEL changed=yes")
    with pytest.raises(RegistryError, match=r":1 is another image already .* under a new tag"):
        push_image(engine_client, other, registry, target=target, volume_gb=30)
    elsewhere = target.replace("us-east-1", "eu-west-2")
    with pytest.raises(RegistryError, match=r"in eu-west-2 and the stage's jobs run in us-east-1"):
        push_image(engine_client, base_image_name, registry, target=elsewhere, volume_gb=30)


def test_an_image_that_is_not_fit_is_not_pushed(
    registry: StageRegistry, engine_client: Any, base_image_name: str
) -> None:
    broken = built(engine_client, base_image_name, "ENV SAGEMAKER_PROGRAM=")
    with pytest.raises(SpecError, match="SAGEMAKER_PROGRAM is not set"):
        push_image(engine_client, broken, registry, target=f"{registry.uri}:2", volume_gb=30)
    assert registry.stored("2") is None
