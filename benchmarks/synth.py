"""Seconds of one synthesis beside a bare app of two stacks with as many resources: `python benchmarks/synth.py`.

Each measurement is a process of its own, as the CDK CLI starts one: import of aws-cdk-lib, start of its JavaScript
engine, construction, synthesis. The bare app has no assets, no rules and no validation. What each layer of this app
costs is measured by leaving it out.
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
WITHOUT_RULES = """
import aws_cdk, app

aws_cdk.Validations.add_plugins = lambda *plugins: None
app.main()
"""


@dataclass(frozen=True)
class Measurement:
    """Seconds of the runs of one app."""

    name: str
    resources: int
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The figure that is compared."""
        return statistics.median(self.seconds)


def run(command: list[str], assembly: Path, *, validation: bool) -> float:
    """Run one synthesis into `assembly`; return its seconds."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
    environment |= {"CDK_OUTDIR": str(assembly), "PYTHONPATH": str(ROOT), "AWS_EC2_METADATA_DISABLED": "true"}
    if not validation:
        environment["CDK_VALIDATION"] = "false"
    start = time.perf_counter()
    subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, check=True, capture_output=True)
    return time.perf_counter() - start


def resources(assembly: Path) -> list[int]:
    """Number of resources of each template."""
    return [len(json.loads(file.read_text())["Resources"]) for file in sorted(assembly.glob("*.template.json"))]


def main() -> None:
    """Measure and print a table, and JSON with --output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--output", type=Path)
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
        seconds: dict[str, list[float]] = {name: [] for name in apps}
        # In turns, so that a change of the machine's load meets all of them.
        for _ in range(arguments.runs):
            for number, (name, (command, validation)) in enumerate(apps.items()):
                seconds[name].append(run(command, folder / f"assembly-{number}", validation=validation))
        measured = [
            Measurement(name, sum(resources(folder / f"assembly-{number}")), tuple(seconds[name]))
            for number, name in enumerate(apps)
        ]
    base = measured[0].median
    sys.stdout.write(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, ")
    sys.stdout.write(f"median of {arguments.runs} runs\n")
    for each in measured:
        sys.stdout.write(
            f"{each.name:42} {each.resources:4} resources {each.median:6.2f} s "
            f"(+{each.median - base:.2f} s, {each.median / base:.1f} x)\n"
        )
    if arguments.output:
        arguments.output.write_text(json.dumps([asdict(each) for each in measured], indent=2) + "\n")


if __name__ == "__main__":
    main()
