"""Which hosts and workers a data-parallel training has, from what the service tells each host."""

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from qml_source.hyperparameters import HyperparameterError
from qml_source.simulators import DeviceRequest

DEFAULT_PORT = 29400
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Topology:
    """The hosts of a job, seen from one of them; `address` and `port` are where the first host keeps the meeting place.

    Worker r of the whole job is worker r mod `workers_per_host` of host r // `workers_per_host`.
    """

    hosts: tuple[str, ...]
    current: str
    workers_per_host: int
    threads_per_worker: int
    address: str
    port: int

    @property
    def host_rank(self) -> int:
        """This host's position among the hosts."""
        return self.hosts.index(self.current)

    @property
    def workers(self) -> int:
        """The workers of all hosts together."""
        return len(self.hosts) * self.workers_per_host


def read_topology(environment: Mapping[str, str], device: DeviceRequest, workers_per_host: int | None) -> Topology:
    """One worker a GPU, or a CPU on hosts without GPUs, unless the job names a number.

    Raises:
        HyperparameterError: More workers than GPUs are asked for, on a simulator that runs on them.
    """
    hosts = tuple(sorted(json.loads(environment.get("SM_HOSTS") or "[]"))) or ("localhost",)
    current = environment.get("SM_CURRENT_HOST") or hosts[0]
    gpus = int(environment.get("SM_NUM_GPUS") or 0)
    cpus = int(environment.get("SM_NUM_CPUS") or 0) or _usable_cpus()
    workers = workers_per_host or gpus or cpus
    if device.uses_gpu and workers > gpus:
        raise HyperparameterError(
            [f"workers_per_host = {workers} but a host has {gpus} GPUs: give at most one worker a GPU, or leave it out"]
        )
    several = len(hosts) > 1
    return Topology(
        hosts=hosts,
        current=current,
        workers_per_host=workers,
        threads_per_worker=max(cpus // workers, 1),
        address=environment.get("MASTER_ADDR") or (hosts[0] if several else "127.0.0.1"),
        port=int(environment.get("MASTER_PORT") or (DEFAULT_PORT if several else _free_port())),
    )


def _usable_cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
