"""Plans on disk: found again, never half-written, never trusted when damaged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

pytest.importorskip("numba", reason="the compiled sweeps of the contraction simulator need numba")

import contraction.maxcut_plan as maxcut_module
from contraction import maxcut_qaoa, plan_cache
from contraction.cache_folder import FOLDER_VARIABLE

ANGLES = [0.3, 0.5], [0.4, 0.2]
SOURCES = Path(__file__).parents[3] / "job_sources"


def graph() -> nx.Graph:
    return nx.gnm_random_graph(30, 45, seed=1967)


def test_a_second_run_takes_the_plan_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    value, gradient = maxcut_qaoa(graph(), 2, plan_folder=tmp_path).value_and_gradient(*ANGLES)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("an order was searched again")

    monkeypatch.setattr(maxcut_module, "find_order", refuse)
    again, same_gradient = maxcut_qaoa(graph(), 2, plan_folder=tmp_path).value_and_gradient(*ANGLES)
    assert again == value
    np.testing.assert_array_equal(same_gradient, gradient)


def test_another_structure_or_planner_has_another_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maxcut_qaoa(graph(), 2, plan_folder=tmp_path)
    maxcut_qaoa(graph(), 1, plan_folder=tmp_path)
    monkeypatch.setattr(plan_cache, "PLANNER_VERSION", plan_cache.PLANNER_VERSION + 1)
    maxcut_qaoa(graph(), 2, plan_folder=tmp_path)
    assert len(list(tmp_path.glob("*.npz"))) == 3


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 not a zip file", None])
def test_a_damaged_plan_is_made_again(tmp_path: Path, damage: bytes | None) -> None:
    value = maxcut_qaoa(graph(), 2, plan_folder=tmp_path).value(*ANGLES)
    (path,) = tmp_path.glob("*.npz")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    assert maxcut_qaoa(graph(), 2, plan_folder=tmp_path).value(*ANGLES) == value
    assert len(path.read_bytes()) == len(whole)


def test_a_folder_that_cannot_be_written_costs_no_result(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    assert maxcut_qaoa(graph(), 2, plan_folder=blocked / "plans").value(*ANGLES) < 0


def test_processes_that_share_a_folder_do_not_disturb_each_other(tmp_path: Path) -> None:
    program = f"""
import sys; sys.path.insert(0, {str(SOURCES)!r})
import networkx as nx
from pathlib import Path
from contraction import maxcut_qaoa
for repeat in range(6):
    for seed in range(4):
        graph = nx.gnm_random_graph(20, 30, seed=seed)
        print(seed, maxcut_qaoa(graph, 2, plan_folder=Path({str(tmp_path)!r})).value([0.3, 0.5], [0.4, 0.2]))
        if repeat % 2 and seed == 3:
            for path in Path({str(tmp_path)!r}).glob("*.npz"):
                path.unlink(missing_ok=True)
"""
    running = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    outputs = []
    for process in running:
        output, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors.decode()
        assert b"can't be read" not in errors
        outputs.append(set(output.decode().splitlines()))
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) == 4
    assert not list(tmp_path.glob("*.tmp"))


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert plan_cache.default_folder() == tmp_path / "contraction-plans"
    monkeypatch.setenv(FOLDER_VARIABLE, "")
    assert plan_cache.default_folder() is None
