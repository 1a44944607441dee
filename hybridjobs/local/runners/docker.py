"""Runs jobs in containers, as the service does: in the job's image, within the limits of its instance type."""

import contextlib
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

from hybridjobs.local.processes import MARKER
from hybridjobs.local.runners import reaper
from hybridjobs.local.runners.aws_clients import ClientCache
from hybridjobs.local.runners.base import JobRun, Phase
from hybridjobs.local.runners.container_images import ContainerImages
from hybridjobs.local.runners.container_pip import pip_settings
from hybridjobs.local.runners.containers import ContainerHost
from hybridjobs.local.runners.contract import DATA_PARALLEL, HostLayout, HostResources, host_names
from hybridjobs.local.runners.engine import (
    RUN_FOLDER_LABEL,
    RUNNER_LABEL,
    EngineMachine,
    connect,
    engine_variables,
    machine_of,
    note_engine,
    with_engine,
)
from hybridjobs.local.runners.job import DEFAULT_SETTINGS, HostedJob, HostPlan, JobSettings, allowed_bytes
from hybridjobs.local.runners.logs import LogStream
from hybridjobs.local.runners.machine import free_port
from hybridjobs.model.instances import INSTANCE_TYPES

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def host_limits(instance_type: str, hosts: int, machine: EngineMachine) -> tuple[HostResources, int]:
    """Return what each of `hosts` may use, the memory in bytes.

    That is what the instance type has, or a host's share of the machine where that is less. An unknown instance type
    has no limits of its own.
    """
    cpus, gpus = max(machine.cpus // hosts, 1), machine.gpus // hosts
    memory = machine.memory_bytes // hosts
    kind = INSTANCE_TYPES.get(instance_type)
    if kind is not None:
        cpus, gpus = min(cpus, kind.vcpus), min(gpus, kind.gpus)
        memory = min(memory, int(kind.memory_gib * (1 << 30)))
    return HostResources(cpus, gpus, "lo"), memory


class DockerRunner:
    """Executes each host of a job as a container of the engine on this machine that `environment` names.

    No container outlives this process: a second process, the reaper, removes them when this one is gone.
    Raises EngineUnavailableError when no engine answers.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ, settings: JobSettings = DEFAULT_SETTINGS) -> None:
        self.settings = settings
        self.clients = ClientCache()
        self.label = str(uuid.uuid4())
        # Kept: this process's own variables may name another engine later, or none.
        self._engine = engine_variables(environment)
        self._pip = pip_settings(environment)
        self._client = connect(self._engine)
        self._images = ContainerImages(self._client)
        self._machine = machine_of(self._client)
        self._reaper: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def start(self, run: JobRun, on_phase: Callable[[Phase], None]) -> HostedJob:
        """Start a job and return at once."""
        self._start_reaper()
        if MARKER in run.aws_environment:
            note_engine(Path(run.aws_environment[MARKER]), self._engine)
        return HostedJob(self, run, on_phase)

    def host_plans(self, run: JobRun) -> list[HostPlan]:
        """See job.HostedRunner."""
        names = host_names(run.request)
        resources, _ = host_limits(run.request["instanceConfig"]["instanceType"], len(names), self._machine)
        more = {
            "BRAKET_VOLUME_BYTES": str(allowed_bytes(run, self.settings)),
            **dict.fromkeys(_THREAD_VARIABLES, str(resources.cpus)),
        }
        if len(names) > 1 or DATA_PARALLEL in run.request.get("hyperParameters", {}):
            more["MASTER_PORT"] = str(free_port())
        return [HostPlan(name, HostLayout(run.folder / name), resources, more) for name in names]

    def make_host(self, run: JobRun, plan: HostPlan, log: LogStream) -> ContainerHost:
        """See job.HostedRunner."""
        hosts = len(host_names(run.request))
        _, memory = host_limits(run.request["instanceConfig"]["instanceType"], hosts, self._machine)
        labels = {RUNNER_LABEL: self.label}
        if MARKER in run.aws_environment:
            labels[RUN_FOLDER_LABEL] = run.aws_environment[MARKER]
        owner = None if os.geteuid() == 0 else (os.geteuid(), os.getegid())
        return ContainerHost(
            run, plan, log, self._client, self._images, memory, labels, self.settings.grace_seconds, owner, self._pip
        )

    def close(self) -> None:
        """Remove the containers that are left and end the reaper; without it, the end of this process does."""
        with self._lock:
            process, self._reaper = self._reaper, None
        if process is not None and process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.wait()

    def _start_reaper(self) -> None:
        with self._lock:
            if self._reaper is not None and self._reaper.poll() is None:
                return
            self._reaper = subprocess.Popen(
                [sys.executable, "-I", str(Path(reaper.__file__)), f"{RUNNER_LABEL}={self.label}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                env=with_engine(os.environ, self._engine),
                start_new_session=True,
            )
