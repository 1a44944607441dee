"""The job as its container runs it: the protocol, the same results as qaoa_source, restarts and failures."""

import json
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import qaoa_source
from qaoa_source.graph_files import read_graph
from tests.jobs.cpp.conftest import JobFolder
from tests.jobs.qaoa import oracle
from tests.jobs.qaoa.conftest import JobFolders, RunJob, folders, run_job  # noqa: F401 - fixtures

pytestmark = pytest.mark.timeout(900)

GRAPHS = Path(qaoa_source.__file__).parent / "inputs"
SQUARE_WITH_TAIL = "0 1 3\n1 2\n2 3\n3 4\n4\n5\n"


@pytest.mark.parametrize("optimizer", ["gradient-descent", "adam"])
def test_results_are_those_of_qaoa_source(job: JobFolder, run_job: RunJob, optimizer: str) -> None:  # noqa: F811
    settings: Any = {"num_iterations": "4", "seed": "7", "optimizer": optimizer}
    expected = run_job(SQUARE_WITH_TAIL, **settings)
    result = job.run(SQUARE_WITH_TAIL, name="in-c++", **settings).result
    assert result.keys() == expected.keys()
    assert result["settings"].keys() == expected["settings"].keys()
    for key in ("cost", "costs", "params"):
        assert np.array(result[key]) == pytest.approx(np.array(expected[key]), abs=1e-9)
    for key in ("best_cut", "best_cut_method", "optimum", "cut_upper_bound", "nodes", "edges", "node_labels", "p"):
        assert result[key] == expected[key]
    assert len(result["iteration_seconds"]) == result["iterations"] == 4
    assert result["classical_control"].keys() == expected["classical_control"].keys()
    assert result["classical_control"]["local_search_best_cut"] == 5


def test_documented_graph_gives_the_documented_numbers(job: JobFolder) -> None:
    # The documented step is so long that later costs swing, and depend on the last bits of the first.
    result = job.run(GRAPHS / "gnm_18_24.adjlist", num_iterations="30", stepsize="0.01").result
    assert (result["nodes"], result["edges"], result["optimum"]) == (18, 24, 21)
    assert result["costs"][0] == pytest.approx(-12, abs=0.1)
    assert result["cost"] < result["costs"][0] - 2, "the optimiser makes progress"
    problem = read_graph(GRAPHS / "gnm_18_24.adjlist")
    assert result["cost"] == pytest.approx(oracle.cost(problem, np.array(result["params"])), abs=1e-9)
    bits = np.array([[bit == "1" for bit in result["best_partition"]]])
    assert problem.cut_values(bits) == [result["best_cut"]]
    assert result["best_partition"][0] == "0"


def test_samples_follow_the_state(job: JobFolder) -> None:
    """At p = 1 an edge is cut with a known probability, and the best of one sample cuts it that often."""
    cut = 0
    for seed in range(200):
        ended = job.run(
            "0 1\n", p="1", num_iterations="1", stepsize="1e-9", cut_samples="1", seed=str(seed),
            initial_parameters="[[0.6], [0.3]]", name=f"job-{seed}",
        )  # fmt: skip
        cut += ended.result["best_cut"]
        probability = -ended.result["cost"]
    assert cut / 200 == pytest.approx(probability, abs=0.12)


def test_each_iteration_is_a_metric_that_braket_reads(job: JobFolder) -> None:
    ended = job.run(num_iterations="3")
    lines = [line for line in ended.output.splitlines() if line.startswith("Metrics - ")]
    read = [dict(re.findall(r"(\w+)\s*=\s*([^;]+)\s*;", line)) for line in lines]
    costs = [float(line["Cost"]) for line in read if "Cost" in line]
    assert costs == [*ended.result["costs"], ended.result["cost"]]
    assert [line["iteration_number"] for line in read if "iteration_seconds" in line] == ["0", "1", "2"]
    assert all(abs(float(line["timestamp"]) - time.time()) < 600 for line in read)


def test_results_are_a_document_that_the_sdk_reads(job: JobFolder) -> None:
    document = job.run(num_iterations="1").document
    assert document["braketSchemaHeader"] == {"name": "braket.jobs_data.persisted_job_data", "version": "1"}
    assert document["dataFormat"] == "plaintext"


def test_generated_graphs_and_starting_points_are_those_of_networkx_and_numpy(job: JobFolder) -> None:
    result = job.run(None, num_nodes="14", num_edges="20", seed="5", num_iterations="1", stepsize="1e-12").result
    graph = nx.gnm_random_graph(14, 20, seed=5)
    partition = np.array([int(bit) for bit in result["best_partition"]])
    assert result["best_cut"] == sum(partition[first] != partition[second] for first, second in graph.edges)
    assert np.array(result["params"]) == pytest.approx(0.01 * np.random.RandomState(5).uniform(size=(2, 2)), abs=1e-9)


def test_weights_and_named_nodes_are_read_from_an_edge_list(job: JobFolder) -> None:
    text = "# weights\nb a 2.5\nb c {'weight': -1}\nd\na c\n"
    result = job.run(text, "graph.edgelist", num_iterations="1").result
    assert result["node_labels"] == ["a", "b", "c", "d"]
    assert result["optimum"] == 3.5
    assert result["best_partition"] == "0110"


def test_a_number_of_threads_can_be_asked_for(job: JobFolder) -> None:
    one, two = (job.run(GRAPHS / "gnm_18_24.adjlist", threads=threads).result for threads in (1, 2))
    assert (one["threads"]["used"], two["threads"]["used"]) == (1, 2)
    assert one["costs"] == two["costs"]


@pytest.mark.parametrize("optimizer", ["gradient-descent", "adam"])
def test_killed_job_restarts_on_the_trajectory_of_an_uninterrupted_one(job: JobFolder, optimizer: str) -> None:
    whole = job.run(name="whole", num_iterations="6", optimizer=optimizer).result
    job.run(name="stopped", num_iterations="6", optimizer=optimizer)
    file = job.checkpoints / "stopped_checkpoint-1.json"
    document = json.loads(file.read_text())
    del document["dataDictionary"]["evaluations"][3:]
    file.write_text(json.dumps(document))
    restarted = job.run(name="stopped", num_iterations="6", optimizer=optimizer).result
    assert restarted["resumed_from_iteration"] == 3
    for key in ("costs", "params", "cost", "best_partition"):
        assert restarted[key] == whole[key]


def test_continues_another_jobs_checkpoint_for_more_iterations(job: JobFolder) -> None:
    job.run(name="first", num_iterations="2")
    longer = job.run(name="second", num_iterations="4", copy_checkpoints_from_job="first").result
    assert longer["resumed_from_iteration"] == 2
    assert longer["costs"] == job.run(name="third", num_iterations="4").result["costs"]


Change = tuple[dict[str, str], str]


@pytest.mark.parametrize(
    ("settings", "failure"),
    [
        ({"stepsize": "0.2"}, r"CheckpointError: .*another stepsize \(stepsize was 0.1, is 0.2\).*remove it"),
        ({"graph": "0 1\n"}, "CheckpointError: .*another graph"),
        ({"name": "job-b", "copy_checkpoints_from_job": "gone"}, "CheckpointError: copy_checkpoints_from_job = 'gone'"),
    ],
)
def test_checkpoint_that_does_not_fit_is_refused(job: JobFolder, settings: dict[str, Any], failure: str) -> None:
    job.run(num_iterations="1")
    ended = job.run(**{"num_iterations": "1", **settings})
    assert ended.exit_code == 1
    assert re.match(failure, ended.failure or "")


def test_damaged_checkpoint_is_refused(job: JobFolder) -> None:
    job.checkpoints.mkdir()
    (job.checkpoints / "job-a_checkpoint-1.json").write_text("{")
    assert re.search(r"job-a_checkpoint-1.json: not a checkpoint.*Remove it", job.run().failure or "")


@pytest.mark.parametrize(
    ("settings", "failure"),
    [
        ({"p": "0"}, "HyperparameterError: 1 invalid hyperparameter: p = '0': give a whole number from 1 to 50"),
        ({"p": "2x", "stepsize": "-1"}, "2 invalid hyperparameters: p = '2x': .*; stepsize = '-1': give a positive"),
        ({"num_iteration": "3"}, "num_iteration is unknown, did you mean num_iterations?"),
        ({"shots": "1000"}, "shots = '1000': this engine is exact"),
        ({"diff_method": "parameter-shift"}, "diff_method = 'parameter-shift': give adjoint"),
        ({"reduction": "light-cone"}, "reduction = 'light-cone': give one of none, symmetry, auto"),
        ({"optimizer": "lbfgs"}, "optimizer = 'lbfgs': give one of gradient-descent, adam"),
        ({"initial_parameters": "[[1], [2]]"}, "initial_parameters has 1 gammas and betas but p = 2"),
        ({"initial_parameters": "[[1, 2]]"}, "initial_parameters = .*: give two lists of p finite numbers"),
        ({"num_nodes": "5"}, "num_nodes and num_edges describe a generated graph together"),
        ({"num_nodes": "5", "num_edges": "11"}, "5 nodes have at most 10 edges"),
        ({"num_nodes": "5", "num_edges": "6"}, "input channel input-graph holds a graph: give one of the two"),
        ({"device": "local:pennylane/lightning.qubit"}, "DeviceError: .*Use local:hybridjobs/maxcut-cpp"),
        ({"graph": "0 0\n"}, "GraphError: input-data.adjlist, line 1: node 0 has an edge to itself"),
        ({"graph": "0 1\n1 0\n"}, "line 2: edge 1 - 0 is already given in line 1"),
        ({"graph": "0\n1\n"}, "input-data.adjlist: the graph has 2 nodes and no edge"),
        ({"graph": "0 1 nan\n", "file_name": "g.edgelist"}, "g.edgelist, line 1: 'nan' is no weight"),
        ({"graph": "01 2\n1 3\n"}, "two node names are the same number"),
        ({"graph": "<graphml/>", "file_name": "g.graphml"}, "'.graphml' is no graph format that this program reads"),
        ({"graph": None}, "no graph: give the job an input channel input-graph"),
    ],
)
def test_what_it_cannot_run_is_refused_with_the_remedy(job: JobFolder, settings: dict[str, Any], failure: str) -> None:
    ended = job.run(**settings)
    assert ended.exit_code == 1
    assert re.search(failure, ended.failure or ""), ended.failure
    assert not ended.document


def test_hyperparameters_of_the_container_are_passed_over(job: JobFolder) -> None:
    assert job.run(sagemaker_program="x", shots="0", num_iterations="1").result["settings"]["shots"] is None


def test_state_that_does_not_fit_is_refused_before_it_is_made(job: JobFolder) -> None:
    ended = job.run("".join(f"{node} {node + 1}\n" for node in range(60)))
    assert ended.exit_code == 1
    assert re.match(r"MemoryError: .*60 qubits, two of which take .* GiB, and .* are free. Use", ended.failure or "")


def test_stopping_ends_it_at_once_and_leaves_a_whole_checkpoint(job: JobFolder, program: Path) -> None:
    job.run(num_iterations="1")
    (job.root / "hyperparameters.json").write_text('{"num_iterations": "100000", "p": "3"}')
    environment = {
        "AMZN_BRAKET_DEVICE_ARN": "local:hybridjobs/maxcut-cpp",
        "AMZN_BRAKET_HP_FILE": str(job.root / "hyperparameters.json"),
        "AMZN_BRAKET_INPUT_DIR": str(job.root / "data"),
        "AMZN_BRAKET_JOB_RESULTS_DIR": str(job.root / "results"),
        "AMZN_BRAKET_CHECKPOINT_DIR": str(job.checkpoints),
        "AMZN_BRAKET_JOB_NAME": "long",
    }
    with subprocess.Popen([program], env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(40):
            process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
    assert process.returncode == -signal.SIGTERM
    document = json.loads((job.checkpoints / "long_checkpoint-1.json").read_text())
    assert len(document["dataDictionary"]["evaluations"]) >= 19
