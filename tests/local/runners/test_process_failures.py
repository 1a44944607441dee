"""A failed job says why: the reason is the first thing that its owner reads."""

from dataclasses import replace

import pytest

from .conftest import BUCKET, Workbench


def reason(workbench: Workbench, code: str, entry_point: str = "job.main") -> str:
    ended = workbench.complete({"job/__init__.py": "", "job/main.py": code}, entry_point)
    assert workbench.keys(f"{ended.run.job_name}/data") == set(), "a failed job leaves no results"
    assert "UPLOADING_RESULTS" not in ended.phases
    return ended.reason


def test_exception_is_the_reason_in_the_services_form(workbench: Workbench) -> None:
    assert reason(workbench, "raise ValueError('boom')") == "AlgorithmError: ValueError: boom, exit code: 1"


def test_import_that_fails_is_the_reason_and_the_log_has_the_traceback(workbench: Workbench) -> None:
    ended = workbench.complete({"job/main.py": "import nowhere"})
    assert ended.reason == "AlgorithmError: ModuleNotFoundError: No module named 'nowhere', exit code: 1"
    assert "Traceback (most recent call last):" in ended.log.splitlines()


def test_kill_from_outside_is_the_reason_with_the_signals_exit_code(workbench: Workbench) -> None:
    text = reason(workbench, "import os; os.kill(os.getpid(), 9)")
    assert text.startswith("AlgorithmError: Killed: the program was ended by SIGKILL")
    assert text.endswith(", exit code: 137")


def test_entry_point_process_that_is_killed_itself_is_told_apart(workbench: Workbench) -> None:
    text = reason(workbench, "import os; os.kill(os.getppid(), 9)")
    assert text.startswith("AlgorithmError: Killed: the job's main process was ended by SIGKILL")


def test_reason_is_cut_to_what_the_service_keeps_and_still_ends_with_the_exit_code(workbench: Workbench) -> None:
    text = reason(workbench, "raise ValueError('x' * 5000)")
    assert len(text) == 1024
    assert text.startswith("AlgorithmError: ValueError: xxx")
    assert text.endswith(", exit code: 1")


def test_missing_top_folder_is_explained(workbench: Workbench) -> None:
    text = reason(workbench, "", "main")
    assert "No module named main" in text
    assert "the source holds at its top: job" in text


def test_folder_as_source_and_file_name_as_entry_point_are_explained(workbench: Workbench) -> None:
    workbench.s3.put_object(Bucket=BUCKET, Key="scripts/job.py", Body=b"")
    script = {"entryPoint": "job", "s3Uri": f"s3://{BUCKET}/scripts/"}
    ended = workbench.complete({}, algorithmSpecification={"scriptModeConfig": script})
    assert "names a folder. Name one object" in ended.reason
    ended = workbench.complete({"job/main.py": ""}, "job/main.py")
    assert "Name the module instead, from the archive's top folder on: 'job.main'" in ended.reason


def test_missing_source_object_and_missing_function_fail_with_their_names(workbench: Workbench) -> None:
    script = {"entryPoint": "job", "s3Uri": f"s3://{BUCKET}/nowhere.tar.gz", "compressionType": "GZIP"}
    ended = workbench.complete({}, algorithmSpecification={"scriptModeConfig": script})
    assert f"the code at s3://{BUCKET}/nowhere.tar.gz could not be downloaded" in ended.reason
    assert "has no attribute 'absent'" in reason(workbench, "", "job.main:absent")


def test_interpreter_that_is_not_installed_is_named(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    ended = workbench.complete({"job/main.jl": ""}, "job/main.jl")
    assert "'julia' could not be started" in ended.reason


def test_failing_program_of_another_language_gives_its_last_lines_or_its_own_failure_text(workbench: Workbench) -> None:
    ended = workbench.complete({"job/run.sh": "echo 'no graph given' >&2; exit 4"}, "job/run.sh")
    assert "exit code 4" in ended.reason
    assert "no graph given" in ended.reason
    ended = workbench.complete({"job/run.sh": 'printf "GraphError: no edges" > "$SM_OUTPUT_DIR/failure"'}, "job/run.sh")
    assert ended.reason == "AlgorithmError: GraphError: no edges, exit code: 1"


def test_job_that_fills_its_volume_is_ended(workbench: Workbench) -> None:
    code = "import os, time\nopen('big', 'wb').write(os.urandom(20 << 20))\ntime.sleep(600)\n"
    settings = replace(workbench.settings, largest_volume_bytes=10 << 20)
    ended = workbench.complete({"job/main.py": code}, settings=settings)
    assert ended.reason.startswith("ClientError: the job's files take more than its volume")


def test_unreachable_storage_fails_the_job_and_not_the_runner(workbench: Workbench) -> None:
    workbench.environment = {**workbench.environment, "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}
    ended = workbench.complete({"job/main.py": ""})
    assert "could not be downloaded" in ended.reason
