"""Synthesises the stacks of one stage: `cdk synth -c stage=<name>`, or `python app.py` without the CDK CLI."""

import json
import sys
from pathlib import Path

from aws_cdk import App, Environment, Validations
from cdk_nag import AwsSolutionsChecks

from hybridjobs.model.catalogue import load_catalogue
from hybridjobs.model.errors import ProjectError
from hybridjobs.model.gpu_jobs import WITHOUT_GPU, gpu_jobs
from hybridjobs.model.spending import check_spending
from hybridjobs.model.stage import load_stage, selected_jobs
from stacks.jobs import JobsStack
from stacks.registry import RegistryStack
from stacks.rules.plugin import ProjectRules
from stacks.storage import StorageStack

ROOT = Path(__file__).resolve().parent


def build(app: App, project: Path = ROOT) -> None:
    """Add the stacks of the stage that the context names to `app`, with the rules they have to pass.

    `project` is the folder that holds stages, job_sources, lambdas and container_assets.

    Raises:
        ProjectError: The stage or one of its jobs is not valid, or costs more than the stage allows.
    """
    stage = load_stage(project / "stages", str(app.node.get_context("stage")))
    jobs = selected_jobs(stage, load_catalogue(project / "job_sources"))
    if app.node.try_get_context(WITHOUT_GPU):
        without = gpu_jobs(jobs)
        jobs = [job for job in jobs if job not in without]
    check_spending(stage, [job.spec for job in jobs])

    env = Environment(account=stage.account, region=stage.region)
    registry = RegistryStack(app, "Registry", stage=stage, env=env)
    storage = StorageStack(app, "Storage", stage=stage, env=env)
    launched = JobsStack(app, "Jobs", stage=stage, jobs=jobs, project=project, env=env)
    launched.add_stack_dependency(registry)
    launched.add_stack_dependency(storage)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app), ProjectRules())


def main() -> None:
    """Synthesise; what the project refuses ends with its message alone."""
    # The CDK CLI passes the context of cdk.json itself; without the CLI the feature flags have to be the same.
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    app = App(context=context, analytics_reporting=False)
    try:
        build(app)
    except ProjectError as error:
        sys.exit(str(error))
    app.synth()


if __name__ == "__main__":
    main()
