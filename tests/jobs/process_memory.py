"""How much memory a test process takes between two points, whatever the tests before it took."""

from pathlib import Path


def forget_peak() -> int:
    """Let the peak begin anew at what is held now, in KiB."""
    # The peak that getrusage tells is never forgotten, and a child process starts with its parent's.
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> int:
    """The most that this process held since the last forget_peak, in KiB."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmHWM:")).split()[1])
