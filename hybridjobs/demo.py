"""`hybridjobs demo`: the whole path in the embedded cloud, from `cdk deploy` to the report, leaving nothing behind."""

import time
from collections.abc import Mapping

from rich.console import Console

from hybridjobs.console import Progress
from hybridjobs.deployment import Deployment, Launch
from hybridjobs.local.cloud import LocalCloud
from hybridjobs.model.errors import ProjectError
from hybridjobs.report.rows import row
from hybridjobs.report.table import show
from hybridjobs.report.training import trainings

_POLL_SECONDS = 0.5


class DemoFailedError(ProjectError):
    """A job of the demo did not complete."""


def run_demo(cloud: LocalCloud, console: Console, time_limit_seconds: float = 900.0, stage: str = "local") -> None:
    """Start the embedded cloud, deploy `stage`, wait for its jobs, print the report, and remove everything.

    Raises:
        DemoFailedError: A job did not complete, or was still open after `time_limit_seconds`.
        ProjectError: The cloud or the deployment failed.
    """
    progress = Progress(console)
    if cloud.running():
        raise DemoFailedError(
            "an embedded cloud is already running in this project, and the demo would remove it. "
            "End it first: hybridjobs local down"
        )
    with progress:
        progress.step("Starting the embedded cloud")
        launches = _run(cloud, console, progress, time_limit_seconds, stage)
    unfinished = [launch for launch in launches if launch.state != "COMPLETED"]
    if unfinished:
        raise DemoFailedError(
            "not every job completed: "
            + "; ".join(f"{launch.job_name} is {launch.state} ({launch.reason})" for launch in unfinished)
        )


def _run(
    cloud: LocalCloud, console: Console, progress: Progress, time_limit_seconds: float, stage: str
) -> list[Launch]:
    with cloud.session():
        environment = cloud.environment()
        progress.event(f"AWS at {environment['AWS_ENDPOINT_URL']}")
        progress.event(f"Braket at {environment['AWS_ENDPOINT_URL_BRAKET']}")
        progress.step(f"Deploying stage {stage} with the CDK CLI")
        cloud.deploy(stage, on_event=lambda event: progress.event(str(event)))
        deployment = Deployment.connect(stage, environment)
        progress.step("Running the jobs")
        not_run = cloud.left_out(stage)
        launches = wait_for_jobs(deployment, progress, time_limit_seconds)
        records = deployment.records()
        show(console, [row(record) for record in records], trainings(records, deployment.published()), not_run)
        progress.step("Destroying the stacks")
        cloud.destroy(stage, on_event=lambda event: progress.event(str(event)))
        progress.step("Ending the embedded cloud")
        return launches


def wait_for_jobs(deployment: Deployment, progress: Progress, time_limit_seconds: float) -> list[Launch]:
    """Show each change of each launch until none is open; return the launches as they ended.

    Raises:
        DemoFailedError: A launch was still open after `time_limit_seconds`.
    """
    deadline = time.monotonic() + time_limit_seconds
    seen: Mapping[str, Launch] = {}
    while True:
        launches = deployment.launches()
        for launch in launches:
            before = seen.get(launch.job_name)
            if before is None or (before.state, before.reason) != (launch.state, launch.reason):
                progress.event(f"{launch.job_name} {launch.state}{f' ({launch.reason})' if launch.reason else ''}")
        seen = {launch.job_name: launch for launch in launches}
        if not any(launch.is_open for launch in launches):
            return launches
        if time.monotonic() > deadline:
            still_open = ", ".join(launch.job_name for launch in launches if launch.is_open)
            raise DemoFailedError(f"still open after {time_limit_seconds:g} s: {still_open}")
        time.sleep(_POLL_SECONDS)
