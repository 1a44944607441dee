"""The QML job against the published example's way of writing it, in the same run, and its scaling over processes.

    .venv/bin/python benchmarks/qml.py [--qubits 10] [--batch 32] [--repeats 5] [--variants example,lightning,default]
                                       [--workers 1,2] [--seeds 1,2,3,4,5] [--json]

One iteration is a whole training step: outputs of a batch of Sonar samples, loss, gradient, Adam; float64, one thread.
`example` is the published logic written anew on lightning.qubit: AngleEmbedding, controlled rotations in seven gates, a
TorchLayer with adjoint differentiation, margin ranking loss. The others are the job's own step on lightning.qubit, on
default.qubit and on the contraction simulator. Every variant is a process of its own that stays for the whole run; the
variants take turns, and their first iteration isn't counted.

`seconds` is the median of an iteration, `spread` the range over the median, `ratio` the first variant's median over
the variant's, `peak_rss_mb` the most memory (10**6 bytes) the variant's process ever held, `difference` the largest
absolute deviation of loss and gradient from the first variant.

With --workers, rows named `train_dp, W workers` follow: the data-parallel entry point on this host with W workers of
one thread each on lightning.qubit. Their `seconds` are an epoch's, `samples_per_second` its throughput, `efficiency`
that throughput over W times the single worker's, `ceiling` the same for W independent single-worker trainings side by
side: what the machine's cores allow, shared as they may be. All take turns; start-up isn't counted.

With --seeds, rows named `<variant>, seed N` follow: train_single with the settings of the job qml-sonar, a fifth of the
samples held out. Their `seconds` are those of all 30 epochs, `accuracy` is on the held-out samples after the last one,
`logistic` a logistic regression's on the same samples, `majority` that of always naming the more frequent class.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from interleaved import ONE_THREAD, difference, figures, serve, spread, take_turns
from qml_steps import SONAR, example, job

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "job_sources"
WORK = "--work"
EXAMPLE = "example"
DEVICES = {
    "lightning": "local:pennylane/lightning.qubit",
    "default": "local:pennylane/default.qubit",
    "contraction": "local:hybridjobs/contraction",
}
VARIANTS = (EXAMPLE, *DEVICES)
SCALING_EPOCHS = 4
SONAR_JOB = {"ndata": "all", "held_out": "0.2", "batch_size": "16", "epochs": "30", "lr": "0.01", "gamma": "0.99"}


@dataclass(frozen=True)
class Row:
    """One line of the result; the module's docstring says what the figures mean."""

    name: str
    qubits: int
    batch: int
    seconds: float
    spread: float
    ratio: float | None = None
    peak_rss_mb: float | None = None
    difference: float | None = None
    samples_per_second: float | None = None
    efficiency: float | None = None
    ceiling: float | None = None
    accuracy: float | None = None
    logistic: float | None = None
    majority: float | None = None


def work(variant: str, qubits: int, batch: int) -> None:
    """Serve one variant's steps."""
    import torch  # noqa: PLC0415 - only workers load the job

    torch.set_num_threads(1)
    serve(example(qubits, batch) if variant == EXAMPLE else job(DEVICES[variant], qubits, batch))


def job_environment() -> dict[str, str]:
    """The variables of a process that imports the job's sources on one thread."""
    # The sources first: beside this file lies another benchmark with the name of a job's library.
    search_path = [str(SOURCES), *filter(None, [os.environ.get("PYTHONPATH")]), str(Path(__file__).resolve().parent)]
    return {**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(search_path)}


def measure(qubits: int, batch: int, variants: Sequence[str], repeats: int) -> list[Row]:
    """Interleave the variants' iterations."""
    # -P keeps this folder from the front of the search path.
    program = [sys.executable, "-P", str(Path(__file__).resolve()), "--qubits", str(qubits), "--batch", str(batch)]
    workers = take_turns({variant: [*program, WORK, variant] for variant in variants}, repeats, job_environment())
    return [
        Row(
            name=worker.name,
            qubits=qubits,
            batch=batch,
            **figures(worker, workers[0]),
            difference=difference(worker, workers[0]),
        )
        for worker in workers
    ]


def train(entry_point: str, device: str, hyperparameters: Mapping[str, str], cpus: int) -> dict[str, Any]:
    """Runs a whole job in a process of its own and returns its result; RuntimeError when it fails."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        channel = folder / "data" / "input-data"
        channel.mkdir(parents=True)
        (channel / SONAR.name).write_bytes(SONAR.read_bytes())
        (folder / "hyperparameters.json").write_text(json.dumps(dict(hyperparameters)))
        variables = {
            "AMZN_BRAKET_DEVICE_ARN": device,
            "AMZN_BRAKET_HP_FILE": str(folder / "hyperparameters.json"),
            "AMZN_BRAKET_INPUT_DIR": str(folder / "data"),
            "AMZN_BRAKET_JOB_RESULTS_DIR": name,
            "AMZN_BRAKET_JOB_NAME": "benchmark",
            "SM_NUM_CPUS": str(cpus),
        }
        done = subprocess.run(
            [sys.executable, "-m", f"qml_source.{entry_point}"],
            env={**job_environment(), **variables},
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{entry_point} ended with exit code {done.returncode}: {done.stderr[-2000:]}")
        document = json.loads((folder / "results.json").read_text())
    return dict(document["dataDictionary"])


def epoch_seconds(workers: int, qubits: int, batch: int) -> tuple[list[float], int]:
    """Trains with train_dp on this host; returns the seconds of each epoch but the first, and the samples of one."""
    hyperparameters = {
        "nwires": str(qubits),
        "batch_size": str(batch),
        "ndata": "all",
        "held_out": "0",
        "epochs": str(1 + SCALING_EPOCHS),
        "workers_per_host": str(workers),
    }
    result = train("train_dp", DEVICES["lightning"], hyperparameters, workers)
    return result["iteration_seconds"][1:], result["training_samples"]


def accuracies(variants: Sequence[str], qubits: int, seeds: Sequence[int]) -> list[Row]:
    """Train to the end on each seed."""
    rows = []
    for variant in variants:
        for seed in seeds:
            settings = {**SONAR_JOB, "nwires": str(qubits), "seed": str(seed)}
            result = train("train_single", DEVICES[variant], settings, 1)
            control = result["classical_control"]
            rows.append(
                Row(
                    name=f"{variant}, seed {seed}",
                    qubits=qubits,
                    batch=int(SONAR_JOB["batch_size"]),
                    seconds=float(f"{sum(result['iteration_seconds']):.4g}"),
                    spread=spread(result["iteration_seconds"]),
                    peak_rss_mb=round(result["peak_memory_megabytes"], 1),
                    accuracy=round(result["final"]["held_out_accuracy"], 3),
                    logistic=round(control["logistic_regression_held_out_accuracy"], 3),
                    majority=round(control["majority_class_held_out_accuracy"], 3),
                )
            )
    return rows


def scaling(workers: Sequence[int], qubits: int, batch: int, repeats: int) -> list[Row]:
    """Interleave trainings on each number of workers, and as many independent ones side by side."""
    together: dict[int, list[float]] = {each: [] for each in workers}
    apart: dict[int, list[float]] = {each: [] for each in workers}
    count = 0
    for _ in range(repeats):
        for each in workers:
            measured, count = epoch_seconds(each, qubits, batch)
            together[each] += measured
            with ThreadPoolExecutor(each) as pool:
                for seconds, _ in pool.map(lambda _: epoch_seconds(1, qubits, batch), range(each)):
                    apart[each] += seconds
    typical = {each: statistics.median(seconds) for each, seconds in together.items()}
    alone = typical.get(1)
    return [
        Row(
            name=f"train_dp, {each} worker{'s' if each > 1 else ''}",
            qubits=qubits,
            batch=batch,
            seconds=float(f"{typical[each]:.4g}"),
            spread=spread(together[each]),
            samples_per_second=float(f"{count / typical[each]:.4g}"),
            efficiency=float(f"{alone / (each * typical[each]):.3g}") if alone else None,
            ceiling=float(f"{alone / statistics.median(apart[each]):.3g}") if alone else None,
        )
        for each in workers
    ]


_COLUMNS: dict[str, Callable[[Any], str]] = {
    "name": str,
    "qubits": str,
    "batch": str,
    "seconds": "{:.4g}".format,
    "spread": "{:.0%}".format,
    "ratio": "{:.3g}x".format,
    "peak_rss_mb": "{:.0f}".format,
    "difference": "{:.0e}".format,
    "samples_per_second": "{:.4g}".format,
    "efficiency": "{:.2f}".format,
    "ceiling": "{:.2f}".format,
    "accuracy": "{:.3f}".format,
    "logistic": "{:.3f}".format,
    "majority": "{:.3f}".format,
}


def markdown(rows: Sequence[Row]) -> str:
    """The table that docs/ shows, without the columns that no row fills."""
    cells = [asdict(row) for row in rows]
    columns = [name for name in _COLUMNS if any(row[name] is not None for row in cells)]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for row in cells:
        shown = ["" if row[name] is None else _COLUMNS[name](row[name]) for name in columns]
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="The QML job against the published example, interleaved.")
    parser.add_argument("--qubits", type=int, default=10)
    parser.add_argument("--batch", type=int, default=32, help="samples of a step")
    parser.add_argument("--variants", default="example,lightning,default", help=f"from {', '.join(VARIANTS)}")
    parser.add_argument("--repeats", type=int, default=5, help="counted iterations a variant, 0 for no such rows")
    parser.add_argument(
        "--workers", default="", help="numbers of workers of train_dp, with commas between; none without"
    )
    parser.add_argument("--seeds", default="", help="seeds to train to the end on, with commas")
    parser.add_argument("--json", action="store_true", help="print one JSON object with the key rows")
    parser.add_argument(WORK, choices=VARIANTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    variants = [variant for variant in arguments.variants.split(",") if variant]
    if unknown := sorted(set(variants) - set(VARIANTS)):
        parser.error(f"--variants {arguments.variants}: {', '.join(unknown)} is none of {', '.join(VARIANTS)}")
    if arguments.work:
        work(arguments.work, arguments.qubits, arguments.batch)
        return 0
    rows = measure(arguments.qubits, arguments.batch, variants, arguments.repeats) if arguments.repeats else []
    if arguments.workers:
        numbers = [int(each) for each in arguments.workers.split(",")]
        rows += scaling(numbers, arguments.qubits, arguments.batch, max(arguments.repeats // 2, 1))
    if arguments.seeds:
        seeds = [int(seed) for seed in arguments.seeds.split(",")]
        rows += accuracies([each for each in variants if each != EXAMPLE], arguments.qubits, seeds)
    if arguments.json:
        print(json.dumps({"rows": [asdict(row) for row in rows]}))
    else:
        print(markdown(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
