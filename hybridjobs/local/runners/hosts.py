"""One host of a job as a process tree with a folder of its own."""

import contextlib
import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from hybridjobs.local.environment import CACHE_FOLDER
from hybridjobs.local.processes import MARKER
from hybridjobs.local.runners import supervisor
from hybridjobs.local.runners.base import JobRun
from hybridjobs.local.runners.contract import (
    PROGRAM,
    container_environment,
    host_names,
    user_arguments,
    write_configuration,
)
from hybridjobs.local.runners.failures import ClientFaultError, HostEnd
from hybridjobs.local.runners.job import HostPlan
from hybridjobs.local.runners.logs import LONGEST_EVENT_BYTES, LogStream
from hybridjobs.local.runners.machine import namespace_command, with_own_host_names
from hybridjobs.local.runners.python_overlay import create_python
from hybridjobs.local.runners.storage import used_bytes

_LONGEST_FAILURE_BYTES = 64 * 1024
# multiprocessing puts sockets there, whose paths may have 107 bytes, of which it needs about 32.
_LONGEST_TEMPORARY_PATH = 70
_PATIENCE_SECONDS = 10.0
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# How pip reaches its packages is the machine's business, which the job inherits; nothing else of it.
_INHERITED_PREFIX = "PIP_"
# MARKER makes the job's processes findable by whoever started the embedded cloud; plans and compiled kernels that a job
# leaves in the cache folder serve the jobs after it.
_INHERITED = (MARKER, CACHE_FOLDER, "LANG", "LC_ALL", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")


@dataclass(frozen=True)
class _Report:
    return_code: int | None = None
    leftovers: tuple[str, ...] = ()
    running: tuple[str, ...] = ()


def _read_report(file: Path) -> _Report:
    """Read what the supervisor wrote; an empty report when it was ended before it could write."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return _Report()
    return _Report(content["return_code"], tuple(content["leftovers"]), tuple(content["running"]))


def clean_environment(run: JobRun, plan: HostPlan, python: Path, temporary: Path) -> dict[str, str]:
    """Return a job's whole environment: the contract, the essentials of a process, and how pip reaches packages."""
    path = [str(python.parent), *os.environ.get("PATH", os.defpath).split(os.pathsep)]
    inherited = {
        name: value for name, value in os.environ.items() if name in _INHERITED or name.startswith(_INHERITED_PREFIX)
    }
    return {
        "LANG": "C.UTF-8",
        **inherited,
        "PYTHONUNBUFFERED": "1",
        **dict.fromkeys(_THREAD_VARIABLES, str(plan.resources.cpus)),
        **container_environment(run, plan.layout, plan.name, plan.resources),
        **plan.more_environment,
        # Last: the variables for AWS clients may come with the search path and folders of whoever starts jobs.
        "PATH": os.pathsep.join(path),
        "HOME": str(plan.layout.home),
        "TMPDIR": str(temporary),
    }


def _write_names(names: Sequence[str], file: Path) -> Path:
    """Write an /etc/hosts in which every host of the job is this machine, beside what this machine's own says."""
    known = Path("/etc/hosts").read_text(encoding="utf-8") if Path("/etc/hosts").exists() else ""
    file.write_text(f"{known.rstrip()}\n127.0.0.1 {' '.join(names)}\n", encoding="utf-8")
    return file


def end_processes_marked(ml_root: Path) -> None:
    """Kill every process whose environment names this host's folder: the net below a supervisor that was killed."""
    for _ in range(20):
        found = False
        for process in psutil.process_iter():
            try:
                if process.environ().get("BRAKET_ML_ROOT") == str(ml_root) and process.status() != psutil.STATUS_ZOMBIE:
                    found = True
                    process.kill()
            except psutil.Error:
                continue
        if not found:
            return


class Host:
    """A prepared host: `start` runs the entry point, `ended` is called with its end, `stop` ends all of it."""

    def __init__(
        self,
        run: JobRun,
        plan: HostPlan,
        log: LogStream,
        grace_seconds: float,
        python: Path,
        entry_point_script: Path,
    ) -> None:
        self.plan = plan
        self.running_when_stopped: Sequence[str] = ()
        self._run = run
        self._log = log
        self._grace = grace_seconds
        self._report = plan.layout.root / "supervisor.json"
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._stopped = False
        self._over = threading.Event()
        self._python = python  # the one whose packages the job sees; its own, once it is prepared
        self._entry_point_script = entry_point_script
        self._names_file: Path | None = None
        self._short_temporary = plan.layout.temporary

    def prepare(self) -> None:
        """Make the folders, the configuration files, the interpreter and the entry point program."""
        layout = self.plan.layout
        layout.create()
        write_configuration(self._run, layout, self.plan.name, self.plan.resources)
        if len(str(layout.temporary)) > _LONGEST_TEMPORARY_PATH:
            self._short_temporary = Path(tempfile.mkdtemp(prefix="job-")) / "t"
            self._short_temporary.symlink_to(layout.temporary)
        self._python = create_python(self._python, layout.root / "python")
        shutil.copyfile(self._entry_point_script, layout.code / PROGRAM)
        names = host_names(self._run.request)
        if len(names) > 1 and namespace_command():
            self._names_file = _write_names(names, layout.root / "hosts")

    def start(self, ended: Callable[[HostEnd], None]) -> None:
        """Start the entry point; one of several hosts in a namespace in which their names resolve."""
        layout = self.plan.layout
        arguments = user_arguments(self._run.request)
        program = [str(self._python), str(layout.code / PROGRAM), *arguments]
        self._announce(program)
        if self._names_file is not None:
            program = with_own_host_names(self._names_file, program)
        command = [sys.executable, "-I", str(Path(supervisor.__file__)), str(self._report), str(self._grace), *program]
        environment = clean_environment(self._run, self.plan, self._python, self._short_temporary)
        with self._lock:
            if self._stopped:
                self._over.set()
                ended(HostEnd(self.plan.name, None, None))
                return
            self._supervisor = self._open(command, environment)
        pump = threading.Thread(target=self._pump, args=(self._supervisor,), daemon=True)
        pump.start()
        threading.Thread(target=self._watch, args=(self._supervisor, pump, ended), daemon=True).start()

    def used_bytes(self) -> int:
        """Return how much disk the host's folder takes."""
        return used_bytes(self.plan.layout.root)

    def stop(self) -> None:
        """End the whole tree; returns when it is gone."""
        with self._lock:
            self._stopped = True
            process = self._supervisor
        if process is None:
            return
        if process.stdin is not None:
            with self._lock, contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        if not self._over.wait(self._grace + _PATIENCE_SECONDS):
            process.kill()
            self._over.wait(_PATIENCE_SECONDS)

    def _open(self, command: Sequence[str], environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        try:
            return subprocess.Popen(
                command,
                cwd=self.plan.layout.code,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            if error.errno != errno.E2BIG:
                raise
            size = max(len(value) for value in environment.values())
            raise ClientFaultError(
                f"the hyperParameters are passed on in variables too, the longest of {size} bytes, more than Linux"
                " takes. Move large values into an input channel"
            ) from error

    def clean_up(self) -> None:
        """Remove what lies outside the host's folder; call after the end."""
        if self._short_temporary != self.plan.layout.temporary:
            shutil.rmtree(self._short_temporary.parent, ignore_errors=True)

    def _announce(self, program: Sequence[str]) -> None:
        """Log what the training toolkit logs before it starts the program; log readers look for these lines."""
        self._log.write("Invoking script with the following command:")
        self._log.write(" ".join(program))
        self._log.write(f'"user_entry_point": "{PROGRAM}"')

    def _pump(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None  # noqa: S101 - narrows a type
        while line := process.stdout.readline(LONGEST_EVENT_BYTES):
            self._log.write(line.decode(errors="replace").rstrip("\r\n"))

    def _watch(
        self, process: "subprocess.Popen[bytes]", pump: threading.Thread, ended: Callable[[HostEnd], None]
    ) -> None:
        process.wait()
        report = _read_report(self._report)
        if report.return_code is None:
            end_processes_marked(self.plan.layout.ml)
        pump.join(_PATIENCE_SECONDS)
        if process.stdout is not None and not pump.is_alive():
            process.stdout.close()
        end = HostEnd(self.plan.name, report.return_code, self._read_failure(), report.leftovers)
        self.running_when_stopped = report.running
        if end.succeeded:
            self._log.write("Reporting training SUCCESS")
        self._over.set()
        ended(end)

    def _read_failure(self) -> str | None:
        failure = self.plan.layout.failure
        if not failure.is_file():  # a pipe of that name would block
            return None
        with failure.open("rb") as file:
            return file.read(_LONGEST_FAILURE_BYTES).decode(errors="replace")
