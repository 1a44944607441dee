"""The `hybridjobs` command."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hybridjobs import prediction
from hybridjobs.console import Progress, console
from hybridjobs.demo import run_demo
from hybridjobs.deployment import Deployment
from hybridjobs.local.cloud import LocalCloud
from hybridjobs.local.environment import UNSET
from hybridjobs.model.errors import ProjectError
from hybridjobs.model.stage import load_stage
from hybridjobs.report.rows import row
from hybridjobs.report.table import json_text, show
from hybridjobs.report.text import plain
from hybridjobs.report.training import trainings

PROJECT = Path(__file__).resolve().parents[1]

Stage = Annotated[str, Parameter(help="A stage of stages/; `local` is read from the running embedded cloud.")]

app = App(
    name="hybridjobs",
    help="Hybrid quantum jobs on Amazon Braket as infrastructure as code.",
    version_flags=[],
)
local = App(name="local", help="The embedded cloud: AWS and Braket on loopback, no account needed.")
app.command(local)
# Loaded when it is asked for: it needs the client of the container engine, which nothing else does.
app.command("hybridjobs.images.commands:app", name="image")


@app.command
def demo(*, stage: Stage = "local") -> None:
    """Run everything once in the embedded cloud: deploy, run the jobs, report, destroy, and leave nothing behind.

    Args:
        stage: A stage of stages/, deployed into the embedded cloud.
    """
    load_stage(PROJECT / "stages", stage)
    run_demo(_cloud(), console(), stage=stage)


@app.command
def status(*, stage: Stage = "local") -> None:
    """Show every launch of a stage: its state, and why it waits or ended without a result."""
    drawn = Table()
    for heading in ("job", "state", "device", "requested", "reason"):
        drawn.add_column(heading, overflow="fold")
    for launch in _deployment(stage).launches():
        drawn.add_row(
            launch.job_name, launch.state, plain(launch.device), launch.requested_at, plain(launch.reason or "")
        )
    console().print(drawn)


@app.command
def report(*, stage: Stage = "local", output: Literal["table", "json"] = "table") -> None:
    """Show what the ended jobs of a stage measured and cost.

    Args:
        stage: A stage of stages/; `local` is read from the running embedded cloud.
        output: A table for people, or JSON for programs, which also holds all that each job saved.
    """
    deployment = _deployment(stage)
    records = deployment.records()
    rows, compared = [row(record) for record in records], trainings(records, deployment.published())
    not_run = _cloud().left_out(stage) if stage == "local" else {}
    if output == "json":
        sys.stdout.write(json_text(rows, compared, not_run) + "\n")
    else:
        show(console(), rows, compared, not_run)


@app.command
def predict(
    *,
    job: str,
    data: Path,
    device: str | None = None,
    stage: Stage = "local",
    output: Literal["table", "json"] = "table",
) -> None:
    """Predict labels with the model that a job trained.

    Args:
        job: A launched job, or a job of a jobs.toml, of which the latest launch is taken.
        data: A file of samples: a line of numbers each, with commas between; a label may follow and is passed over.
        device: The simulator to evaluate the model on, such as local:pennylane/lightning.qubit; without, one that suits
            its qubits.
        stage: A stage of stages/; `local` is read from the running embedded cloud.
        output: A table for people or JSON for programs.
    """
    found = prediction.predict(_deployment(stage), job, data, PROJECT / "job_sources", device)
    if output == "json":
        sys.stdout.write(prediction.json_text(found) + "\n")
    else:
        console().print(prediction.table(found))


@local.command
def up() -> None:
    """Start the embedded cloud in the background; does nothing when it is running."""
    cloud = _cloud()
    with Progress(console()) as progress:
        progress.step("Starting the embedded cloud")
        cloud.up()
        environment = cloud.environment()
        progress.event(f"AWS at {environment['AWS_ENDPOINT_URL']}")
        progress.event(f"Braket at {environment['AWS_ENDPOINT_URL_BRAKET']}")


@local.command
def deploy(*, stage: Stage = "local") -> None:
    """Deploy a stage into the embedded cloud with the CDK CLI, starting the cloud when needed."""
    load_stage(PROJECT / "stages", stage)
    cloud = _cloud()
    with Progress(console()) as progress:
        progress.step(f"Deploying stage {stage}")
        cloud.up()
        cloud.deploy(stage, on_event=lambda event: progress.event(str(event)))


@local.command
def destroy(*, stage: Stage = "local") -> None:
    """Destroy a stage in the embedded cloud; jobs that still run are cancelled."""
    load_stage(PROJECT / "stages", stage)
    with Progress(console()) as progress:
        progress.step(f"Destroying stage {stage}")
        _cloud().destroy(stage, on_event=lambda event: progress.event(str(event)))


@local.command
def down() -> None:
    """End the embedded cloud with everything that runs in it, and remove its files."""
    _cloud().down()


@local.command
def env() -> None:
    """Print the variables that point any AWS client at the running embedded cloud: eval "$(hybridjobs local env)"."""
    variables = _cloud().environment()
    sys.stdout.write(f"unset {' '.join(UNSET)}\n")
    for name, value in variables.items():
        sys.stdout.write(f"export {name}={shlex.quote(value)}\n")


def _cloud() -> LocalCloud:
    return LocalCloud(PROJECT)


def _deployment(stage: str) -> Deployment:
    load_stage(PROJECT / "stages", stage)
    cloud = _cloud()
    return Deployment.connect(stage, cloud.environment() if stage == "local" else None)


def main() -> None:
    """Run the command; a project error ends it with its message and exit code 1."""
    try:
        app()
    except ProjectError as error:
        Console(stderr=True).print(f"[bold red]error:[/bold red] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
