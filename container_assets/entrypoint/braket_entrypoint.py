"""Starts a hybrid job inside its container, or inside the folder that stands for one.

The service (or the process runner of the embedded cloud) leaves a job's request in environment variables and files;
this program fetches the job's source, installs its requirements, starts its entry point and tells how it ended.
It needs Python 3.10 or newer with boto3 and nothing else. README.md beside it has the protocol for programs in other
languages.

Exit code: 0 exactly when the job succeeded. Otherwise <root>/output/failure holds "Type: message".
Environment: BRAKET_ML_ROOT is the folder with the layout of /opt/ml (default /opt/ml), BRAKET_VOLUME_BYTES the most
that the unpacked source may take (default: what is free on the disk).
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import traceback
import typing
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

RUN_PYTHON = "run-python"  # first argument of the child that runs Python job code; hyperparameters begin with "-"
SHOWN_LINES = 6
PIPE_PATIENCE_SECONDS = 2.0  # a process that outlives the program may hold its output open
SMALLEST_FILE = 4096  # a file takes at least a block: counting it so also bounds the number of files
LONGEST_PIECE = 1 << 16  # of a line without an end
LONGEST_EXTENDED_HEADER = 1 << 20


class JobError(Exception):
    """A failure with the text that becomes the job's failure reason, written as "Type: message"."""

    def __init__(self, reason: str, exit_code: int = 1) -> None:
        super().__init__(reason)
        self.exit_code = exit_code


@dataclass(frozen=True)
class Layout:
    """The files of one host, all below the root that the service mounts at /opt/ml."""

    root: Path
    rank: str = ""  # under mpirun every rank unpacks for itself, since all ranks of a host share the disk

    @property
    def _customer_code(self) -> Path:
        return self.root / "code" / "customer_code" / self.rank

    @property
    def failure(self) -> Path:
        """The file whose text becomes the failure reason."""
        return self.root / "output" / "failure"

    @property
    def success(self) -> Path:
        """The file that says that the job succeeded."""
        return self.root / "output" / "success"

    @property
    def original(self) -> Path:
        """Where the source is downloaded to."""
        return self._customer_code / "original"

    @property
    def extracted(self) -> Path:
        """Where the source is unpacked, the job's working directory and first on its import path."""
        return self._customer_code / "extracted"

    @property
    def finished(self) -> Path:
        """Written when the Python job code has returned, before its interpreter waits for its children."""
        return self._customer_code / "finished"


# Fetching and unpacking the source


@dataclass(frozen=True)
class Source:
    """What to run: the object that holds the code, the entry point in it, and how the object is packed."""

    uri: str
    entry_point: str
    compression: str


def requested_source(environment: Mapping[str, str]) -> Source:
    """Read the request from the environment, or from the hyperparameters where the environment lacks it."""
    fallback: Mapping[str, str] = json.loads(environment.get("SM_HPS") or "{}")

    def value(name: str) -> str:
        return environment.get(name) or fallback.get(name) or ""

    uri, entry_point = value("AMZN_BRAKET_SCRIPT_S3_URI"), value("AMZN_BRAKET_SCRIPT_ENTRY_POINT")
    if not uri or not entry_point:
        missing = "AMZN_BRAKET_SCRIPT_ENTRY_POINT" if uri else "AMZN_BRAKET_SCRIPT_S3_URI"
        raise JobError(f"ValueError: {missing} is not set. Give the job a scriptModeConfig with s3Uri and entryPoint")
    if entry_point.endswith(".py"):
        module = entry_point.removesuffix(".py").replace("/", ".")
        raise JobError(
            f"ValueError: entryPoint '{entry_point}' is a file name. Name the module instead, from the archive's top"
            f" folder on: '{module}', or a function in it: '{module}:main'"
        )
    return Source(uri, entry_point, value("AMZN_BRAKET_SCRIPT_COMPRESSION_TYPE").strip().upper())


def download(uri: str, folder: Path) -> Path:
    """Fetch the one object that `uri` names into `folder`."""
    import boto3  # noqa: PLC0415 - the child that runs the job's code never needs it
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    match = re.fullmatch(r"[sS]3://([^/]+)/(.*)", uri) or re.fullmatch(r"https://([^./]+)\.[sS]3\.[^/]+/(.*)", uri)
    if match is None:
        raise JobError(f"ValueError: s3Uri '{uri}' is not an S3 location. Write s3://BUCKET/KEY")
    bucket, key = match.groups()
    name = PurePosixPath(key).name
    if not key or key.endswith("/") or name in ("", ".", ".."):
        raise JobError(
            f"ValueError: s3Uri '{uri}' names a folder. Name one object: an archive such as source.tar.gz with"
            " compressionType GZIP, or a single module file"
        )
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / name
    try:
        boto3.client("s3").download_file(bucket, key, str(target))
    except (BotoCoreError, ClientError, OSError) as error:
        raise JobError(f"{type(error).__name__}: the code at {uri} could not be downloaded: {error}") from error
    return target


def safe_member_path(name: str) -> PurePosixPath:
    """Return the relative path that an archive member may be written to; raise JobError when it would escape."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
        raise JobError(f"UnsafeArchive: member {name!r} would be written outside the job's folder. Pack it again")
    return path


class _BoundedTarInfo(tarfile.TarInfo):
    """A header that refuses to be larger than any honest one: tarfile holds extended headers in memory whole."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _BoundedTarInfo:
        header = super().frombuf(buf, encoding, errors)
        extended = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
        if header.type in extended and header.size > LONGEST_EXTENDED_HEADER:
            raise JobError(f"UnsafeArchive: an extended header of {header.size} bytes. Pack the source again")
        return header


@dataclass(frozen=True)
class _Member:
    """One file or folder (`content` None) of an archive."""

    name: str
    content: IO[bytes] | None
    executable: bool = False


def _tar_members(archive: Path) -> Iterator[_Member]:
    with tarfile.open(archive, "r|*", tarinfo=_BoundedTarInfo) as bundle:
        for member in bundle:
            if not (member.isreg() or member.isdir()):
                kind = "link" if member.issym() or member.islnk() else "device or pipe"
                raise JobError(f"UnsafeArchive: member {member.name!r} is a {kind}. Pack only files and folders")
            content = bundle.extractfile(member) if member.isreg() else None
            yield _Member(member.name, content, bool(member.mode & 0o100))


def _zip_members(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as bundle:
        for member in bundle.infolist():
            file_type = (member.external_attr >> 16) & 0o170000
            if file_type not in (0, 0o100000, 0o040000):
                raise JobError(f"UnsafeArchive: member {member.filename!r} is not a file or folder")
            if member.is_dir():
                yield _Member(member.filename, None)
            else:
                with bundle.open(member) as content:
                    yield _Member(member.filename, content)


def _write_member(member: _Member, path: Path, left: int) -> int:
    """Write one member and return how many bytes may still be written; negative when it was cut short."""
    left -= SMALLEST_FILE
    if member.content is None:
        path.mkdir(parents=True, exist_ok=True)
        return left
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        while left >= 0 and (block := member.content.read(1 << 20)):
            left -= max(len(block) - SMALLEST_FILE, 0)
            if left >= 0:
                file.write(block)
    if member.executable:
        path.chmod(0o755)
    return left


def unpack(archive: Path, target: Path, limit: int) -> None:
    """Unpack files and folders into `target`, never outside it, never more than `limit` bytes.

    Raises JobError for a path that escapes, a link, a device, a pipe, too much content or a broken archive.
    """
    if archive.name.endswith((".tar.gz", ".tgz", ".tar")):
        members = _tar_members(archive)
    elif archive.name.endswith(".zip"):
        members = _zip_members(archive)
    else:
        raise JobError(f"ValueError: '{archive.name}' with compressionType GZIP must end in .tar.gz, .tgz or .zip")
    left = limit
    target.mkdir(parents=True, exist_ok=True)
    try:
        for member in members:
            left = _write_member(member, target / safe_member_path(member.name), left)
            if left < 0:
                raise JobError(
                    f"UnsafeArchive: the source unpacks to more than {limit} bytes. Make it smaller, move data into"
                    " an input channel, or raise volumeSizeInGb"
                )
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
        raise JobError(f"{type(error).__name__}: '{archive.name}' could not be unpacked: {error}") from error


def place_source(source: Source, layout: Layout, limit: int) -> None:
    """Download the job's code and put it into the folder that it runs in."""
    downloaded = download(source.uri, layout.original)
    layout.extracted.mkdir(parents=True, exist_ok=True)
    if source.compression in ("GZIP", "ZIP"):
        unpack(downloaded, layout.extracted, limit)
    else:
        shutil.copy(downloaded, layout.extracted)


# Running programs


class _Program:
    """A started process whose output is passed on as it comes, its last lines kept."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.tail: deque[str] = deque(maxlen=SHOWN_LINES)
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.pump = threading.Thread(target=self._pass_on, daemon=True)
        self.pump.start()

    def _pass_on(self) -> None:
        assert self.process.stdout is not None  # noqa: S101 - narrows a type
        while line := self.process.stdout.readline(LONGEST_PIECE):
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            if text := line.decode(errors="replace").strip():
                self.tail.append(text)


# Requirements


def install_requirements(folder: Path) -> None:
    """Install every requirements.txt below `folder`; a failed install fails the job with pip's last lines."""
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("requirements.txt") if path.is_file())
    print("Checking for Additional Requirements", flush=True)
    if files:
        options = [part for file in files for part in ("-r", file)]
        pip = [sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check", *options]
        install = _Program(pip, folder, os.environ)
        code = install.process.wait()
        install.pump.join()
        if code != 0:
            raise JobError(f"RequirementsError: pip could not install {', '.join(files)}: {' | '.join(install.tail)}")
        importlib.invalidate_caches()
    print("Additional Requirements Check Finished", flush=True)


# Starting, by kind of entry point


def read_hyperparameters(environment: Mapping[str, str]) -> dict[str, str]:
    """Read the hyperparameters, all strings; empty when the job has none."""
    file = environment.get("AMZN_BRAKET_HP_FILE")
    if not file:
        return {}
    values: dict[str, str] = json.loads(Path(file).read_text(encoding="utf-8"))
    return values


def _python(entry_point: str, _folder: Path) -> list[str]:
    return [sys.executable, str(Path(__file__).resolve()), RUN_PYTHON, entry_point]


def _julia(entry_point: str, folder: Path) -> list[str]:
    return ["julia", "--startup-file=no", str(_file_in(folder, entry_point))]


def _shell(entry_point: str, folder: Path) -> list[str]:
    return [shutil.which("bash") or "sh", str(_file_in(folder, entry_point))]


def _executable(entry_point: str, folder: Path) -> list[str]:
    file = _file_in(folder, entry_point)
    file.chmod(0o755)  # archives made reproducible carry no executable bit
    return [str(file)]


def _file_in(folder: Path, entry_point: str) -> Path:
    file = folder / safe_member_path(entry_point)
    if not file.is_file():
        found = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
        raise JobError(
            f"FileNotFoundError: entryPoint '{entry_point}' is not in the source, which holds at its top: {found}."
            " Name the path from the archive's top folder on"
        )
    return file


def _is_executable(entry_point: str, folder: Path) -> bool:
    file = folder / entry_point
    if "/" not in entry_point or not file.is_file():
        return False
    with file.open("rb") as content:
        return content.read(4).startswith((b"\x7fELF", b"#!"))


@dataclass(frozen=True)
class Kind:
    """One kind of entry point: how it is recognised and the command that starts it."""

    name: str
    matches: Callable[[str, Path], bool]
    command: Callable[[str, Path], list[str]]


START_TABLE: tuple[Kind, ...] = (
    Kind("function", lambda entry_point, _: ":" in entry_point, _python),
    Kind("julia", lambda entry_point, _: entry_point.endswith(".jl"), _julia),
    Kind("shell", lambda entry_point, _: entry_point.endswith(".sh"), _shell),
    Kind("executable", _is_executable, _executable),
    Kind("module", lambda _entry_point, _folder: True, _python),
)


def kind_of(entry_point: str, folder: Path) -> Kind:
    """Return the first row of START_TABLE that matches."""
    return next(kind for kind in START_TABLE if kind.matches(entry_point, folder))


# Watching the program and telling how it ended


def _killed_for_memory() -> int:
    """Return how many processes the kernel has ended for lack of memory, 0 where it does not say."""
    try:
        text = Path("/proc/vmstat").read_text(encoding="ascii")
    except OSError:
        return 0
    match = re.search(r"^oom_kill (\d+)$", text, re.MULTILINE)
    return int(match.group(1)) if match else 0


def ending_reason(return_code: int, tail: Sequence[str], kills_for_memory: int) -> str:
    """Say how a program ended that left no failure text itself; `return_code` is negative for a signal."""
    last = f" Its last lines: {' | '.join(tail)}" if tail else ""
    number = -return_code if return_code < 0 else return_code - 128
    if return_code >= 0 and number not in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT):
        return f"ProgramError: the program ended with exit code {return_code} and gave no reason.{last}"
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    if number == signal.SIGKILL and kills_for_memory:
        return f"OutOfMemory: the kernel ended the program for lack of memory ({name}). Use a larger instance.{last}"
    if number == signal.SIGKILL:
        return f"Killed: the program was ended by {name}, by another process or for lack of memory.{last}"
    if number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        return f"Terminated: the program was asked to end by {name}.{last}"
    return f"Crashed: the program was ended by {name}.{last}"


def run_program(command: Sequence[str], layout: Layout, environment: Mapping[str, str]) -> None:
    """Run the program to its end; raise JobError when it fails."""
    kills_before = _killed_for_memory()
    program: _Program | None = None

    def pass_on(number: int, _frame: object) -> None:
        if program is not None:
            program.process.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    try:
        program = _Program(command, layout.extracted, environment)
    except OSError as error:
        raise JobError(f"{type(error).__name__}: '{command[0]}' could not be started: {error}", 127) from error
    code = program.process.wait()
    program.pump.join(PIPE_PATIENCE_SECONDS)
    if code != 0:
        reason = ending_reason(code, list(program.tail), _killed_for_memory() - kills_before)
        raise JobError(reason, code if code > 0 else 128 - code)


def wrap_plain_results(folder: Path) -> None:
    """Give a results.json that is a plain JSON object the header that the SDK reads; leave every other as it is."""
    file = folder / "results.json"
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    except ValueError as error:
        raise JobError(f"ValueError: results.json is not JSON: {error}") from error
    if not isinstance(content, dict) or "braketSchemaHeader" in content:
        return
    header = {"name": "braket.jobs_data.persisted_job_data", "version": "1"}
    wrapped = {"braketSchemaHeader": header, "dataDictionary": content, "dataFormat": "plaintext"}
    file.write_text(json.dumps(wrapped), encoding="utf-8")


# The Python side: the child process in which job code runs


def converted(name: str, text: str, annotation: Any) -> Any:
    """Convert a hyperparameter to its parameter's annotation.

    Raises JobError naming the hyperparameter, its value and the type. Types that are not known take the string.
    """
    choices = [choice for choice in typing.get_args(annotation) if choice is not type(None)]
    is_union = typing.get_origin(annotation) is not None and type(None) in typing.get_args(annotation)
    if is_union and len(choices) == 1:
        return None if text in ("None", "null", "") else converted(name, text, choices[0])
    kind = typing.get_origin(annotation) or annotation
    try:
        if kind is bool:
            return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[text.strip().lower()]
        if kind in (list, dict, tuple):
            return kind(json.loads(text))
        if kind in (inspect.Parameter.empty, Any, str) or not callable(kind) or typing.get_origin(annotation):
            return text
        return kind(text)
    except (ValueError, TypeError, KeyError) as error:
        type_name = getattr(annotation, "__name__", str(annotation))
        raise JobError(f"ValueError: hyperparameter {name}={text!r} is not of type {type_name}") from error


def bound_arguments(function: Callable[..., Any], hyperparameters: Mapping[str, str]) -> dict[str, Any]:
    """Return the keyword arguments for an entry function, converted by annotation.

    A function without parameters is called without any and reads its hyperparameters itself. A function with
    parameters must accept every hyperparameter: the service's own entry point would otherwise silently call it with
    its defaults, so a mismatch is an error here.
    """
    signature = inspect.signature(function)
    if not signature.parameters or not hyperparameters:
        return {}
    try:
        signature.bind(**hyperparameters)
    except TypeError as error:
        raise JobError(
            f"TypeError: the hyperparameters {sorted(hyperparameters)} don't fit {function.__name__}{signature}:"
            f" {error}. Change either, add **others, or take no parameters and read get_hyperparameters()"
        ) from error
    try:
        annotations = typing.get_type_hints(function)
    except (NameError, TypeError):  # annotations that only a type checker can resolve
        annotations = {}
    return {name: converted(name, text, annotations.get(name, str)) for name, text in hyperparameters.items()}


def call_entry_point(entry_point: str, environment: Mapping[str, str]) -> None:
    """Run a Python module as __main__, or call a function in one."""
    module_name, _, function_name = entry_point.partition(":")
    if not function_name:
        runpy.run_module(module_name, run_name="__main__", alter_sys=True)
        return
    function = getattr(importlib.import_module(module_name), function_name)
    function(**bound_arguments(function, read_hyperparameters(environment)))


def _missing_module_hint(error: BaseException, entry_point: str, folder: Path) -> str:
    module = entry_point.partition(":")[0]
    name = getattr(error, "name", None) or module
    if not isinstance(error, ImportError) or not (module == name or module.startswith(f"{name}.")):
        return ""
    found = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
    return f". The entry point is '{entry_point}'; the source holds at its top: {found}"


def run_python(entry_point: str, layout: Layout) -> int:
    """Run Python job code in this process, write its failure text, return the exit code."""
    own_folder = str(Path(__file__).resolve().parent)
    sys.path[:] = [str(layout.extracted), *(entry for entry in sys.path if entry not in (own_folder, ""))]
    code: object = 1
    try:
        call_entry_point(entry_point, os.environ)
    except SystemExit as error:
        code = error.code or 0
        if code:
            record_failure(layout, f"SystemExit: {code}")
        if not isinstance(code, int):
            print(code, file=sys.stderr)
    except JobError as error:
        print(error, file=sys.stderr)
        record_failure(layout, str(error))
    except BaseException as error:  # noqa: BLE001 - job code may raise anything, and the reason must be kept
        traceback.print_exc()
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        record_failure(layout, text + _missing_module_hint(error, entry_point, layout.extracted))
    else:
        code = 0
    layout.finished.touch()
    sys.stdout.flush()
    return (code & 0xFF if isinstance(code, int) else 1) or int(layout.failure.exists())


# The whole


def record_failure(layout: Layout, reason: str) -> None:
    """Write the failure text unless one stands already: the first failure is the cause, later ones follow from it."""
    layout.failure.parent.mkdir(parents=True, exist_ok=True)
    try:
        with layout.failure.open("x", encoding="utf-8", errors="replace") as file:
            file.write(reason)
    except FileExistsError:
        return


def link_service_paths(root: Path) -> None:
    """Make <root>/../braket point to <root>, as the service does with /opt/braket and /opt/ml."""
    root.mkdir(parents=True, exist_ok=True)
    link = root.parent / "braket"
    try:
        link.symlink_to(root.name)
    except FileExistsError:
        return
    except OSError as error:
        print(f"{link} could not be made: {error}", file=sys.stderr)


def source_limit(layout: Layout) -> int:
    """Return how many bytes the unpacked source may take."""
    layout.root.mkdir(parents=True, exist_ok=True)
    return int(os.environ.get("BRAKET_VOLUME_BYTES") or shutil.disk_usage(layout.root).free)


def run_job(layout: Layout, arguments: Sequence[str]) -> None:
    """Do everything from the request to the end of the program; raise JobError when any of it fails."""
    print(f"Beginning Setup on {socket.gethostname()}, Python {sys.version.split()[0]}", flush=True)
    results = Path(os.environ.get("AMZN_BRAKET_JOB_RESULTS_DIR") or layout.root / "model")
    for folder in (layout.failure.parent, results):
        folder.mkdir(parents=True, exist_ok=True)
    source = requested_source(os.environ)
    place_source(source, layout, source_limit(layout))
    install_requirements(layout.extracted)
    kind = kind_of(source.entry_point, layout.extracted)
    command = [*kind.command(source.entry_point, layout.extracted), *arguments]
    environment = {"SM_OUTPUT_DIR": str(layout.failure.parent), **os.environ, "PYTHONUNBUFFERED": "1"}
    environment["AMZN_BRAKET_JOB_RESULTS_DIR"] = str(results)
    is_python = kind.name in ("module", "function")
    print("Running Code As Process", flush=True)
    run_program(command, layout, environment)
    if layout.failure.exists():
        raise JobError("ProgramError: the program wrote a failure text but ended with exit code 0")
    if not is_python:
        wrap_plain_results(results)
    print("Code Run Finished", flush=True)
    layout.success.touch()


def run_under_mpi(layout: Layout) -> int:
    """Run Python job code in this very process, since a child would lose its MPI context."""
    source = requested_source(os.environ)
    place_source(source, layout, source_limit(layout))
    os.chdir(layout.extracted)
    return run_python(source.entry_point, layout)


def main(arguments: Sequence[str]) -> int:
    """Run the job, or with RUN_PYTHON as first argument its Python code; return the exit code."""
    rank = os.environ.get("OMPI_COMM_WORLD_RANK")
    layout = Layout(Path(os.environ.get("BRAKET_ML_ROOT") or "/opt/ml"), f"rank-{rank}" if rank else "")
    if arguments and arguments[0] == RUN_PYTHON:
        sys.argv = [arguments[1], *arguments[2:]]
        return run_python(arguments[1], layout)
    try:
        link_service_paths(layout.root)
        if rank:
            return run_under_mpi(layout)
        run_job(layout, arguments)
    except JobError as failure:
        record_failure(layout, str(failure))
        print(layout.failure.read_text(encoding="utf-8", errors="replace"), file=sys.stderr, flush=True)
        return failure.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
