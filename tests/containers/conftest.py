"""What tests of containers share: one engine for all of them, a client for it, a base image, and the built images."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FOLDERS = ("cpp", "julia", "pennylane")


@pytest.fixture(scope="session")
def engine() -> Iterator[dict[str, str]]:
    """The variables of the container engine, also in `os.environ` meanwhile: an engine is started where none runs."""
    # Imported only here: other tests in this folder need no client for an engine.
    from tests.containers.engine import NoEngineError, container_engine

    try:
        with container_engine() as variables, pytest.MonkeyPatch.context() as patch:
            for name, value in variables.items():
                patch.setitem(os.environ, name, value)
            yield variables
    except NoEngineError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def engine_client(engine: dict[str, str]) -> Iterator[Any]:
    """A docker.DockerClient."""
    from hybridjobs.local.runners.engine import connect

    client = connect()
    yield client
    client.close()


@pytest.fixture(scope="session")
def base_image_name(engine_client: Any) -> str:
    """The name of an image that can run jobs, made of this machine's Python."""
    from tests.containers.base_image import base_image

    return base_image(engine_client)


@pytest.fixture(scope="session")
def build_settings(engine_client: Any) -> Path:
    """This machine's build settings, with bases that can be had here."""
    from tests.containers.stand_ins import NoStandInError, settings_file

    try:
        return settings_file(engine_client)
    except NoStandInError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def images(build_settings: Path) -> dict[str, str]:
    """Names of the project's built images by their folder."""
    from hybridjobs.images.build import build_command, build_image
    from hybridjobs.model.image_build import load_image_build

    assets = Path(__file__).parents[2] / "container_assets"
    names = {folder: f"hybrid-jobs-test-{folder}:1" for folder in FOLDERS}
    for folder, name in names.items():
        build_image(assets, folder, build_command(folder, tag=name, settings=load_image_build(str(build_settings))))
    return names
