"""A project of the same shape as this one, with one small job source, to deploy into an embedded cloud of its own."""

import shutil
import sys
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


# In the place of a container engine: every build succeeds, and a push puts an image without layers into the embedded
# registry. The file `architecture` beside it says for which processor.
_DOCKER = """#!{python}
import hashlib, json, os, sys
from pathlib import Path
from urllib.request import Request, urlopen
import boto3

arguments = sys.argv[1:]
with Path(__file__).with_name("docker.log").open("a") as log:
    log.write(" ".join(arguments) + "\\n")
if arguments[0] == "inspect":
    sys.exit("no such image")
if arguments[0] == "push":
    repository, tag = arguments[-1].rpartition("/")[2].split(":")
    file = Path(__file__).with_name("architecture")
    architecture = file.read_text() if file.exists() else "amd64"
    config = json.dumps(
        {{
            "os": "linux",
            "architecture": architecture,
            "config": {{"Labels": {{"tag": tag}}}},
            "rootfs": {{"type": "layers", "diff_ids": []}},
        }}
    ).encode()
    digest = "sha256:" + hashlib.sha256(config).hexdigest()
    address = os.environ["AWS_ENDPOINT_URL"] + "/v2/" + repository + "/blobs/uploads/?digest=" + digest
    urlopen(Request(address, data=config, method="POST")).close()
    media_type = "application/vnd.docker.distribution.manifest.v2+json"
    manifest = {{
        "schemaVersion": 2,
        "mediaType": media_type,
        "config": {{
            "mediaType": "application/vnd.docker.container.image.v1+json",
            "digest": digest,
            "size": len(config),
        }},
        "layers": [],
    }}
    boto3.client("ecr").put_image(
        repositoryName=repository,
        imageTag=tag,
        imageManifest=json.dumps(manifest),
        imageManifestMediaType=media_type,
    )
"""


class SmallProject:
    """The folder `root` with this project's app, stacks and Lambdas, and the jobs that a test writes.

    `programs` holds a docker command for the PATH, and `dockerfile` is that of the image of packaged jobs.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        for file in ("app.py", "cdk.json"):
            shutil.copy(ROOT / file, root)
        for folder in ("stacks", "lambdas", "node_modules"):
            (root / folder).symlink_to(ROOT / folder)
        self.dockerfile = root / "container_assets" / "packaged" / "Dockerfile"
        self.dockerfile.parent.mkdir(parents=True)
        self.dockerfile.write_text("FROM scratch\n")
        self.programs = root / "programs"
        self.programs.mkdir()
        docker = self.programs / "docker"
        docker.write_text(_DOCKER.format(python=sys.executable))
        docker.chmod(0o700)
        self._source = root / "job_sources" / "small_source"
        self._source.mkdir(parents=True)
        (self._source / "__init__.py").touch()
        (self._source / "job.py").write_text(_SOURCE)
        (root / "stages").mkdir()

    def push_for(self, architecture: str) -> None:
        """Let every image that is pushed from now on be for that processor."""
        (self.programs / "architecture").write_text(architecture)

    def builds(self) -> list[str]:
        """What the docker command was asked to build and push, in order: `build` or `push`."""
        log = self.programs / "docker.log"
        words = [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []
        return [word for word in words if word in {"build", "push"}]

    def declare(
        self, *, layers: int = 1, instance: str = "ml.m5.2xlarge", packaged: str = "", **behaviours: str
    ) -> None:
        """Write the jobs, name -> behaviour, and a stage that launches all of them; `layers` changes their spec.

        A job with the behaviour `no image` can't be launched. The job `packaged` has an image that is built from
        `dockerfile`.
        """
        jobs = [
            _JOB.format(name=name, behaviour=behaviour, layers=layers, instance=instance)
            + (_NO_SUCH_IMAGE if behaviour == "no image" else 'image = "asset:packaged"\n' if name == packaged else "")
            for name, behaviour in behaviours.items()
        ]
        (self._source / "jobs.toml").write_text("".join(jobs))
        (self.root / "stages" / "local.toml").write_text(
            f'launch = {list(behaviours)}\nremoval = "destroy"\naccount = "000000000000"\n'
            'region = "us-east-1"\nmax_spend_usd = 10.0\n'
        )
