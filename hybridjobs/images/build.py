"""Builds a job image from container_assets, as a deployment would, for x86-64 whatever machine builds."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from hybridjobs.local.docker_program import builder_environment, docker_program
from hybridjobs.model.errors import ProjectError, suggestion
from hybridjobs.model.image_build import ImageBuild

PLATFORM = "linux/amd64"


class ImageBuildError(ProjectError):
    """An image that could not be built."""


def default_tag(folder: str, target: str | None = None) -> str:
    """Return the name in the engine of the image of `folder`."""
    return f"hybrid-jobs-{folder}{f'-{target}' if target else ''}:local"


def build_command(
    folder: str,
    *,
    target: str | None = None,
    tag: str | None = None,
    settings: ImageBuild,
    arguments: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the arguments of docker that build an image in container_assets; `arguments` win over the settings'."""
    command = [
        "build",
        "--platform",
        PLATFORM,
        "--file",
        f"{folder}/Dockerfile",
        "--tag",
        tag or default_tag(folder, target),
    ]
    command += ["--target", target] if target else []
    command += ["--network", settings.network] if settings.network != "default" else []
    for name, value in {**settings.arguments_for(folder), **(arguments or {})}.items():
        command += ["--build-arg", f"{name}={value}"]
    for name, file in settings.secrets.items():
        command += ["--secret", f"id={name},src={file}"]
    return [*command, "."]


def build_image(container_assets: Path, folder: str, command: Sequence[str]) -> None:
    """Run a build, its output going where this process's goes.

    Raises:
        ImageBuildError: The folder has no Dockerfile, or the build failed.
        NoDockerProgramError: No docker command can build.
    """
    known = sorted(file.parent.name for file in container_assets.glob("*/Dockerfile"))
    if folder not in known:
        raise ImageBuildError(
            f"image {folder!r}: there is no {container_assets.name}/{folder}/Dockerfile. "
            f"{suggestion(folder, known, noun='image')}"
        )
    done = subprocess.run([docker_program(), *command], cwd=container_assets, env=builder_environment(), check=False)
    if done.returncode:
        raise ImageBuildError(
            f"the build of {folder} failed with exit code {done.returncode}; the reason stands above. "
            "A base that can't be reached, a package index or certificates of your own are given to the build by the "
            "file that HYBRIDJOBS_IMAGE_BUILD names"
        )
