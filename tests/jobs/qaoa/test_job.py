"""The job as its container runs it: what it reads, what it reports, and how it fails."""

import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qaoa_source import qaoa
from qaoa_source.checkpoints import CheckpointError
from qaoa_source.devices import DeviceError
from qaoa_source.graph_files import read_channel
from qaoa_source.hyperparameters import HyperparameterError
from qaoa_source.problem import GraphError
from tests.jobs.qaoa import oracle
from tests.jobs.qaoa.conftest import SOURCE, JobFolders, RunJob

SQUARE_WITH_TAIL = "0 1 3\n1 2\n2 3\n3 4\n4\n5\n"


def test_result_holds_cost_cut_and_how_it_was_computed(run_job: RunJob, folders: JobFolders) -> None:
    result = run_job(SQUARE_WITH_TAIL, num_iterations="6", seed="7")
    problem = read_channel(folders.graph)
    assert result["cost"] == pytest.approx(oracle.cost(problem, np.array(result["params"])), abs=1e-9)
    assert result["costs"][0] == pytest.approx(-2.5, abs=0.1), "small initial angles cut half of the edges"
    assert (result["nodes"], result["edges"], result["iterations"], result["seed"]) == (6, 5, 6, 7)
    assert len(result["iteration_seconds"]) == 6
    assert result["best_cut"] == result["optimum"] == 5
    bits = np.array([[bit == "1" for bit in result["best_partition"]]])
    assert problem.cut_values(bits) == [5]
    assert result["diff_method"] == "adjoint"
    assert result["device"] == "local:pennylane/lightning.qubit"
    assert result["versions"]["pennylane-lightning"]


def test_documented_graph_starts_at_half_its_edges_and_keeps_its_isolated_node(run_job: RunJob) -> None:
    result = run_job(SOURCE / "inputs" / "gnm_18_24.adjlist", num_iterations="1")
    assert (result["nodes"], result["edges"], result["optimum"]) == (18, 24, 21)
    assert len(result["best_partition"]) == 18
    assert result["costs"][0] == pytest.approx(-12, abs=0.1)


def test_each_iteration_is_a_metric(run_job: RunJob, capsys: pytest.CaptureFixture[str]) -> None:
    result = run_job(num_iterations="3")
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Metrics - ")]
    costs = [line for line in lines if "Cost=" in line]
    assert len(costs) == 4, "one before each step, one at the end"
    assert f"Cost={result['costs'][1]}; iteration_number=1;" in costs[1]


def test_module_runs_as_a_program(run_job: RunJob, folders: JobFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run_job(num_iterations="1")
    (folders.results / "results.json").unlink()
    monkeypatch.delitem(sys.modules, "qaoa_source.qaoa")
    runpy.run_module("qaoa_source.qaoa", run_name="__main__")
    document = json.loads((folders.results / "results.json").read_text())
    assert document["dataDictionary"]["cost"] == expected["cost"]


@pytest.mark.parametrize(
    "settings",
    [
        {"optimizer": "gradient-descent"},
        {"optimizer": "adam"},
        {"optimizer": "lbfgs"},
        {"shots": "100", "diff_method": "parameter-shift"},
    ],
)
def test_restart_follows_the_trajectory_of_an_uninterrupted_run(
    settings: dict[str, str], run_job: RunJob, folders: JobFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run_job(SQUARE_WITH_TAIL, name="whole", num_iterations="6", **settings)

    class SpotInterruptionError(Exception):
        pass

    original = qaoa.Run._evaluate

    def evaluate(run: qaoa.Run, parameters: Any) -> Any:
        if run._done == 3:
            raise SpotInterruptionError
        return original(run, parameters)

    monkeypatch.setattr(qaoa.Run, "_evaluate", evaluate)
    with pytest.raises(SpotInterruptionError):
        run_job(SQUARE_WITH_TAIL, name="stopped", num_iterations="6", **settings)
    monkeypatch.setattr(qaoa.Run, "_evaluate", original)
    assert (folders.checkpoints / "stopped_checkpoint-1.json").exists()

    restarted = run_job(SQUARE_WITH_TAIL, name="stopped", num_iterations="6", **settings)
    assert restarted["resumed_from_iteration"] == 3
    for key in ("costs", "params", "cost", "best_partition"):
        assert restarted[key] == whole[key]


def test_continues_another_jobs_checkpoint_for_more_iterations(run_job: RunJob) -> None:
    run_job(SQUARE_WITH_TAIL, name="first", num_iterations="2")
    longer = run_job(SQUARE_WITH_TAIL, name="second", num_iterations="4", copy_checkpoints_from_job="first")
    fresh = run_job(SQUARE_WITH_TAIL, name="third", num_iterations="4")
    assert longer["resumed_from_iteration"] == 2
    assert longer["costs"] == fresh["costs"]


def test_checkpoint_of_another_problem_is_refused(run_job: RunJob) -> None:
    run_job(SQUARE_WITH_TAIL, num_iterations="1")
    with pytest.raises(CheckpointError, match=r"another stepsize \(stepsize was 0.1, is 0.2\).*remove it"):
        run_job(SQUARE_WITH_TAIL, num_iterations="1", stepsize="0.2")
    with pytest.raises(CheckpointError, match="another graph"):
        run_job(num_iterations="1")


def test_damaged_checkpoint_is_refused(run_job: RunJob, folders: JobFolders) -> None:
    (folders.checkpoints / "job-a_checkpoint-1.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"job-a_checkpoint-1.json: not a checkpoint.*Remove it"):
        run_job()


def test_named_checkpoint_that_is_missing_is_refused(run_job: RunJob) -> None:
    with pytest.raises(CheckpointError, match="copy_checkpoints_from_job = 'gone'"):
        run_job(copy_checkpoints_from_job="gone")


def test_graph_can_be_generated_instead_of_read(run_job: RunJob) -> None:
    generated = run_job(None, num_nodes="8", num_edges="10", num_iterations="1")
    assert (generated["nodes"], generated["edges"]) == (8, 10)
    with pytest.raises(HyperparameterError, match="num_nodes and num_edges for a generated one"):
        run_job(None)
    with pytest.raises(HyperparameterError, match="input-graph holds a graph: give one of the two"):
        run_job(num_nodes="8", num_edges="10")


def test_channel_must_hold_one_file(run_job: RunJob, folders: JobFolders) -> None:
    folders.graph.mkdir(parents=True)
    (folders.graph / "other.adjlist").write_text("0 1\n")
    with pytest.raises(GraphError, match=r"input-data.adjlist, other.adjlist. Give it one graph file"):
        run_job()


def test_shots_sample_the_cost(run_job: RunJob) -> None:
    exact = run_job(SQUARE_WITH_TAIL, num_iterations="1", name="exact")
    sampled = run_job(
        SQUARE_WITH_TAIL, num_iterations="1", name="sampled", shots="20000", diff_method="parameter-shift"
    )
    assert sampled["costs"] != exact["costs"]
    assert sampled["costs"][0] == pytest.approx(exact["costs"][0], abs=0.1)


def test_device_that_pennylane_does_not_give_is_an_error(run_job: RunJob, monkeypatch: pytest.MonkeyPatch) -> None:
    import pennylane as qml

    real = qml.device
    monkeypatch.setattr(qml, "device", lambda name, **options: real("default.qubit"))
    with pytest.raises(DeviceError, match=r"asked for lightning.qubit but PennyLane opened default.qubit"):
        run_job()


def test_200_iterations_do_not_grow_memory(run_job: RunJob) -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    ring = "\n".join(f"{node} {(node + 1) % 9}" for node in range(9))
    run_job(ring, name="warm", num_iterations="50", stepsize="0.001")
    before = resident()
    run_job(ring, name="long", num_iterations="200", stepsize="0.001")
    assert resident() - before < 8 * 2**20


@pytest.mark.parametrize("device", ["local:pennylane/lightning.qubit", "local:hybridjobs/contraction"])
def test_a_cost_that_is_no_number_ends_the_job(device: str, run_job: RunJob, folders: JobFolders) -> None:
    with pytest.raises(qaoa.NotFiniteError, match=r"cost = -?(nan|inf).*smaller stepsize"):
        run_job("a b 1e308\nb c 1e308\n", file_name="g.edgelist", device=device)
    assert not (folders.results / "results.json").exists()
    assert not list(folders.checkpoints.iterdir())
