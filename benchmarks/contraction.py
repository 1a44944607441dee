"""The contraction simulator against the published examples' logic, its own limits, and the state vector.

    .venv/bin/python benchmarks/contraction.py [--part qaoa|qml|limits|rows] [--repeats 5] [--json]

One thread, float64, exact values with all gradients. Every case is a process of its own that stays for the whole part;
cases take turns, and their first iteration isn't counted. `seconds` is the median, `ratio` the first case's median over
the case's, `set_up` the search for orders with warm kernels, `peak_rss_mb` the most memory (10**6 bytes) that the
process held, imports included; `idle_rss_mb` before the first case.

qaoa    the example's cost and mixer layers on lightning.qubit at 24 nodes, p = 2, and cone sweeps up to 500 nodes.
qml     the example's circuit (controlled rotations as seven gates, one sample after another) at 10 qubits and batch
        32, and contraction up to 60 qubits.
limits  operations and bytes of one evaluation, the rates measured in this run, and the distance to each.
rows    where contraction stops: width, operations and bytes by degree, density, depth and layers, with the chooser's
        method, and both methods' times where both can be measured.
"""

# ruff: noqa: PLC0415 - the memory of a worker shall hold only what it measures

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from contraction_cases import CASES, described, graph_of
from interleaved import ONE_THREAD, figures, peak_rss_mb, serve, take_turns

ROOT = Path(__file__).resolve().parent.parent
LARGEST_STATE_VECTOR = 24
WIDEST_MEASURED = 22


def serve_case(name: str, arguments: Sequence[Any]) -> None:
    """Build a case and serve its iterations."""
    sys.path.insert(0, str(ROOT / "job_sources"))
    idle = peak_rss_mb()
    iterate, facts = CASES[name](*arguments)
    serve(iterate, {**facts, "idle_rss_mb": idle})


def run_cases(cases: Mapping[str, tuple[str, list[Any]]], repeats: int) -> list[dict[str, Any]]:
    """Run cases by turns, each in a process of its own."""
    program = [sys.executable, str(Path(__file__).resolve()), "--serve"]
    workers = take_turns({label: [*program, json.dumps(case)] for label, case in cases.items()}, repeats)
    rows = []
    for worker in workers:
        facts = {name: fact for name, fact in worker.answer.items() if name != "result"}
        rows.append({"name": worker.name, **facts, **figures(worker, workers[0])})
    return rows


def qaoa_part(repeats: int) -> list[dict[str, Any]]:
    """The example beside cone sweeps."""
    cases: dict[str, tuple[str, list[Any]]] = {
        "example, 24 nodes": ("qaoa_example", [24]),
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
    return [{**row, **measured} for row in rows]


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
        row: dict[str, Any] = {"name": f"{label}, p = {depth}", "nodes": nodes}
        rows.append(row)
        start = time.perf_counter()
        try:
            cost = maxcut_qaoa(graph_of(nodes, edges, degree), depth, plan_folder=None).cost
        except TooLargeError as error:
            row |= {"refused": str(error), "set_up": time.perf_counter() - start}
            continue
        row |= {**described(cost), "set_up": time.perf_counter() - start}
        row |= {"estimate": cost.seconds, "state_vector_estimate": cost.state_vector_seconds}
        cases: dict[str, tuple[str, list[Any]]] = {}
        if cost.width <= WIDEST_MEASURED:
            cases["contraction"] = ("qaoa_cones", [nodes, edges, depth, degree])
        if cost.state_vector_qubits <= LARGEST_STATE_VECTOR:
            cases["state vector"] = ("qaoa_state_vector", [nodes, edges, depth, degree])
        measured = {result["name"]: result for result in run_cases(cases, repeats)} if cases else {}
        if "contraction" in measured:
            row |= {key: measured["contraction"][key] for key in ("seconds", "peak_rss_mb")}
        if "state vector" in measured:
            row |= {"state_vector_seconds": measured["state vector"]["seconds"]}
        if len(measured) == 2:
            row |= {"ratio": row["state_vector_seconds"] / row["seconds"]}
            row |= {"right_choice": (cost.faster == "contraction") == (row["ratio"] >= 1)}
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
        serve_case(name, arguments)
        return
    results = {part: PARTS[part](options.repeats) for part in options.part or PARTS}
    if options.json:
        print(json.dumps({"rows": [{"part": part, **row} for part, rows in results.items() for row in rows]}))
        return
    for part, rows in results.items():
        print(f"## {part}\n\n{table(rows)}\n")


if __name__ == "__main__":
    os.environ |= ONE_THREAD
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("HYBRIDJOBS_CACHE_FOLDER", folder)
        main()
