"""A project of the same shape as this one, with one small job source, to deploy into an embedded cloud of its own."""

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# One job source for all that a test needs a job to do; `behaviour` chooses.
_SOURCE = """
import time

from braket.jobs import get_hyperparameters, save_job_result


def main():
    hyperparameters = get_hyperparameters()
    behaviour = hyperparameters["behaviour"]
    if behaviour == "raise":
        raise ValueError("the ansatz has no layers")
    if behaviour == "sleep":
        time.sleep(600)
    save_job_result({"seen": hyperparameters})
"""

_JOB = """
[jobs.{name}]
entry_point = "small_source.job:main"
device = "local:pennylane/lightning.qubit"
instance.type = "{instance}"
limits.max_runtime_seconds = 700
hyperparameters = {{ behaviour = "{behaviour}", layers = {layers} }}
"""
# The synthesis can't know what a repository holds: this is found out when the job is launched.
_NO_SUCH_IMAGE = 'image = "000000000000.dkr.ecr.us-east-1.amazonaws.com/amazon-braket-hybrid-jobs-local:absent"\n'


class SmallProject:
    """The folder `root` with this project's app, stacks and Lambdas, and the jobs that a test writes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for file in ("app.py", "cdk.json"):
            shutil.copy(ROOT / file, root)
        for folder in ("stacks", "lambdas", "container_assets", "node_modules"):
            (root / folder).symlink_to(ROOT / folder)
        self._source = root / "job_sources" / "small_source"
        self._source.mkdir(parents=True)
        (self._source / "__init__.py").touch()
        (self._source / "job.py").write_text(_SOURCE)
        (root / "stages").mkdir()

    def declare(self, *, layers: int = 1, instance: str = "ml.m5.2xlarge", **behaviours: str) -> None:
        """Write the jobs, name -> behaviour, and a stage that launches all of them; `layers` changes their spec.

        A job with the behaviour `no image` can't be launched.
        """
        jobs = [
            _JOB.format(name=name, behaviour=behaviour, layers=layers, instance=instance)
            + (_NO_SUCH_IMAGE if behaviour == "no image" else "")
            for name, behaviour in behaviours.items()
        ]
        (self._source / "jobs.toml").write_text("".join(jobs))
        (self.root / "stages" / "local.toml").write_text(
            f'launch = {list(behaviours)}\nremoval = "destroy"\naccount = "000000000000"\n'
            'region = "us-east-1"\nmax_spend_usd = 10.0\n'
        )
