"""Compiled kernels on disk: found by another process in another folder, never trusted when damaged."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numba", reason="kernels are compiled with numba")

from contraction import kernel_cache
from contraction.cache_folder import FOLDER_VARIABLE
from contraction.compiled import compiled

SOURCES = Path(__file__).parents[3] / "job_sources"

# One small kernel is compiled, or found; the last line says which.
PROGRAM = """
from contraction.block_kernels import compress
print(compress(0b110101, 0b101110), compress.stats.cache_hits[compress.signatures[0]])
"""


def test_a_job_finds_the_kernels_of_another_whose_archive_lay_elsewhere(tmp_path: Path) -> None:
    answers = []
    for number in (1, 2):
        library = tmp_path / f"job-{number}"
        shutil.copytree(SOURCES / "contraction", library / "contraction", ignore=shutil.ignore_patterns("__pycache__"))
        environment = {**os.environ, "PYTHONPATH": str(library), FOLDER_VARIABLE: str(tmp_path / "cache")}
        command = [sys.executable, "-c", PROGRAM]
        answers.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert [answer.split() for answer in answers] == [["10", "0"], ["10", "1"]]


def compile_and_call() -> bool:
    """Compile a function anew, or find it; whether it was found."""

    def twice(number: int) -> int:
        return number + number

    kernel: Any = compiled(twice)
    assert kernel(21) == 42
    return bool(kernel.stats.cache_hits)


def test_a_damaged_kernel_or_one_of_other_sources_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert [compile_and_call(), compile_and_call()] == [False, True]
    (file,) = tmp_path.glob("contraction-kernels/*.kernel")
    whole = file.read_bytes()
    for damage in (b"", whole[: len(whole) // 2], whole[:-1] + bytes([whole[-1] ^ 1])):
        file.write_bytes(damage)
        assert not compile_and_call()
        assert "damaged" in caplog.text
        caplog.clear()
        assert compile_and_call()
    monkeypatch.setattr(kernel_cache, "_sources_digest", lambda: "other sources")
    assert not compile_and_call()
    assert not list(tmp_path.rglob("*.tmp"))


def test_without_a_folder_for_it_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, "")
    assert [compile_and_call(), compile_and_call()] == [False, False]
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "file"))
    assert not compile_and_call()
    assert "can't be kept" in caplog.text
