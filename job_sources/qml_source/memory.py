"""How much memory this process may still take, and how much it has taken."""

import os
import resource
import sys
from pathlib import Path

# A container's limit, in the current and the older place.
_LIMITS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def available_bytes() -> int:
    """What the machine has free and the container's limit leaves, whichever is less."""
    free = [_machine_bytes()]
    for limit_file, usage_file in _LIMITS:
        try:
            free.append(int(Path(limit_file).read_text()) - int(Path(usage_file).read_text()))
        except (OSError, ValueError):  # no such limit, or "max"
            continue
    return max(min(free), 0)


def _machine_bytes() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def peak_megabytes() -> float:
    """The most memory that this process has held at once, in 10^6 bytes."""
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    # Not getrusage: its peak survives the start of a program, so a small job of a large parent would tell the parent's.
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmHWM:")).split()[1]) * 1024 / 1e6


def readable(size: float) -> str:
    """A number of bytes with a unit."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} PiB"
