"""Parallel training is the same training: on 1, 2 and 4 workers connected by gloo, whatever divides or doesn't."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.qml.job_run import DEFAULT_QUBIT, LIGHTNING, NEEDS_TORCH, SOURCE, Host

pytest.importorskip("torch", reason=NEEDS_TORCH)
# One process makes the trainings that all of these tests look at.

# Samples and batch size: both divide by 4; neither does; a last batch of one sample, which leaves workers without any.
SIZES = {"divisible": ("32", "8"), "indivisible": ("35", "9"), "single-sample-batch": ("17", "4")}
COMBINATIONS = [*(("default.qubit", size) for size in SIZES), ("lightning.qubit", "indivisible")]
DEVICES = {"default.qubit": DEFAULT_QUBIT, "lightning.qubit": LIGHTNING}
TRAJECTORY = ("training_loss", "training_accuracy", "held_out_loss", "held_out_accuracy")


def run_cases(cases: list[dict[str, Any]]) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": f"{SOURCE.parent}{os.pathsep}{SOURCE.parents[1]}",
        "OMP_NUM_THREADS": "1",
    }
    script = Path(__file__).with_name("forked_ranks.py")
    lines = "\n".join(map(json.dumps, cases))
    done = subprocess.run(
        [sys.executable, str(script)], input=lines, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def case(folder: Path, workers: int, device: str, *, stop_after: int | None = None, **settings: str) -> dict[str, Any]:
    host = Host(folder)
    variables = host.prepare({"epochs": "3", **settings}, device=device)
    return {"folder": str(folder), "workers": workers, "stop_after": stop_after, "variables": variables}


def trajectory(folder: Path, workers: int) -> list[float]:
    result = json.loads((folder / f"trajectory-{workers}.json").read_text())
    assert result["workers"] == workers
    return [value for name in TRAJECTORY for value in result[name]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every combination of device, sizes and number of workers, and a training that moves between them."""
    root = tmp_path_factory.mktemp("parallel")
    cases = [
        case(root / name / size / str(workers), workers, DEVICES[name], ndata=SIZES[size][0], batch_size=SIZES[size][1])
        for name, size in COMBINATIONS
        for workers in (1, 2, 4)
    ]
    moving = {"ndata": "35", "batch_size": "9"}
    # One checkpoint folder: 2 workers stop in the second epoch, 4 go on and stop, 1 finishes.
    cases += [
        case(root / "moving", 2, DEFAULT_QUBIT, stop_after=6, **moving),
        case(root / "moving", 4, DEFAULT_QUBIT, stop_after=4, **moving),
        case(root / "moving", 1, DEFAULT_QUBIT, **moving),
    ]
    run_cases(cases)
    return root


@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize(("device", "size"), COMBINATIONS)
def test_trajectory_is_that_of_a_single_process(trained: Path, device: str, size: str, workers: int) -> None:
    alone = trajectory(trained / device / size / "1", 1)
    together = trajectory(trained / device / size / str(workers), workers)
    assert together == pytest.approx(alone, abs=1e-9)


@pytest.mark.parametrize("size", SIZES)
def test_weights_at_the_end_are_those_of_a_single_process(trained: Path, size: str) -> None:
    import torch

    states = []
    for workers in (1, 4):
        folder = trained / "default.qubit" / size / str(workers)
        states.append(torch.load(folder / f"results-{workers}-0" / "model.pt", weights_only=True)["state_dict"])
    for name, tensor in states[0].items():
        torch.testing.assert_close(states[1][name], tensor, rtol=0, atol=1e-9)


@pytest.mark.parametrize("size", SIZES)
def test_every_sample_is_seen_once_an_epoch_in_an_order_of_its_own(trained: Path, size: str) -> None:
    ndata, batch = map(int, SIZES[size])
    notes = [
        json.loads((trained / "default.qubit" / size / "4" / f"notes-4-{rank}.json").read_text()) for rank in range(4)
    ]
    assert all(note["epochs"] == [0, 1, 2] for note in notes)
    batches = -(-ndata // batch)
    orders = []
    for epoch in range(3):
        steps = range(epoch * batches, (epoch + 1) * batches)
        seen = [row for step in steps for note in notes for row in note["rows"][step]]
        assert sorted(seen) == list(range(ndata))
        orders.append(seen)
    assert orders[0] != orders[1] != orders[2]


def test_first_worker_alone_saves_and_reports(trained: Path) -> None:
    folder = trained / "default.qubit" / "divisible" / "4"
    assert sorted(file.name for file in (folder / "results-4-0").iterdir()) == ["model.pt", "results.json"]
    for rank in (1, 2, 3):
        assert list((folder / f"results-4-{rank}").iterdir()) == []


def test_training_moves_between_numbers_of_workers(trained: Path) -> None:
    moved = trajectory(trained / "moving", 1)
    assert moved == pytest.approx(trajectory(trained / "default.qubit" / "indivisible" / "1", 1), abs=1e-9)
    result = json.loads((trained / "moving" / "trajectory-1.json").read_text())
    assert result["resumed_from_epoch"] == 2
