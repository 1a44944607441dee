"""The contraction simulator against the published examples' logic, its own limits, and the state vector.

    .venv/bin/python benchmarks/contraction.py [--part qaoa|qml|limits|rows] [--repeats 5] [--json]

One thread, float64, exact values with all gradients. Every case is a process of its own that stays for the whole part;
cases take turns, and their first iteration isn't counted. `seconds` is the median, `ratio` the example's median over
the case's, `set-up` the search for orders with warm kernels, `peak_rss_mb` the most memory (10**6 bytes) that the
process held, imports included; `idle_rss_mb` before the first case.

qaoa    the example's cost and mixer layers on lightning.qubit at 24 nodes, p = 2, and cone sweeps up to 500 nodes.
qml     the example's circuit (controlled rotations as seven gates, one sample after another) at 10 qubits and batch
        32, and contraction up to 60 qubits.
limits  operations and bytes of one evaluation, the rates measured in this run, and the distance to each.
rows    where contraction stops: width, operations and bytes by degree, density, depth and layers, with the chooser's
        method, and both methods' times where both can be measured.
"""

# ruff: noqa: PLC0415 - the memory of a case's process shall hold only what that case imports

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SEED = 1967
ANGLES = ((0.43, 0.71, 0.35, 0.52), (0.52, 0.24, 0.61, 0.33))
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
SLOWEST_STATE_VECTOR = 20
WIDEST_MEASURED = 22

Case = Callable[[], float]


def random_graph(nodes: int, edges: int) -> nx.Graph:
    """The documented kind of graph."""
    return nx.gnm_random_graph(nodes, edges, seed=SEED)


def qaoa_cones(nodes: int, edges: int, depth: int = 2, degree: int = 0) -> tuple[Case, dict[str, Any]]:
    """Value and gradient by cone sweeps."""
    from contraction import maxcut_qaoa

    graph = nx.random_regular_graph(degree, nodes, seed=SEED) if degree else random_graph(nodes, edges)
    maxcut_qaoa(nx.path_graph(4), depth, plan_folder=None).value_and_gradient(ANGLES[0][:depth], ANGLES[1][:depth])
    start = time.perf_counter()
    qaoa = maxcut_qaoa(graph, depth, plan_folder=None)
    facts = {
        "set_up": time.perf_counter() - start,
        **described(qaoa.cost),
        "contractions": sum(len(part.classes) for part in qaoa.parts),
    }
    return lambda: qaoa.value_and_gradient(ANGLES[0][:depth], ANGLES[1][:depth])[0], facts


def described(cost: Any) -> dict[str, Any]:
    """The counted numbers of a cost."""
    return {"width": cost.width, "operations": cost.operations, "bytes": cost.bytes, "method": cost.faster}


def qaoa_example(nodes: int, edges: int) -> tuple[Case, dict[str, Any]]:
    """The published logic: the library's layers, a QNode with its default gradient on lightning.qubit."""
    import pennylane as qml
    from pennylane import numpy as pnp

    graph = random_graph(nodes, edges)
    cost, mixer = qml.qaoa.maxcut(graph)

    @qml.qnode(qml.device("lightning.qubit", wires=nodes))
    def energy(parameters: Any) -> Any:
        for wire in range(nodes):
            qml.Hadamard(wires=wire)
        for layer in range(2):
            qml.qaoa.cost_layer(parameters[0][layer], cost)
            qml.qaoa.mixer_layer(parameters[1][layer], mixer)
        return qml.expval(cost)

    parameters = pnp.array([ANGLES[0][:2], ANGLES[1][:2]], requires_grad=True)

    def iterate() -> float:
        qml.grad(energy)(parameters)
        return float(energy(parameters))

    return iterate, {}


def sonar_circuit(wires: int, inputs: Any, weights: Sequence[Any], *, seven_gates: bool) -> Any:
    """<Z_0> of the dressed circuit; controlled rotations as in the example (seven gates) or as one."""
    import pennylane as qml

    def controlled(angles: Any, control: int, target: int) -> None:
        phi, theta, omega = angles[0], angles[1], angles[2]
        if not seven_gates:
            qml.CRot(phi, theta, omega, wires=[control, target])
            return
        qml.RZ((phi - omega) / 2, wires=target)
        qml.CNOT(wires=[control, target])
        qml.RZ(-(phi + omega) / 2, wires=target)
        qml.RY(-theta / 2, wires=target)
        qml.CNOT(wires=[control, target])
        qml.RY(theta / 2, wires=target)
        qml.RZ(omega, wires=target)

    for wire in range(wires):
        qml.RX(inputs[..., wire], wires=wire)
    for block, distance in ((weights[0], 1), (weights[1], 3)):
        for wire in range(wires):
            qml.Rot(block[0, wire, 0], block[0, wire, 1], block[0, wire, 2], wires=wire)
        control = 0
        for place in range(wires):
            target = (control - distance) % wires
            controlled(block[1, place], control, target)
            control = target
    qml.Rot(weights[2][0], weights[2][1], weights[2][2], wires=0)
    return qml.expval(qml.Z(0))


def sonar(wires: int, batch: int, name: str, precision: str = "complex128") -> tuple[Case, dict[str, Any]]:
    """One step of the QML workload: values of all samples and the gradient by inputs and weights."""
    import pennylane as qml
    import torch

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(SEED)
    inputs = torch.randn((batch, wires), generator=generator, dtype=torch.float64).requires_grad_()
    weights = [
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in ((2, wires, 3), (2, wires, 3), (3,))
    ]
    facts: dict[str, Any] = {}
    if name == "example":
        device = qml.device("lightning.qubit", wires=wires)
        node = qml.QNode(
            lambda x: sonar_circuit(wires, x, weights, seven_gates=True),
            device,
            interface="torch",
            diff_method="adjoint",
        )

        def iterate() -> float:
            total = sum(node(sample) for sample in inputs)
            total.backward()
            return float(total.detach())

        return iterate, facts
    from contraction.device import ContractionDevice

    device = ContractionDevice(wires=wires, plan_folder=None, c_dtype=np.dtype(precision).type)
    node = qml.QNode(lambda x: sonar_circuit(wires, x, weights, seven_gates=False), device, interface="torch")
    warm = qml.QNode(lambda x: sonar_circuit(4, x, weights, seven_gates=False), device, interface="torch")
    warm(inputs[:2]).sum().backward()
    start = time.perf_counter()
    tape = qml.workflow.construct_tape(node)(inputs)
    facts = described(device.cost(tape)) | {"set_up": time.perf_counter() - start}

    def step() -> float:
        total = node(inputs).sum()
        total.backward()
        return float(total.detach())

    return step, facts


def lightning_reduced(nodes: int, edges: int, depth: int, degree: int = 0) -> tuple[Case, dict[str, Any]]:
    """The best state vector within PennyLane: parts apart, one node fixed (Z2), adjoint."""
    import pennylane as qml
    from pennylane import numpy as pnp

    graph = nx.random_regular_graph(degree, nodes, seed=SEED) if degree else random_graph(nodes, edges)
    graph = graph.subgraph(max(nx.connected_components(graph), key=len))
    root, *others = list(graph)
    wires = {node: number for number, node in enumerate(others)}
    words = [
        qml.Z(wires[v if u == root else u]) if root in (u, v) else qml.Z(wires[u]) @ qml.Z(wires[v])
        for u, v in graph.edges
    ]
    observable = qml.Hamiltonian([0.5] * len(words), words)

    @qml.qnode(qml.device("lightning.qubit", wires=len(wires)), diff_method="adjoint")
    def energy(parameters: Any) -> Any:
        for wire in range(len(wires)):
            qml.Hadamard(wires=wire)
        for layer in range(depth):
            for u, v in graph.edges:
                if root in (u, v):
                    qml.RZ(parameters[0][layer], wires=wires[v if u == root else u])
                else:
                    qml.IsingZZ(parameters[0][layer], wires=[wires[u], wires[v]])
            for wire in range(len(wires)):
                qml.RX(2 * parameters[1][layer], wires=wire)
            qml.PauliRot(2 * parameters[1][layer], "X" * len(wires), wires=range(len(wires)))
        return qml.expval(observable)

    parameters = pnp.array([ANGLES[0][:depth], ANGLES[1][:depth]], requires_grad=True)

    def iterate() -> float:
        qml.grad(energy)(parameters)
        return float(energy(parameters))

    return iterate, {}


BUILDERS: dict[str, Callable[..., tuple[Case, dict[str, Any]]]] = {
    "qaoa_example": qaoa_example,
    "qaoa_cones": qaoa_cones,
    "sonar": sonar,
    "lightning_reduced": lightning_reduced,
}


def serve(name: str, arguments: Sequence[Any]) -> None:
    """Build a case, then run one iteration for each line read; a line of JSON for each."""
    sys.path.insert(0, str(ROOT / "job_sources"))
    idle = peak_rss_mb()
    case, facts = BUILDERS[name](*arguments)
    case()
    emit({**facts, "idle_rss_mb": idle})
    for _ in sys.stdin:
        start = time.perf_counter()
        value = case()
        seconds = time.perf_counter() - start
        repeats = 1
        if seconds < 0.02:  # a single short iteration is at the mercy of its neighbours
            repeats = int(0.05 / seconds) + 1
            start = time.perf_counter()
            for _ in range(repeats):
                case()
            seconds = (time.perf_counter() - start) / repeats
        peak = peak_rss_mb()
        emit({"seconds": seconds, "value": value, "peak_rss_mb": peak})


def peak_rss_mb() -> float:
    """The most memory this process has held, in 10**6 bytes; getrusage's peak would include the parent's."""
    status = (Path("/proc/self/status")).read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmHWM:")).split()[1]) * 1024 / 1e6


def emit(document: dict[str, Any]) -> None:
    """One line of JSON."""
    print(json.dumps(document), flush=True)


def run_cases(cases: dict[str, tuple[str, list[Any]]], repeats: int) -> list[dict[str, Any]]:
    """Run cases by turns, each in a process of its own."""
    running = {
        label: subprocess.Popen(
            [sys.executable, __file__, "--serve", json.dumps([name, arguments])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | ONE_THREAD,
        )
        for label, (name, arguments) in cases.items()
    }
    rows: dict[str, dict[str, Any]] = {}
    for label, process in running.items():
        rows[label] = {"name": label, **receive(process, label), "all": []}
    for _ in range(repeats):
        for label, process in running.items():
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
            answer = receive(process, label)
            rows[label]["all"].append(answer.pop("seconds"))
            rows[label] |= answer
    for process in running.values():
        process.communicate()
    first = None
    for row in rows.values():
        seconds = row.pop("all")
        row["seconds"] = statistics.median(seconds)
        row["spread"] = (max(seconds) - min(seconds)) / row["seconds"]
        first = first or row["seconds"]
        row["ratio"] = first / row["seconds"]
    return list(rows.values())


def receive(process: "subprocess.Popen[str]", label: str) -> dict[str, Any]:
    """The next answer of a case's process.

    Raises:
        RuntimeError: the process ended instead.
    """
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"case {label!r} ended with status {process.wait()}; its errors are above")
    answer: dict[str, Any] = json.loads(line)
    return answer


def qaoa_part(repeats: int) -> list[dict[str, Any]]:
    """The example beside cone sweeps."""
    cases: dict[str, tuple[str, list[Any]]] = {
        "example, 24 nodes": ("qaoa_example", [24, 36]),
        **{f"cones, {n} nodes, {m} edges": ("qaoa_cones", [n, m]) for n, m in ((24, 36), (200, 300), (500, 750))},
    }
    return run_cases(cases, repeats)


def qml_part(repeats: int) -> list[dict[str, Any]]:
    """The example beside contraction through the PennyLane device."""
    cases: dict[str, tuple[str, list[Any]]] = {"example, 10 qubits, batch 32": ("sonar", [10, 32, "example"])}
    for wires, batch, precision in (
        (10, 32, "complex128"),
        (26, 32, "complex128"),
        (26, 208, "complex128"),
        (26, 208, "complex64"),
        (40, 208, "complex128"),
        (60, 208, "complex128"),
    ):
        cases[f"contraction, {wires} qubits, batch {batch}, {precision}"] = ("sonar", [wires, batch, "own", precision])
    return run_cases(cases, repeats)


def rates() -> dict[str, float]:
    """Complex multiplications a second on rows that stay in the first cache, and bytes a second of a large copy."""
    sys.path.insert(0, str(ROOT / "job_sources"))
    from contraction.block_kernels import multiply_rows

    lanes = 64
    rows = [np.ones(lanes) for _ in range(6)]
    multiply_rows(*rows[:2], 0, *rows[2:4], 0, lanes, *rows[4:], 0)
    # The call from Python is most of the time: count a long row instead, still within the first cache.
    lanes = 512
    rows = [np.ones(lanes) for _ in range(6)]
    best = min(timed(lambda: multiply_rows(*rows[:2], 0, *rows[2:4], 0, lanes, *rows[4:], 0), 2000) for _ in range(5))
    call = min(timed(lambda: multiply_rows(*rows[:2], 0, *rows[2:4], 0, 0, *rows[4:], 0), 2000) for _ in range(5))
    source, target = np.ones(2**25), np.zeros(2**25)
    copy = min(timed(lambda: np.copyto(target, source), 1) for _ in range(5))
    return {"multiplications_per_second": lanes / max(best - call, 1e-12), "bytes_per_second": 2 * source.nbytes / copy}


def timed(function: Callable[[], Any], repeats: int) -> float:
    """Seconds a call."""
    start = time.perf_counter()
    for _ in range(repeats):
        function()
    return (time.perf_counter() - start) / repeats


def limits_part(repeats: int) -> list[dict[str, Any]]:
    """Distance of evaluations to the multiplication and the memory limit: value and gradient count three passes."""
    measured = rates()
    cases = {
        "cones, 24 nodes, 36 edges": ("qaoa_cones", [24, 36]),
        "cones, 24 nodes, 36 edges, p = 3": ("qaoa_cones", [24, 36, 3]),
        "contraction, 10 qubits, batch 32": ("sonar", [10, 32, "own"]),
        "contraction, 26 qubits, batch 208": ("sonar", [26, 208, "own"]),
        "contraction, 60 qubits, batch 208": ("sonar", [60, 208, "own"]),
    }
    rows = run_cases(cases, repeats)
    for row in rows:
        row["multiplication_limit"] = 3 * row["operations"] / measured["multiplications_per_second"]
        # Tables are written once and read about once forward, and both with their adjoints on the way back.
        row["memory_limit"] = 3 * row["bytes"] / measured["bytes_per_second"]
        row["distance"] = row["seconds"] / max(row["multiplication_limit"], row["memory_limit"])
    return [{"name": "rates of this machine", **measured}, *rows]


def rows_part(repeats: int) -> list[dict[str, Any]]:
    """Widths over degree, density and depth; the chooser's method beside both measured times."""
    sys.path.insert(0, str(ROOT / "job_sources"))
    from contraction import TooLargeError, maxcut_qaoa

    problems = [(n, m, p, 0) for n, m in ((16, 24), (24, 36), (100, 150), (500, 750)) for p in (1, 2, 3, 4)]
    problems += [(n, m, 2, 0) for n, m in ((12, 30), (12, 60), (16, 60), (18, 90), (100, 200), (100, 250), (100, 300))]
    problems += [
        (n, 0, p, d) for d, n, p in ((3, 16, 3), (3, 16, 4), (3, 100, 3), (3, 100, 4), (4, 100, 2), (4, 100, 3))
    ]
    problems += [(100, 0, 2, d) for d in (5, 6, 7, 8)]
    rows = []
    for nodes, edges, depth, degree in problems:
        if rows:
            print(rows[-1], file=sys.stderr, flush=True)
        label = f"{degree}-regular {nodes}" if degree else f"gnm {nodes}, {edges}"
        graph = nx.random_regular_graph(degree, nodes, seed=SEED) if degree else random_graph(nodes, edges)
        row: dict[str, Any] = {"name": f"{label}, p = {depth}"}
        rows.append(row)
        start = time.perf_counter()
        try:
            cost = maxcut_qaoa(graph, depth, plan_folder=None).cost
        except TooLargeError as error:
            row |= {"refused": str(error), "set_up": time.perf_counter() - start}
            continue
        row |= {**described(cost), "set_up": time.perf_counter() - start}
        cases: dict[str, tuple[str, list[Any]]] = {}
        if cost.width <= WIDEST_MEASURED:
            cases["contraction"] = ("qaoa_cones", [nodes, edges, depth, degree])
        if cost.state_vector_qubits <= SLOWEST_STATE_VECTOR:
            cases["state vector"] = ("lightning_reduced", [nodes, edges, depth, degree])
        measured = {result["name"]: result["seconds"] for result in run_cases(cases, repeats)} if cases else {}
        row |= {f"{method} s": seconds for method, seconds in measured.items()}
        if len(measured) == 2:
            row["right choice"] = cost.faster == min(measured, key=lambda method: measured[method])
    return rows


PARTS = {"qaoa": qaoa_part, "qml": qml_part, "limits": limits_part, "rows": rows_part}


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown of all rows, with a column for every key."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["| " + " | ".join(keys) + " |", "|" + "---|" * len(keys)]
    lines += ["| " + " | ".join(shown(row.get(key, "")) for key in keys) + " |" for row in rows]
    return "\n".join(lines)


def shown(value: Any) -> str:
    """Four digits of a float, anything else as it is."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def main() -> None:
    """Run the chosen parts and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, action="append", help="default: all")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        name, arguments = json.loads(options.serve)
        serve(name, arguments)
        return
    results = {part: PARTS[part](options.repeats) for part in options.part or PARTS}
    if options.json:
        emit(results)
        return
    for part, rows in results.items():
        print(f"## {part}\n\n{table(rows)}\n")


if __name__ == "__main__":
    os.environ |= ONE_THREAD
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("HYBRIDJOBS_CACHE_FOLDER", folder)
        main()
