"""What a function's own code adds to its cold start: `python benchmarks/cold_import.py [--runs 15] [--json]`.

Each run is a process of its own, `python -S -I -B`, with a copy of lambdas/ that has no bytecode, as in Lambda, whose
code folder is read-only. It imports boto3 with what the functions use of botocore, and then the handler: `seconds` is
the median time of the handler alone, with all that it imports beyond boto3, `boto3_seconds` that of boto3, `ratio` the
one over the other, `modules` how many modules came with the handler. With more than LIMIT_SECONDS the exit code is 1.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

LAMBDAS = Path(__file__).resolve().parents[1] / "lambdas"
HANDLERS = ("launch_job.handler", "collect_result.handler")
LIMIT_SECONDS = 0.1
MEASURED = """
import json, sys, time
sys.path[:0] = sys.argv[2:]
begin = time.perf_counter()
import boto3, botocore.config, botocore.exceptions
between = time.perf_counter()
known = len(sys.modules)
__import__(sys.argv[1])
end = time.perf_counter()
print(json.dumps([between - begin, end - between, len(sys.modules) - known]))
"""


@dataclass(frozen=True)
class Row:
    """One line of the result; the module's docstring says what the figures mean."""

    name: str
    seconds: float
    boto3_seconds: float
    ratio: float
    modules: int


def packages(folder: Path) -> Path:
    """A folder with boto3 and what it needs itself, with its bytecode, and nothing else."""
    folder.mkdir()
    for name in ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "urllib3", "six"):
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise SystemExit(f"{name} is not installed: run in the project's environment (make setup)")
        origin = Path(spec.origin)
        source = origin.parent if origin.name == "__init__.py" else origin
        (folder / source.name).symlink_to(source)
    return folder


def measure(runs: int) -> list[Row]:
    """Import each handler so many times."""
    times: dict[str, list[tuple[float, float, int]]] = {handler: [] for handler in HANDLERS}
    with tempfile.TemporaryDirectory() as temporary:
        code = Path(temporary) / "lambdas"
        shutil.copytree(LAMBDAS, code, ignore=shutil.ignore_patterns("__pycache__"))
        folders = [str(code), str(packages(Path(temporary) / "packages"))]
        # In turns, so that a change of the machine's load meets both. The first run fills the system's file cache.
        for number in range(runs + 1):
            for handler, taken in times.items():
                command = [sys.executable, "-S", "-I", "-B", "-c", MEASURED, handler, *folders]
                done = subprocess.run(command, env={}, check=True, capture_output=True, text=True)
                if number:
                    taken.append(tuple(json.loads(done.stdout)))
    return [row(handler, taken) for handler, taken in times.items()]


def row(handler: str, taken: list[tuple[float, float, int]]) -> Row:
    """The medians of a handler's runs."""
    boto3_seconds = statistics.median(each[0] for each in taken)
    seconds = statistics.median(each[1] for each in taken)
    return Row(handler, round(seconds, 4), round(boto3_seconds, 4), round(seconds / boto3_seconds, 3), taken[0][2])


def main() -> int:
    """Measure and print; 1 if a handler takes longer than it may."""
    parser = argparse.ArgumentParser(description="Cold import of the functions' code, beyond boto3's own.")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", action="store_true", help="print one JSON object with the key rows")
    arguments = parser.parse_args()
    rows = measure(arguments.runs)
    if arguments.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], "limit_seconds": LIMIT_SECONDS}))
    else:
        print(f"{'':24}{'ms':>8}{'boto3 ms':>10}{'ratio':>8}{'modules':>9}")
        for each in rows:
            milliseconds = f"{each.seconds * 1000:8.1f}{each.boto3_seconds * 1000:10.1f}"
            print(f"{each.name:24}{milliseconds}{each.ratio:8.3f}{each.modules:9d}")
    return int(any(each.seconds > LIMIT_SECONDS for each in rows))


if __name__ == "__main__":
    sys.exit(main())
