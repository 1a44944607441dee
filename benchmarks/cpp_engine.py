"""The C++ engine against the published QAOA example's way of writing it, in the same run, one thread each.

    .venv/bin/python benchmarks/cpp_engine.py [--nodes 18,24] [--repeats 3] [--program PATH] [--kernels avx2]
                                              [--threads 1,2] [--json]

One iteration is the exact cost and its whole gradient in float64, p = 2, on networkx.gnm_random_graph(n, 1.5 n,
seed=1967). `example` is the published logic written anew on lightning.qubit: maxcut, cost_layer and mixer_layer of
qml.qaoa, a QNode with the default gradient. `maxcut-cpp` is the engine as its job calls it, `maxcut-cpp, whole state`
the engine without its reductions. Every variant is a process of its own that stays for the whole run; the variants take
turns, and their first iteration isn't counted.

`seconds` is the median of an iteration, `cpu_seconds` the median of the processor time it took, `spread` the range over
the median, `ratio` the example's median over the variant's, `cpu_ratio` the same of processor time (the one to read on
a busy machine), `peak_rss_mb` the most memory (10**6 bytes) the variant's
process ever held, `difference` the largest relative deviation of cost and gradient from the example's.

Rows named `bandwidth bound` are what the memory measured in the same run allows at best if each of the two states is
read and written once a layer, forward and back: 6 p 16 2**q bytes. It is given for the whole state (q = nodes), and for
the state that the engine holds. A state that fits into a cache can be faster.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from interleaved import peak_rss_mb

ROOT = Path(__file__).resolve().parent.parent
ENGINE = ROOT / "container_assets" / "cpp" / "engine"
BUILD = ROOT / ".cache" / "maxcut-cpp"
WORK = "--work"
EXAMPLE = "example"
PARAMETERS = [[0.3, 0.5], [0.4, 0.2]]
SWEPT_BYTES = 1 << 28
SMALL_ITERATIONS = 20  # of the engine in one turn, where they take milliseconds
LARGE_ITERATIONS = 3


@dataclass(frozen=True)
class Row:
    """One line of the result; the module's docstring says what the figures mean."""

    name: str
    nodes: int
    seconds: float
    ratio: float | None = None
    cpu_seconds: float | None = None
    cpu_ratio: float | None = None
    spread: float | None = None
    peak_rss_mb: float | None = None
    difference: float | None = None


class Worker:
    """A process that answers one line with one line."""

    def __init__(self, command: Sequence[str | Path], threads: int = 1) -> None:
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **dict.fromkeys(names, str(threads))},
            text=True,
            bufsize=1,
        )
        self.seconds: list[float] = []
        self.cpu_seconds: list[float] = []
        self.result: list[float] = []
        self.qubits = 0

    def ask(self, request: dict[str, Any], dropped: int) -> None:
        """Send one request and keep all but the first `dropped` times."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args!r} ended with exit code {self.process.wait()}")
        answer = json.loads(line)
        self.seconds += answer["seconds"][dropped:]
        self.cpu_seconds += answer["cpu_seconds"][dropped:]
        self.result = [answer["cost"], *answer["gradient"][0], *answer["gradient"][1]]
        self.qubits = answer.get("qubits", 0)

    def row(self, name: str, nodes: int, example: "Worker") -> Row:
        """Sum up what the worker has measured."""
        median, cpu_median = statistics.median(self.seconds), statistics.median(self.cpu_seconds)
        expected = np.array(example.result)
        return Row(
            name=name,
            nodes=nodes,
            seconds=median,
            ratio=statistics.median(example.seconds) / median,
            cpu_seconds=cpu_median,
            cpu_ratio=statistics.median(example.cpu_seconds) / cpu_median,
            spread=(max(self.seconds) - min(self.seconds)) / median,
            peak_rss_mb=peak_rss_mb(self.process.pid),
            difference=float(np.max(np.abs(np.array(self.result) - expected) / np.maximum(np.abs(expected), 1e-3))),
        )


def work_as_example() -> None:
    """The published logic: an iteration for each line read."""
    import pennylane as qml  # noqa: PLC0415 - only this worker loads it

    for line in sys.stdin:
        request = json.loads(line)
        graph: nx.Graph[int] = nx.Graph()
        graph.add_nodes_from(range(request["nodes"]))
        graph.add_edges_from(request["edges"])
        cost_hamiltonian, mixer_hamiltonian = qml.qaoa.maxcut(graph)
        device = qml.device("lightning.qubit", wires=request["nodes"])

        def cost(
            parameters: Any,
            cost_hamiltonian: Any = cost_hamiltonian,
            mixer_hamiltonian: Any = mixer_hamiltonian,
            wires: Sequence[int] = range(request["nodes"]),
        ) -> Any:
            for wire in wires:
                qml.Hadamard(wires=wire)
            for gamma, beta in zip(parameters[0], parameters[1], strict=True):
                qml.qaoa.cost_layer(gamma, cost_hamiltonian)
                qml.qaoa.mixer_layer(beta, mixer_hamiltonian)
            return qml.expval(cost_hamiltonian)

        gradient = qml.grad(qml.QNode(cost, device))
        parameters = qml.numpy.array(request["parameters"], requires_grad=True)
        begun, cpu_begun = time.perf_counter(), time.process_time()
        slopes = gradient(parameters)
        answer = {
            "seconds": [time.perf_counter() - begun],
            "cpu_seconds": [time.process_time() - cpu_begun],
            "cost": float(gradient.forward),
            "gradient": slopes.tolist(),
        }
        print(json.dumps(answer), flush=True)


def measured(nodes: int, repeats: int, program: Path, threads: Sequence[int], kernels: str) -> list[Row]:
    """Measure one problem size."""
    graph = nx.gnm_random_graph(nodes, 3 * nodes // 2, seed=1967)
    problem = {"nodes": nodes, "edges": [list(edge) for edge in graph.edges], "parameters": PARAMETERS}
    iterations = SMALL_ITERATIONS if nodes <= 20 else LARGE_ITERATIONS
    engine_request = {**problem, "repeat": iterations + 1, "kernels": kernels}
    example = Worker([sys.executable, __file__, WORK])
    engines = {f"maxcut-cpp, {count} threads" if count > 1 else "maxcut-cpp": count for count in threads}
    workers = {name: (Worker([program, "evaluate"], count), engine_request) for name, count in engines.items()}
    whole = {**engine_request, "reduction": "none"}
    workers["maxcut-cpp, whole state"] = (Worker([program, "evaluate"]), whole)
    bandwidths = []
    for turn in range(repeats + 1):
        print(f"{nodes} nodes, turn {turn} of {repeats}", file=sys.stderr)
        example.ask(problem, dropped=int(turn == 0))
        for worker, request in workers.values():
            worker.ask(request, dropped=1)
        swept = subprocess.run([program, "bandwidth", str(SWEPT_BYTES)], capture_output=True, check=True)
        bandwidths.append(json.loads(swept.stdout)["bytes_per_second"])
    rows = [example.row(EXAMPLE, nodes, example)]
    rows += [worker.row(name, nodes, example) for name, (worker, _) in workers.items()]
    held = next(iter(workers.values()))[0].qubits
    for state, qubits in (("whole state", nodes), ("held state", held)):
        seconds = 6 * len(PARAMETERS[0]) * 16 * 2.0**qubits / statistics.median(bandwidths)
        rows.append(Row(f"bandwidth bound, {state}", nodes, seconds, statistics.median(example.seconds) / seconds))
    for worker in (example, *(worker for worker, _ in workers.values())):
        assert worker.process.stdin is not None
        worker.process.stdin.close()
        worker.process.wait()
    return rows


def show(rows: Sequence[Row]) -> None:
    """Print a table."""
    headings = ("seconds", "ratio", "cpu s", "cpu ratio", "peak MB", "difference")
    formats = (".5f", ".1f", ".5f", ".1f", ".0f", ".0e")
    print(f"{'nodes':>5}  {'variant':<28}" + "".join(f" {heading:>10}" for heading in headings))
    for row in rows:
        values = (row.seconds, row.ratio, row.cpu_seconds, row.cpu_ratio, row.peak_rss_mb, row.difference)
        cells = ["" if value is None else format(value, kind) for value, kind in zip(values, formats, strict=True)]
        print(f"{row.nodes:>5}  {row.name:<28}" + "".join(f" {cell:>10}" for cell in cells))


def main() -> None:
    """Measure what the command line asks for."""
    if sys.argv[1:] == [WORK]:
        work_as_example()
        return
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--nodes", default="18,24", help="problem sizes, separated by commas")
    parser.add_argument("--repeats", type=int, default=3, help="turns that are counted")
    parser.add_argument("--threads", default="1", help="numbers of threads of the engine, separated by commas")
    parser.add_argument("--kernels", default="", help="baseline, avx2 or avx512; the best that runs when left out")
    parser.add_argument(
        "--program", type=Path, help="a built maxcut-cpp; built from container_assets/cpp when left out"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object with the key rows")
    options = parser.parse_args()
    program = options.program
    if program is None:
        subprocess.run(["make", "-s", "-j2", f"BUILD={BUILD}"], cwd=ENGINE, check=True)
        program = BUILD / "maxcut-cpp"
    threads = [int(text) for text in options.threads.split(",")]
    rows = [
        row
        for nodes in options.nodes.split(",")
        for row in measured(int(nodes), options.repeats, program, threads, options.kernels)
    ]
    if options.json:
        print(json.dumps({"rows": [asdict(row) for row in rows]}))
    else:
        show(rows)


if __name__ == "__main__":
    main()
