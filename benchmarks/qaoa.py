"""The QAOA job against the published example's way of writing it, on the same device in the same run.

    .venv/bin/python benchmarks/qaoa.py [--nodes 18,20,22,24] [--repeats 3] [--variants example,none,auto] [--json]

One iteration is the cost and its gradient at given parameters, p = 2, exact, float64, one thread, on the documented
graphs: networkx.gnm_random_graph(n, m, seed=1967) with 18 nodes and 24 edges, otherwise n nodes and 1.5 n edges.
`example` is the published logic written anew: the library's maxcut Hamiltonian, cost layer and mixer layer, a QNode
with its default gradient, on lightning.qubit. `contraction` is the job on the contraction simulator, the others are the
job's reductions on lightning.qubit. Every variant is a process of its own that stays for the whole run; the variants
take turns, and their first iteration isn't counted.

`seconds` is the median of an iteration, `spread` the range over the median, `ratio` the first variant's median over the
variant's, `peak_rss_mb` the most memory (10**6 bytes) the variant's process ever held, `difference` the largest
absolute deviation of cost and gradient from the first variant, `bound` the seconds that one read-and-write sweep of the
whole state a layer a state would take (6 p 16 2^n bytes) at the memory bandwidth measured in this run.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from interleaved import Iterate, difference, figures, serve, take_turns

ROOT = Path(__file__).resolve().parent.parent
WORK = "--work"
EXAMPLE = "example"
CONTRACTION = "contraction"
VARIANTS = (EXAMPLE, "none", "symmetry", "light-cone", "auto", CONTRACTION)
LAYERS = 2
SEED = 1967
PARAMETERS = ((0.43, 0.71), (0.52, 0.24))
BANDWIDTH_BYTES = 2**28


@dataclass(frozen=True)
class Row:
    """One line of the result; the module's docstring says what the figures mean."""

    name: str
    nodes: int
    edges: int
    seconds: float
    spread: float
    ratio: float
    peak_rss_mb: float
    difference: float
    bound: float


def edges_of(nodes: int) -> int:
    """The number of edges of the benchmark's graph."""
    return 24 if nodes == 18 else nodes * 3 // 2


def example(nodes: int) -> Iterate:
    """The published example's logic."""
    import pennylane as qml  # noqa: PLC0415 - only workers load the simulators

    cost_hamiltonian, mixer_hamiltonian = qml.qaoa.maxcut(nx.gnm_random_graph(nodes, edges_of(nodes), seed=SEED))
    device = qml.device("lightning.qubit", wires=nodes)

    def circuit(parameters: Any) -> Any:
        for wire in range(nodes):
            qml.Hadamard(wires=wire)
        qml.layer(layer, LAYERS, parameters[0], parameters[1])
        return qml.expval(cost_hamiltonian)

    def layer(gamma: Any, alpha: Any) -> None:
        qml.qaoa.cost_layer(gamma, cost_hamiltonian)
        qml.qaoa.mixer_layer(alpha, mixer_hamiltonian)

    gradient = qml.grad(qml.QNode(circuit, device))
    parameters = qml.numpy.array(PARAMETERS, requires_grad=True)

    def iterate() -> list[float]:
        derivatives = gradient(parameters)
        return [float(gradient.forward), *np.ravel(derivatives).tolist()]

    return iterate


def job(nodes: int, variant: str) -> Iterate:
    """The job's own code."""
    sys.path.insert(0, str(ROOT / "job_sources"))
    from qaoa_source.cost import choose  # noqa: PLC0415
    from qaoa_source.devices import parse_device  # noqa: PLC0415
    from qaoa_source.hyperparameters import Hyperparameters  # noqa: PLC0415
    from qaoa_source.problem import random_problem  # noqa: PLC0415

    contracted = variant == CONTRACTION
    device = "local:hybridjobs/contraction" if contracted else "local:pennylane/lightning.qubit"
    settings = Hyperparameters(p=LAYERS, reduction="none" if contracted else variant)
    problem = random_problem(nodes, edges_of(nodes), SEED)
    objective = choose(problem, settings, parse_device(device)).objective(0)
    parameters = np.array(PARAMETERS)

    def iterate() -> list[float]:
        cost, gradient = objective.value_and_gradient(parameters)
        return [cost, *gradient.ravel().tolist()]

    return iterate


def bandwidth() -> float:
    """Bytes read and written a second by one thread that scales an array larger than the caches; the best of five."""
    array = np.ones(BANDWIDTH_BYTES // 8)
    best = 0.0
    for _ in range(5):
        begun = time.perf_counter()
        array *= 1.0000001
        best = max(best, 2 * array.nbytes / (time.perf_counter() - begun))
    return best


def measure(nodes: int, variants: Sequence[str], repeats: int, bytes_a_second: float) -> list[Row]:
    """Interleave the variants' iterations on one graph."""
    program = [sys.executable, str(Path(__file__).resolve()), "--nodes", str(nodes)]
    workers = take_turns({variant: [*program, WORK, variant] for variant in variants}, repeats)
    return [
        Row(
            name=f"{worker.name}, {nodes} nodes",
            nodes=nodes,
            edges=edges_of(nodes),
            **figures(worker, workers[0]),
            difference=difference(worker, workers[0]),
            bound=float(f"{6 * LAYERS * 16 * 2**nodes / bytes_a_second:.3g}"),
        )
        for worker in workers
    ]


def markdown(rows: Sequence[Row]) -> str:
    """The table that docs/ shows."""
    lines = [
        "| variant | edges | seconds an iteration | spread | ratio | peak RSS MB | difference | bandwidth bound s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.name} | {row.edges} | {row.seconds:.4g} | {row.spread:.0%} | {row.ratio:.3g}x "
        f"| {row.peak_rss_mb:.0f} | {row.difference:.0e} | {row.bound:.3g} |"
        for row in rows
    ]
    return "\n".join(lines)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="The QAOA job against the published example, interleaved.")
    parser.add_argument("--nodes", default="18,20,22,24", help="numbers of nodes, with commas between")
    parser.add_argument("--variants", default="example,none,auto", help=f"from {', '.join(VARIANTS)}")
    parser.add_argument("--repeats", type=int, default=3, help="counted iterations a variant")
    parser.add_argument("--json", action="store_true", help="print one JSON object with the key rows")
    parser.add_argument(WORK, choices=VARIANTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    sizes = [int(nodes) for nodes in arguments.nodes.split(",")]
    variants = arguments.variants.split(",")
    if unknown := sorted(set(variants) - set(VARIANTS)):
        parser.error(f"--variants {arguments.variants}: {', '.join(unknown)} is none of {', '.join(VARIANTS)}")
    if arguments.work:
        serve(example(sizes[0]) if arguments.work == EXAMPLE else job(sizes[0], arguments.work))
        return 0
    bytes_a_second = bandwidth()
    rows = [row for nodes in sizes for row in measure(nodes, variants, arguments.repeats, bytes_a_second)]
    if arguments.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], "bandwidth_gb_s": round(bytes_a_second / 1e9, 1)}))
    else:
        print(markdown(rows))
        print(f"\nMemory bandwidth of one thread in this run: {bytes_a_second / 1e9:.1f} GB/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
