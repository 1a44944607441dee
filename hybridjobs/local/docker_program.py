"""The docker command that can build the project's images: one with BuildKit, which secrets of a build need."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from hybridjobs.model.errors import ProjectError

# Since this release the command has no builder of its own any more and needs the plugin buildx.
_PLUGIN_SINCE = 23


class NoDockerProgramError(ProjectError):
    """No usable docker command is installed, with what to do about it."""


def docker_program() -> str:
    """Return the path of the first docker command on the PATH that can build with BuildKit.

    Raises:
        NoDockerProgramError: There is none.
    """
    return _docker_program(os.environ.get("PATH", os.defpath))


@cache
def _docker_program(search_path: str) -> str:
    found = list(_candidates(search_path))
    for program in found:
        if _builds(program):
            return program
    problem = f"{', '.join(found)} can't build with BuildKit" if found else "there is no docker command on the PATH"
    raise NoDockerProgramError(f"{problem}. Install Docker with its plugin buildx")


def builder_environment(base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that a build runs with."""
    return {**base, "DOCKER_BUILDKIT": "1"}


def _candidates(search_path: str) -> Iterator[str]:
    seen = set()
    for folder in search_path.split(os.pathsep):
        program = shutil.which("docker", path=folder)
        if program is not None and Path(program).resolve() not in seen:
            seen.add(Path(program).resolve())
            yield program


def _builds(program: str) -> bool:
    if subprocess.run([program, "buildx", "version"], capture_output=True, check=False).returncode == 0:
        return True
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    number = re.search(r"version (\d+)\.", version)
    return number is not None and int(number[1]) < _PLUGIN_SINCE
