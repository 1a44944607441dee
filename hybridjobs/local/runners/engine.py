"""The container engine of this machine: how it is reached, what it has to give, and which containers in it are ours."""

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, DockerException

from hybridjobs.local.run_folder import RunFolder
from hybridjobs.local.runners.machine import gpu_count
from hybridjobs.model.errors import ProjectError

RUN_FOLDER_LABEL = "hybrid-jobs.run-folder"
RUNNER_LABEL = "hybrid-jobs.runner"
JOB_LABEL = "hybrid-jobs.job"

_VARIABLES = ("DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH")
_USUAL_ADDRESS = "unix:///var/run/docker.sock"
_ANSWER_SECONDS = 60
_GONE = (404, 409)  # removed already, or by somebody at this moment

logger = logging.getLogger(__name__)


class EngineUnavailableError(ProjectError):
    """No container engine answers, with what to do about it."""


@dataclass(frozen=True)
class EngineMachine:
    """What all containers together may use: `cpus` and `gpus` are counts, `memory_bytes` leaves the machine its share.

    It is what the engine sees, which may live in a virtual machine smaller than this machine.
    """

    cpus: int
    memory_bytes: int
    gpus: int


def engine_variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables of `environment` that say where the engine is."""
    return {name: environment[name] for name in _VARIABLES if name in environment}


def with_engine(environment: Mapping[str, str], engine: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` with the engine that `engine_variables` gave, whatever engine it names itself."""
    return {name: value for name, value in environment.items() if name not in _VARIABLES} | dict(engine)


def connect(environment: Mapping[str, str] = os.environ) -> Any:
    """Return a client (docker.DockerClient) for the engine that `environment` names, or for the usual one.

    Raises EngineUnavailableError when it doesn't answer.
    """
    variables = engine_variables(environment)
    try:
        client = docker.from_env(environment=variables, timeout=_ANSWER_SECONDS)
        client.ping()
    except (DockerException, OSError) as error:
        address = variables.get("DOCKER_HOST") or _USUAL_ADDRESS
        raise EngineUnavailableError(
            f"jobs are to run in containers, and no container engine answers at {address}: {error}. Start one, name"
            " its address in DOCKER_HOST, or leave HYBRIDJOBS_RUNNER unset to run jobs as processes"
        ) from error
    return client


def machine_of(client: Any) -> EngineMachine:
    """Ask the engine what its machine has; the memory that its own processes need is left out."""
    information = client.info()
    total: int = information["MemTotal"]
    return EngineMachine(information["NCPU"], total - min(total // 8, 1 << 30), gpu_count())


def remove_containers(client: Any, label: str, value: str) -> int:
    """Kill and remove every container that carries `label` with `value`; returns how many there were."""
    found = client.api.containers(all=True, quiet=True, filters={"label": f"{label}={value}"})
    for container in found:
        try:
            client.api.remove_container(container["Id"], force=True, v=True)
        except APIError as error:
            if error.status_code not in _GONE:
                raise
    return len(found)


def note_engine(run_folder: Path, engine: Mapping[str, str]) -> None:
    """Leave the engine's variables in a run folder, so that whoever removes the folder finds the containers."""
    RunFolder(run_folder.parent).engine.write_text(json.dumps(dict(engine)), encoding="utf-8")


def remove_containers_of(folder: RunFolder) -> None:
    """Remove the containers of an embedded cloud; does nothing, and asks no engine, where it never had any."""
    try:
        noted = folder.engine.read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    try:
        remove_containers(connect(json.loads(noted)), RUN_FOLDER_LABEL, str(folder.path))
    except (EngineUnavailableError, DockerException, OSError, ValueError) as error:
        # An engine that is gone runs no containers, and one that is in trouble must not keep the cloud from ending.
        logger.warning("containers of %s could not be looked for: %s", folder.path, error)
