"""Which runner executes jobs: as processes, or in containers where that is asked for. Loads only what is chosen."""

import os
from collections.abc import Mapping

from hybridjobs.local.run_folder import RunFolder
from hybridjobs.local.runners.base import Runner
from hybridjobs.model.errors import ProjectError

VARIABLE = "HYBRIDJOBS_RUNNER"
PROCESS, DOCKER = "process", "docker"


class RunnerChoiceError(ProjectError):
    """The chosen runner does not exist."""


def chosen_runner(environment: Mapping[str, str] = os.environ) -> Runner:
    """Return the runner that `environment` names in HYBRIDJOBS_RUNNER: `process`, the default, or `docker`.

    Raises RunnerChoiceError for another name, EngineUnavailableError when no container engine answers.
    """
    check_choice(environment)
    if environment.get(VARIABLE) == DOCKER:
        from hybridjobs.local.runners.docker import DockerRunner  # noqa: PLC0415

        return DockerRunner(environment)
    from hybridjobs.local.runners.process import ProcessRunner  # noqa: PLC0415

    return ProcessRunner()


def check_choice(environment: Mapping[str, str] = os.environ) -> None:
    """Raise RunnerChoiceError or EngineUnavailableError, as `chosen_runner` would, without making a runner."""
    name = environment.get(VARIABLE) or PROCESS
    if name == DOCKER:
        from hybridjobs.local.runners.engine import connect  # noqa: PLC0415

        connect(environment).close()
    elif name != PROCESS:
        raise RunnerChoiceError(f"{VARIABLE} = {name!r}: no such runner. Choose {PROCESS} or {DOCKER}")


def end_containers(folder: RunFolder) -> None:
    """Remove the containers that jobs of the embedded cloud in `folder` left; safe where there never were any."""
    if folder.engine.exists():
        from hybridjobs.local.runners.engine import remove_containers_of  # noqa: PLC0415

        remove_containers_of(folder)
