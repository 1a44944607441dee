"""Installs what tests need of Debian: only as root, where apt-get is, and one process at a time."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

_LOCK = Path(__file__).parents[1] / ".cache" / "apt.lock"
_SECONDS = 300


class NotInstallableError(Exception):
    """The package can't be installed here; the message says why."""


def install_package(name: str) -> None:
    """Install a Debian package that is missing.

    Raises NotInstallableError: there is no apt-get, no right to use it, or it failed.
    """
    if shutil.which("apt-get") is None:
        raise NotInstallableError(f"there is no apt-get to install {name} with")
    if os.geteuid() != 0:
        raise NotInstallableError(f"only root can install {name}: apt-get install {name}")
    # Other programs of the machine may be installing too.
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", f"-oDPkg::Lock::Timeout={_SECONDS}", name]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    output = ""
    _LOCK.parent.mkdir(exist_ok=True)
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # A new machine knows no packages, or old ones, until the lists are read.
        for command in (install, ["apt-get", "update", "-q"], install):
            try:
                done = subprocess.run(
                    command, env=environment, check=False, capture_output=True, text=True, timeout=2 * _SECONDS
                )
            except subprocess.TimeoutExpired as error:
                raise NotInstallableError(f"{name} was not installed within {error.timeout:.0f} s") from error
            output = done.stdout + done.stderr
            if command is install and done.returncode == 0:
                return
    raise NotInstallableError(f"{name} could not be installed: {output[-500:]}")
