"""What this machine has and allows: processors, GPUs, ports, and host names for jobs on several hosts."""

import os
import shutil
import socket
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

_MAP_NAMES = 'mount --bind "$0" /etc/hosts && exec "$@"'


@cache
def namespace_command() -> tuple[str, ...]:
    """Return the command prefix that gives a program its own /etc/hosts, () where the machine allows none."""
    candidates: list[tuple[str, ...]] = [("unshare", "--user", "--map-root-user", "--mount", "--")]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        candidates.insert(0, ("unshare", "--mount", "--"))
    for candidate in candidates:
        if not shutil.which(candidate[0]):
            return ()
        probe = [*candidate, "sh", "-c", _MAP_NAMES, "/etc/hosts", "true"]
        if subprocess.run(probe, check=False, capture_output=True).returncode == 0:
            return candidate
    return ()


def with_own_host_names(names_file: Path, program: Sequence[str]) -> list[str]:
    """Return the command that runs `program` with `names_file` as its /etc/hosts; needs namespace_command."""
    return [*namespace_command(), "sh", "-c", _MAP_NAMES, str(names_file), *program]


def free_port() -> int:
    """Return a TCP port that nothing listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def gpu_count() -> int:
    """Return how many NVIDIA GPUs this machine has."""
    try:
        return len(list(Path("/proc/driver/nvidia/gpus").iterdir()))
    except OSError:
        return 0


def cpu_count() -> int:
    """Return how many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
