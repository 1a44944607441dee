"""The container entry point: started as the service starts it, with only the download replaced."""

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.containers.scripts import ASSETS, load_script

SCRIPT = ASSETS / "entrypoint" / "braket_entrypoint.py"
DRIVER = f"""
import importlib.util, pathlib, sys
spec = importlib.util.spec_from_file_location("braket_entrypoint", {str(SCRIPT)!r})
module = importlib.util.module_from_spec(spec)
sys.modules["braket_entrypoint"] = module
spec.loader.exec_module(module)
module.download = lambda uri, folder: pathlib.Path(uri)
sys.exit(module.main(sys.argv[1:]))
"""

entrypoint: Any = load_script(SCRIPT)


def pack(folder: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    archive = folder / "source.tar.gz"
    with tarfile.open(archive, "w:gz", format=tarfile.PAX_FORMAT) as bundle:
        for header, content in members:
            header.size = len(content)
            bundle.addfile(header, io.BytesIO(content))
    return archive


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type, header.linkname = kind, target
    return header


class Job:
    """What one start of the entry point left."""

    def __init__(self, folder: Path, files: Mapping[str, str], entry_point: str, more: Mapping[str, str]) -> None:
        self.root = folder / "opt" / "ml"
        archive = pack(folder, *((member(name), text.encode()) for name, text in files.items()))
        environment = {
            "PATH": os.environ["PATH"],
            "BRAKET_ML_ROOT": str(self.root),
            "AMZN_BRAKET_SCRIPT_S3_URI": str(archive),
            "AMZN_BRAKET_SCRIPT_ENTRY_POINT": entry_point,
            "AMZN_BRAKET_SCRIPT_COMPRESSION_TYPE": "GZIP",
            **more,
        }
        done = subprocess.run(
            [sys.executable, "-c", DRIVER], env=environment, check=False, capture_output=True, text=True, timeout=120
        )
        self.code, self.output = done.returncode, done.stdout + done.stderr
        failure = self.root / "output" / "failure"
        self.failure = failure.read_text() if failure.exists() else None
        if "OMPI_COMM_WORLD_RANK" in more:  # no rank knows that all have succeeded
            return
        assert (self.root / "output" / "success").exists() == (self.code == 0) == (self.failure is None), self.output

    def result(self, name: str) -> Any:
        return json.loads((self.root / "model" / name).read_text())


Start = Callable[..., Job]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    def start(files: Mapping[str, str] | str, entry_point: str = "job.main", **more: str) -> Job:
        return Job(tmp_path, {"job/main.py": files} if isinstance(files, str) else files, entry_point, more)

    return start


@pytest.mark.parametrize(
    ("code", "exit_code", "failure"),
    [
        ("raise ValueError('boom')", 1, "ValueError: boom"),
        ("class Odd(Exception): pass\nraise Odd", 1, "Odd"),
        ("import sys; sys.exit(3)", 3, "SystemExit: 3"),
        ("import sys; sys.exit(256)", 1, "SystemExit: 256"),
        ("import sys; sys.exit('no data')", 1, "SystemExit: no data"),
        ("raise KeyboardInterrupt", 1, "KeyboardInterrupt"),
        ("raise MemoryError('16 GiB')", 1, "MemoryError: 16 GiB"),
        ("def broken(:", 1, "SyntaxError: invalid syntax (main.py, line 1)"),
        ("import os; os._exit(7)", 7, "ProgramError: the program ended with exit code 7 and gave no reason."),
        (
            "import os; print('last', flush=True); os.abort()",
            134,
            "Crashed: the program was ended by SIGABRT. Its last lines: last",
        ),
        (
            "import os; os.kill(os.getpid(), 9)",
            137,
            "Killed: the program was ended by SIGKILL, by another process or for lack of memory.",
        ),
        ("import os; os.kill(os.getpid(), 11)", 139, "Crashed: the program was ended by SIGSEGV."),
        ("import os; os.kill(os.getpid(), 15)", 143, "Terminated: the program was asked to end by SIGTERM."),
        ("import sys; sys.exit()", 0, None),
        ("import sys; sys.exit(0)", 0, None),
        ("print('done')", 0, None),
    ],
)
def test_every_failure_has_a_reason_and_an_exit_code(start: Start, code: str, exit_code: int, failure: str) -> None:
    job = start(code)
    assert (job.code, job.failure) == (exit_code, failure), job.output


def test_lack_of_memory_is_told_apart_from_other_kills() -> None:
    assert entrypoint.ending_reason(-signal.SIGKILL, [], 1).startswith("OutOfMemory: ")
    assert entrypoint.ending_reason(137, [], 1).startswith("OutOfMemory: ")
    assert entrypoint.ending_reason(-signal.SIGKILL, [], 0).startswith("Killed: ")


def test_program_that_fails_at_once_fails_the_job(start: Start) -> None:
    job = start({"job/run.sh": "echo 'no graph' >&2; exit 4"}, "job/run.sh")
    assert (job.code, job.failure) == (
        4,
        "ProgramError: the program ended with exit code 4 and gave no reason. Its last lines: no graph",
    )


@pytest.mark.parametrize(
    ("entry_point", "kind"),
    [
        ("job.main", "module"),
        ("job", "module"),
        ("job.main:run", "function"),
        ("job/main.jl", "julia"),
        ("job/run.sh", "shell"),
        ("job/solve", "executable"),
        ("job/text", "module"),
    ],
)
def test_kind_of_entry_point(tmp_path: Path, entry_point: str, kind: str) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "solve").write_bytes(b"\x7fELF")
    (tmp_path / "job" / "text").write_text("text")
    assert entrypoint.kind_of(entry_point, tmp_path).name == kind


def test_julia_file_is_given_to_julia_with_the_hyperparameters(start: Start, tmp_path: Path) -> None:
    stand_in = tmp_path / "bin" / "julia"
    stand_in.parent.mkdir()
    stand_in.write_text('#!/bin/sh\necho "arguments: $*"\n')
    stand_in.chmod(0o755)
    job = start({"job/main.jl": ""}, "job/main.jl", PATH=f"{stand_in.parent}:{os.environ['PATH']}")
    assert f"arguments: --startup-file=no {job.root}/code/customer_code/extracted/job/main.jl" in job.output


def test_plain_results_of_another_language_get_the_header_and_python_results_stay(start: Start) -> None:
    write = 'echo "{\\"cost\\": 1.5}" > "$AMZN_BRAKET_JOB_RESULTS_DIR/results.json"'
    job = start({"job/run.sh": write}, "job/run.sh")
    assert job.result("results.json") == {
        "braketSchemaHeader": {"name": "braket.jobs_data.persisted_job_data", "version": "1"},
        "dataDictionary": {"cost": 1.5},
        "dataFormat": "plaintext",
    }


def test_executable_bit_of_the_archive_is_kept(tmp_path: Path) -> None:
    header = member("job/helper")
    header.mode = 0o755
    entrypoint.unpack(pack(tmp_path, (header, b""), (member("job/data"), b"")), tmp_path / "target", 1 << 20)
    assert os.access(tmp_path / "target" / "job" / "helper", os.X_OK)
    assert not (tmp_path / "target" / "job" / "data").stat().st_mode & 0o111


def test_results_that_are_not_json_fail_the_job(start: Start) -> None:
    job = start({"job/run.sh": 'echo "{cost" > "$AMZN_BRAKET_JOB_RESULTS_DIR/results.json"'}, "job/run.sh")
    assert job.failure is not None
    assert job.failure.startswith("ValueError: results.json is not JSON")


def test_spawned_children_find_the_code_of_a_module_entry_point(start: Start) -> None:
    code = (
        "import multiprocessing\ndef double(x): return 2 * x\nif __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(double, [21]))\n"
    )
    assert "[42]" in start(code).output


def test_running_under_mpi_stays_in_one_process_with_a_folder_for_each_rank(start: Start) -> None:
    job = start("import os; print('ran in', os.getcwd())", OMPI_COMM_WORLD_RANK="3", OMPI_COMM_WORLD_SIZE="4")
    assert f"ran in {job.root}/code/customer_code/rank-3/extracted" in job.output


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        (member("../escaped"), "outside the job's folder"),
        (member("job/../../escaped"), "outside the job's folder"),
        (member("/escaped"), "outside the job's folder"),
        (member("job\\..\\escaped"), "outside the job's folder"),
        (member("job/link", tarfile.SYMTYPE, "/etc"), "is a link"),
        (member("job/link", tarfile.LNKTYPE, "../../etc/passwd"), "is a link"),
        (member("job/device", tarfile.CHRTYPE), "is a device or pipe"),
        (member("job/device", tarfile.BLKTYPE), "is a device or pipe"),
        (member("job/pipe", tarfile.FIFOTYPE), "is a device or pipe"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_archive_tricks_fail_the_job_and_write_nothing_outside(
    tmp_path: Path, header: tarfile.TarInfo, complaint: str
) -> None:
    target = tmp_path / "deep" / "target"
    archive = pack(tmp_path, (header, b""))
    with pytest.raises(entrypoint.JobError, match=complaint):
        entrypoint.unpack(archive, target, 1 << 20)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["deep", "source.tar.gz", "target"]


def test_file_behind_a_link_of_the_same_archive_is_not_written(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    archive = pack(tmp_path, (member("job", tarfile.SYMTYPE, str(outside)), b""), (member("job/file"), b"data"))
    with pytest.raises(entrypoint.JobError, match="is a link"):
        entrypoint.unpack(archive, tmp_path / "target", 1 << 20)
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("suffix", ["tar.gz", "zip"])
def test_bomb_is_stopped_at_the_limit(tmp_path: Path, suffix: str) -> None:
    archive = tmp_path / f"source.{suffix}"
    content = bytes(50 << 20)
    if suffix == "zip":
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as bundle:
            bundle.writestr("job/zeros", content)
    else:
        pack(tmp_path, (member("job/zeros"), content))
    with pytest.raises(entrypoint.JobError, match="unpacks to more than 5000000 bytes"):
        entrypoint.unpack(archive, tmp_path / "target", 5_000_000)
    assert (tmp_path / "target" / "job" / "zeros").stat().st_size <= 5_000_000


def test_very_many_empty_files_are_stopped_too(tmp_path: Path) -> None:
    archive = pack(tmp_path, *((member(f"job/{number}"), b"") for number in range(300)))
    with pytest.raises(entrypoint.JobError, match="unpacks to more than"):
        entrypoint.unpack(archive, tmp_path / "target", 200 * 4096)


def test_huge_extended_header_is_refused_before_it_is_read(tmp_path: Path) -> None:
    header = member("x" * (2 << 20))
    with pytest.raises(entrypoint.JobError, match="extended header"):
        entrypoint.unpack(pack(tmp_path, (header, b"")), tmp_path / "target", 1 << 30)


def test_zip_with_a_link_or_an_escaping_name_is_refused(tmp_path: Path) -> None:
    for name, mode, complaint in (("link", 0o120777, "not a file or folder"), ("../out", 0o100644, "outside")):
        archive = tmp_path / "source.zip"
        information = zipfile.ZipInfo(name)
        information.external_attr = mode << 16
        with zipfile.ZipFile(archive, "w") as bundle:
            bundle.writestr(information, "/etc/passwd")
        with pytest.raises(entrypoint.JobError, match=complaint):
            entrypoint.unpack(archive, tmp_path / "target", 1 << 20)


@pytest.mark.parametrize("content", [b"", b"not an archive", b"\x1f\x8b\x08\x00broken"])
def test_broken_archive_fails_with_its_name(tmp_path: Path, content: bytes) -> None:
    archive = tmp_path / "source.tar.gz"
    archive.write_bytes(content)
    with pytest.raises(entrypoint.JobError, match=r"'source.tar.gz' could not be unpacked"):
        entrypoint.unpack(archive, tmp_path / "target", 1 << 20)


@given(st.text(alphabet="a./\\\0~ ", min_size=1, max_size=16))
def test_no_member_name_whatsoever_is_placed_outside(name: str) -> None:
    target = Path("/srv/target")
    try:
        path = target / entrypoint.safe_member_path(name)
    except entrypoint.JobError:
        return
    assert Path(os.path.normpath(path)).is_relative_to(target)


@pytest.mark.parametrize(
    ("text", "annotation", "value"),
    [
        ("3", int, 3),
        ("1e-2", float, 0.01),
        ("false", bool, False),
        ("True", bool, True),
        ("x", str, "x"),
        ("[1, 2]", list[int], [1, 2]),
        ('{"a": 1}', dict, {"a": 1}),
        ("3", int | None, 3),
        ("None", int | None, None),
        ("3", Any, "3"),
    ],
)
def test_hyperparameters_are_converted_by_annotation(text: str, annotation: Any, value: object) -> None:
    converted = entrypoint.converted("name", text, annotation)
    assert converted == value
    assert type(converted) is type(value)


@pytest.mark.parametrize(("text", "annotation"), [("x", int), ("2", bool), ("[", list), ("x", float | None)])
def test_hyperparameter_of_another_type_is_an_error(text: str, annotation: Any) -> None:
    with pytest.raises(entrypoint.JobError, match="hyperparameter name="):
        entrypoint.converted("name", text, annotation)


def test_data_parallel_job_is_started_once_on_a_host_with_gpus(start: Start, tmp_path: Path) -> None:
    hyperparameters = tmp_path / "hyperparameters.json"
    hyperparameters.write_text(json.dumps({"sagemaker_distributed_dataparallel_enabled": "true"}))
    code = "import os; print('started', sorted({'RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'MASTER_ADDR'} & set(os.environ)))"
    hosts = {"SM_HOSTS": '["algo-1","algo-2"]', "SM_CURRENT_HOST": "algo-2", "SM_NUM_GPUS": "4"}
    job = start(code, AMZN_BRAKET_HP_FILE=str(hyperparameters), **hosts)
    assert [line for line in job.output.splitlines() if "started" in line] == ["started []"]


def test_entry_point_needs_only_the_standard_library_and_boto3() -> None:
    import ast

    tree = ast.parse(SCRIPT.read_text())
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported - set(sys.stdlib_module_names) == {"boto3", "botocore"}
