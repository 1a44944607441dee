"""A container engine for tests: the one that runs, else one of our own in a temporary folder, ended with the tests."""

import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hybridjobs.local.runners.engine import EngineUnavailableError, connect
from tests.debian_packages import NotInstallableError, install_package

_SYSTEM_PROGRAMS = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
_START_SECONDS = 30
_STORAGE_DRIVERS = ("overlay2", "vfs")  # the second needs no support of the file system, only more space


class NoEngineError(Exception):
    """No container engine can be had on this machine, with the reason."""


@contextmanager
def container_engine() -> Iterator[dict[str, str]]:
    """Yield the variables that lead a client to an engine; NoEngineError where none can be had."""
    try:
        connect().close()
    except EngineUnavailableError:
        pass
    else:
        yield {}
        return
    program = _engine_program()
    folder = Path(tempfile.mkdtemp(prefix="engine-"))  # short, since a socket's path may have 107 characters
    process = None
    try:
        process = _start(program, folder)
        yield {"DOCKER_HOST": _address(folder)}
    finally:
        if process is not None:
            _end(process)
        _unmount_below(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _engine_program() -> str:
    if platform.system() != "Linux" or os.geteuid() != 0:
        raise NoEngineError("no container engine runs, and only root on Linux can start one")
    program = shutil.which("dockerd", path=_SYSTEM_PROGRAMS)
    if program is None:
        try:
            install_package("docker.io")
        except NotInstallableError as error:
            raise NoEngineError(f"no container engine runs, and {error}") from error
        program = shutil.which("dockerd", path=_SYSTEM_PROGRAMS)
    if program is None:
        raise NoEngineError("no container engine runs, and the package docker.io brought none")
    return program


def _address(folder: Path) -> str:
    return f"unix://{folder}/docker.sock"


def _start(program: str, folder: Path) -> "subprocess.Popen[bytes]":
    for driver in _STORAGE_DRIVERS:
        log = folder / f"{driver}.log"
        process = _launch(program, folder, driver, log)
        deadline = time.monotonic() + _START_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            try:
                connect({"DOCKER_HOST": _address(folder)}).close()
            except EngineUnavailableError:
                time.sleep(0.1)
            else:
                return process
        _end(process)
    raise NoEngineError(f"no container engine runs, and none could be started: {log.read_text()[-500:]}")


def _launch(program: str, folder: Path, driver: str, log: Path) -> "subprocess.Popen[bytes]":
    with_parent = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
    command: Sequence[str] = [
        *with_parent,
        program,
        f"--data-root={folder}/data",
        f"--exec-root={folder}/exec",
        f"--pidfile={folder}/pid",
        f"--host={_address(folder)}",
        f"--storage-driver={driver}",
        "--iptables=false",
        "--ip6tables=false",
        "--bridge=none",
    ]
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            env={**os.environ, "PATH": _SYSTEM_PROGRAMS},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _unmount_below(folder: Path) -> None:
    """Unmount what the engine left mounted, such as its network namespace, the deepest first."""
    points = [line.split()[1] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    for point in sorted((point for point in points if point.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", "--lazy", point], check=False)
