"""The single-process job: what it reports, how it goes on after an end, and how it fails."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from qml_source.data import DataError
from qml_source.hyperparameters import HyperparameterError
from tests.jobs.qml.conftest import RunSingle
from tests.jobs.qml.job_run import LIGHTNING, NEEDS_TORCH, SONAR, Host

torch = pytest.importorskip("torch", reason=NEEDS_TORCH)

from qml_source import checkpoints, training  # noqa: E402 - needs torch
from qml_source.checkpoints import CheckpointError  # noqa: E402
from qml_source.loop import Trainer, TrainingError  # noqa: E402
from qml_source.loss import margin_losses  # noqa: E402
from qml_source.model import seeded_model  # noqa: E402

TRAJECTORY = ("training_loss", "training_accuracy", "held_out_loss", "held_out_accuracy")


def trajectory(result: dict[str, Any]) -> list[float]:
    return [value for name in TRAJECTORY for value in result[name]]


def test_loss_is_pytorchs_margin_ranking_against_zero() -> None:
    outputs, targets = torch.tensor([0.5, 0.05, -0.3]), torch.tensor([1.0, 1.0, 1.0])
    published = torch.nn.MarginRankingLoss(margin=0.1)(outputs, torch.zeros(3), targets)
    assert margin_losses(outputs, targets).mean() == pytest.approx(float(published))


@pytest.mark.parametrize("device", ["local:pennylane/default.qubit", LIGHTNING])
def test_result_and_metrics(run_single: RunSingle, capsys: pytest.CaptureFixture[str], device: str) -> None:
    result = run_single(device=device, ndata="33", epochs="3")
    assert (result["training_samples"], result["held_out_samples"]) == (33, 42)
    assert len(result["training_loss"]) == len(result["iteration_seconds"]) == result["iterations"] == 3
    assert 0 <= result["held_out_accuracy"][-1] <= 1
    assert result["seconds_per_sample"] == pytest.approx(result["seconds_per_epoch"] / 33)
    assert result["parameters"] == 73 * 4 + 5
    assert result["labels"] == {"+1": "M", "-1": "R"}
    assert result["classical_control"]["logistic_regression_held_out_accuracy"] > 0.5
    assert (result["workers"], result["backend"], result["resumed_from_epoch"]) == (1, None, None)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Metrics - ")]
    for line in lines:
        values = dict(re.findall(r"(\w+)\s*=\s*([^;]+)\s*;", line))
        assert all(np.isfinite(float(value)) for value in values.values())
    losses = [line for line in lines if "training_loss" in line]
    assert f"training_loss={result['training_loss'][2]}; iteration_number=2;" in losses[2]


def test_training_loss_is_that_of_the_whole_epoch(run_single: RunSingle) -> None:
    # With a rate of almost nothing every batch is measured at the initial weights.
    small = run_single(ndata="33", batch_size="4", epochs="1", lr="1e-12")
    whole = run_single(ndata="33", batch_size="33", epochs="1", lr="1e-12", name="b")
    assert small["training_loss"] == pytest.approx(whole["training_loss"], abs=1e-9)


def test_last_batch_of_a_single_sample_is_safe(run_single: RunSingle) -> None:
    assert np.isfinite(run_single(ndata="17", batch_size="8", device=LIGHTNING)["training_loss"]).all()


def test_nothing_held_out(run_single: RunSingle) -> None:
    result = run_single(ndata="all", held_out="0", epochs="1", batch_size="104")
    assert (result["training_samples"], result["held_out_loss"], result["final"]["held_out_accuracy"]) == (
        208,
        [None],
        None,
    )


def test_any_data_of_two_classes_is_learned(run_single: RunSingle) -> None:
    generator = np.random.default_rng(1)
    points = generator.normal(size=(120, 2)) * [1, 100] + [0, 500]
    lines = [f"{x!r},{y!r},{'up' if x > 0.2 else 'down'}\n" for x, y in points.tolist()]
    result = run_single("".join(lines), ndata="all", epochs="15", scaling="standard", batch_size="16")
    assert result["labels"] == {"+1": "down", "-1": "up"}
    assert result["held_out_accuracy"][-1] > 0.85


class InterruptionError(Exception):
    pass


def interrupted_after(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Trainer.step
    done = 0

    def step(trainer: Trainer, batch: Any) -> Any:
        nonlocal done
        if done == steps:
            raise InterruptionError
        done += 1
        return original(trainer, batch)

    monkeypatch.setattr(Trainer, "step", step)


@pytest.mark.parametrize(("steps", "epoch"), [(5, 1), (8, 1), (10, 2)])
def test_restart_follows_the_trajectory_of_an_uninterrupted_run(
    run_single: RunSingle, monkeypatch: pytest.MonkeyPatch, steps: int, epoch: int
) -> None:
    monkeypatch.setattr(training, "SAVE_SECONDS", 0.0)
    whole = run_single(ndata="33", epochs="3", name="whole")
    with monkeypatch.context() as interruption:
        interrupted_after(steps, interruption)
        with pytest.raises(InterruptionError):
            run_single(ndata="33", epochs="3", name="stopped")
    restarted = run_single(ndata="33", epochs="3", name="stopped")
    assert restarted["resumed_from_epoch"] == epoch
    assert trajectory(restarted) == trajectory(whole)


def test_within_an_epoch_a_checkpoint_is_written_once_a_minute(
    run_single: RunSingle, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = []
    monkeypatch.setattr(checkpoints, "save", lambda trainer, _origin: saved.append(trainer.progress.batches_done))
    run_single(ndata="33", epochs="2")
    assert saved == [0, 0], "only at the ends of the epochs"


def test_continues_another_jobs_checkpoint_for_more_epochs(run_single: RunSingle) -> None:
    run_single(ndata="16", epochs="1", name="first")
    longer = run_single(ndata="16", epochs="3", name="second", copy_checkpoints_from_job="first")
    fresh = run_single(ndata="16", epochs="3", name="third")
    assert longer["resumed_from_epoch"] == 1
    assert trajectory(longer) == trajectory(fresh)


def test_checkpoint_of_other_settings_or_data_is_refused(run_single: RunSingle, host: Host) -> None:
    run_single(ndata="16", epochs="1")
    with pytest.raises(CheckpointError, match=r"another lr \(lr was 0.05, is 0.2\). Give the same .* or remove it"):
        run_single(ndata="16", epochs="1", lr="0.2")
    changed = SONAR.read_text().replace("0.0200,", "0.0201,", 1)
    with pytest.raises(CheckpointError, match="another data"):
        run_single(changed, ndata="166", epochs="1")
    (host.checkpoints / "job-a_training.pt").write_bytes(b"damaged")
    with pytest.raises(CheckpointError, match=r"job-a_training.pt: not a checkpoint of this job.*Remove it"):
        run_single(ndata="16", epochs="1")
    with pytest.raises(CheckpointError, match="copy_checkpoints_from_job = 'gone'"):
        run_single(ndata="16", epochs="1", name="fresh", copy_checkpoints_from_job="gone")


def test_job_without_checkpoints_leaves_none(
    run_single: RunSingle, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(host.root)
    host.more["AMZN_BRAKET_CHECKPOINT_DIR"] = ""
    run_single(ndata="16", epochs="1")
    assert list(host.root.rglob("*_training.pt")) == []


def test_loss_that_is_not_finite_ends_the_job(run_single: RunSingle) -> None:
    with pytest.raises(
        TrainingError, match=r"epoch 0, batch 1: the loss or its gradient is not finite. Give a smaller lr"
    ):
        run_single(ndata="33", lr="1e308")


def test_bad_request_is_refused_before_any_work(run_single: RunSingle, host: Host, tmp_path: Path) -> None:
    with pytest.raises(HyperparameterError, match="nwires"):
        run_single(nwires="0")
    with pytest.raises(DataError, match="line 1"):
        run_single("a,b,c\n")
    assert list(host.results.iterdir()) == []


def test_memory_stays_flat_over_many_steps() -> None:
    for device in ("local:pennylane/default.qubit", LIGHTNING):
        model = seeded_model(1, features=5, nwires=2, device=device)
        features = torch.rand(2, 5, dtype=torch.float64)
        sizes = []
        for step in range(200):
            model.zero_grad()
            model(features).sum().backward()
            if step >= 50:
                sizes.append(psutil.Process().memory_info().rss)
        slope = np.polyfit(np.arange(len(sizes)), sizes, 1)[0]
        assert slope < 20_000, f"{slope:.0f} bytes a step on {device}"


def test_result_is_plain_json(run_single: RunSingle, host: Host) -> None:
    run_single(ndata="16", epochs="1")
    text = (host.results / "results.json").read_text()
    json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))
