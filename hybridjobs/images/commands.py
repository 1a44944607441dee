"""`hybridjobs image`: what a deployment does with image assets, one step at a time and without one."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from hybridjobs.console import console
from hybridjobs.deployment import Deployment
from hybridjobs.images.build import build_command, build_image, default_tag
from hybridjobs.images.push import check_image, push_image
from hybridjobs.images.registry import StageRegistry
from hybridjobs.local.cloud import LocalCloud
from hybridjobs.local.runners.engine import connect
from hybridjobs.model.image_build import VARIABLE, load_image_build
from hybridjobs.model.stage import load_stage

PROJECT = Path(__file__).resolve().parents[2]
# The volume of an instance where jobs.toml names none.
DEFAULT_VOLUME_GB = 30

Volume = Annotated[int, Parameter(help="Volume in GB of the instances that are to run the image.")]

app = App(name="image", help="Job images: build, test and push them without a deployment.")


@app.command
def build(
    folder: str,
    *,
    target: str | None = None,
    tag: str | None = None,
    build_arg: dict[str, str] | None = None,
    settings: Annotated[str | None, Parameter(env_var=VARIABLE)] = None,
) -> None:
    """Build the image of a folder of container_assets for x86-64.

    Args:
        folder: The folder that holds the Dockerfile.
        target: A stage of the Dockerfile; the last one by default.
        tag: The image's name in the container engine; hybrid-jobs-<folder>:local by default.
        build_arg: A build argument, such as --build-arg.BASE_IMAGE=<reference>.
        settings: A TOML file with this machine's network, secrets and build arguments.
    """
    command = build_command(folder, target=target, tag=tag, settings=load_image_build(settings), arguments=build_arg)
    build_image(PROJECT / "container_assets", folder, command)
    console().print(f"built {tag or default_tag(folder, target)}", highlight=False)


@app.command(name="test")
def check(image: str, *, volume_gb: Volume = DEFAULT_VOLUME_GB) -> None:
    """Tell whether an image can run jobs, and what it lacks otherwise: exit code 1.

    Args:
        image: A folder of container_assets, built before, or any image of the container engine.
        volume_gb: Volume in GB of the instances that are to run the image.
    """
    reference = _reference(image)
    check_image(connect(), reference, volume_gb)
    console().print(f"{reference} can run jobs", highlight=False)


@app.command
def push(image: str, *, stage: str = "local", to: str | None = None, volume_gb: Volume = DEFAULT_VOLUME_GB) -> None:
    """Test an image, push it into the stage's repository, and print its address for `image` in jobs.toml.

    Args:
        image: A folder of container_assets, built before, or any image of the container engine.
        stage: A deployed stage of stages/; `local` is the running embedded cloud.
        to: Where to push, <account>.dkr.ecr.<region>.amazonaws.com/<repository>:<tag>; by default the stage's
            repository under a tag made of the image's content.
        volume_gb: Volume in GB of the instances that are to run the image.
    """
    load_stage(PROJECT / "stages", stage)
    environment = LocalCloud(PROJECT).environment() if stage == "local" else None
    registry = StageRegistry.of(Deployment.connect(stage, environment))
    address = push_image(connect(), _reference(image), registry, target=to, volume_gb=volume_gb)
    console().print(address, highlight=False, soft_wrap=True)


def _reference(image: str) -> str:
    return default_tag(image) if (PROJECT / "container_assets" / image / "Dockerfile").is_file() else image
