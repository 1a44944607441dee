"""One synthesis beside a bare app with as many resources: `python benchmarks/synth.py [--runs 5] [--json]`.

Each measurement is a process of its own, as the CDK CLI starts one: import of aws-cdk-lib, start of its JavaScript
engine, construction, synthesis. The bare app has two stacks, no assets, no rules and no validation. What each layer
of this app costs is measured by leaving it out. `seconds` is the median, `ratio` that over the bare app's,
`peak_rss_mb` the most memory (10**6 bytes) that a run's largest process held.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

BARE = """
import sys
from aws_cdk import App, Stack
from aws_cdk import aws_ssm as ssm

app = App(analytics_reporting=False)
counts = [int(count) for count in sys.argv[1:]]
for number, count in enumerate(counts):
    stack = Stack(app, f"Stack{number}")
    for each in range(count):
        ssm.CfnParameter(stack, f"Parameter{each}", type="String", value=str(each))
app.synth()
"""
# Kilobytes of the largest process of a program that has ended.
MEASURED = """
import resource, subprocess, sys

subprocess.run([sys.executable, *sys.argv[1:]], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1.024)
"""
WITHOUT_RULES = """
import aws_cdk, app

aws_cdk.Validations.add_plugins = lambda *plugins: None
app.main()
"""


@dataclass(frozen=True)
class Row:
    """One app's line of the result; the module's docstring says what the figures mean."""

    name: str
    resources: int
    seconds: float
    ratio: float
    peak_rss_mb: float


def run(command: list[str], assembly: Path, *, validation: bool) -> tuple[float, float]:
    """Run one synthesis into `assembly`; return its seconds and the megabytes of its largest process."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
    environment |= {"CDK_OUTDIR": str(assembly), "PYTHONPATH": str(ROOT), "AWS_EC2_METADATA_DISABLED": "true"}
    if not validation:
        environment["CDK_VALIDATION"] = "false"
    start = time.perf_counter()
    measured = [sys.executable, "-c", MEASURED, *command]
    done = subprocess.run(measured, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    return time.perf_counter() - start, float(done.stdout.splitlines()[-1]) / 1000


def resources(assembly: Path) -> list[int]:
    """Number of resources of each template."""
    return [len(json.loads(file.read_text())["Resources"]) for file in sorted(assembly.glob("*.template.json"))]


def main() -> None:
    """Measure and print a table or, with --json, one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print one JSON object with the key rows")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "bare.py").write_text(BARE)
        (folder / "without_rules.py").write_text(WITHOUT_RULES)
        # The first run of all fills the caches of the JavaScript engine and of Python.
        run(["app.py"], folder / "first", validation=False)
        total = sum(resources(folder / "first"))
        halves = [str(total // 2), str(total - total // 2)]
        apps = {
            "bare app, two stacks": ([str(folder / "bare.py"), *halves], False),
            "this app, without rules": ([str(folder / "without_rules.py")], False),
            "this app": (["app.py"], False),
            "this app, with CloudFormation's schemas": (["app.py"], True),
        }
        runs: dict[str, list[tuple[float, float]]] = {name: [] for name in apps}
        # In turns, so that a change of the machine's load meets all of them.
        for _ in range(arguments.runs):
            for number, (name, (command, validation)) in enumerate(apps.items()):
                runs[name].append(run(command, folder / f"assembly-{number}", validation=validation))
        medians = {name: statistics.median(seconds for seconds, _ in each) for name, each in runs.items()}
        base = next(iter(medians.values()))
        rows = [
            Row(
                name,
                sum(resources(folder / f"assembly-{number}")),
                medians[name],
                medians[name] / base,
                max(megabytes for _, megabytes in runs[name]),
            )
            for number, name in enumerate(apps)
        ]
    if arguments.json:
        print(json.dumps({"rows": [asdict(row) for row in rows]}))
        return
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    print(f"{machine}, median of {arguments.runs} runs")
    for row in rows:
        print(
            f"{row.name:42} {row.resources:4} resources {row.seconds:6.2f} s (+{row.seconds - base:.2f} s, "
            f"{row.ratio:.1f} x) {row.peak_rss_mb:6.0f} MB"
        )


if __name__ == "__main__":
    main()
