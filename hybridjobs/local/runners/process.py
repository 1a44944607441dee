"""Runs jobs as process trees of this machine: no container engine, no root, a private folder for each host."""

import sys
from collections.abc import Callable
from pathlib import Path

from hybridjobs.local.runners.aws_clients import ClientCache
from hybridjobs.local.runners.base import JobRun, Phase
from hybridjobs.local.runners.contract import DATA_PARALLEL, HostLayout, HostResources, host_names
from hybridjobs.local.runners.hosts import Host
from hybridjobs.local.runners.job import DEFAULT_SETTINGS, HostedJob, HostPlan, JobSettings, allowed_bytes
from hybridjobs.local.runners.logs import LogStream
from hybridjobs.local.runners.machine import cpu_count, free_port, gpu_count, namespace_command
from hybridjobs.model.instances import INSTANCE_TYPES

ENTRY_POINT_SCRIPT = Path(__file__).parents[3] / "container_assets" / "entrypoint" / "braket_entrypoint.py"


def _resources(instance_type_name: str, hosts: int) -> HostResources:
    """Give each host what its instance type has, or its share of this machine where that is less."""
    cpus, gpus = max(cpu_count() // hosts, 1), gpu_count() // hosts
    kind = INSTANCE_TYPES.get(instance_type_name)
    if kind is not None:
        cpus, gpus = min(cpus, kind.vcpus), min(gpus, kind.gpus)
    return HostResources(cpus, gpus, "lo")


def _visible_gpus(resources: HostResources, host_number: int) -> dict[str, str]:
    """Hide the GPUs that a host's instance type does not have; nothing to hide on a machine without any."""
    if not gpu_count():
        return {}
    first = host_number * resources.gpus
    return {"CUDA_VISIBLE_DEVICES": ",".join(str(gpu) for gpu in range(first, first + resources.gpus))}


class ProcessRunner:
    """Executes each host of a job as a process tree; the interpreter of jobs sees the packages of `python`."""

    def __init__(
        self,
        python: Path = Path(sys.executable),
        entry_point_script: Path = ENTRY_POINT_SCRIPT,
        settings: JobSettings = DEFAULT_SETTINGS,
    ) -> None:
        self.python = python
        self.entry_point_script = entry_point_script
        self.settings = settings
        self.clients = ClientCache()

    def start(self, run: JobRun, on_phase: Callable[[Phase], None]) -> HostedJob:
        """Start a job and return at once."""
        return HostedJob(self, run, on_phase)

    def host_plans(self, run: JobRun) -> list[HostPlan]:
        """See job.HostedRunner."""
        names = host_names(run.request)
        resources = _resources(run.request["instanceConfig"]["instanceType"], len(names))
        shared = {"BRAKET_VOLUME_BYTES": str(allowed_bytes(run, self.settings))}
        if len(names) > 1 or DATA_PARALLEL in run.request.get("hyperParameters", {}):
            shared["MASTER_PORT"] = str(free_port())
        if len(names) > 1 and not namespace_command():
            shared["MASTER_ADDR"] = "127.0.0.1"
        return [
            HostPlan(name, HostLayout(run.folder / name), resources, {**shared, **_visible_gpus(resources, number)})
            for number, name in enumerate(names)
        ]

    def make_host(self, run: JobRun, plan: HostPlan, log: LogStream) -> Host:
        """See job.HostedRunner."""
        return Host(run, plan, log, self.settings.grace_seconds, self.python, self.entry_point_script)
