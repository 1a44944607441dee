"""What tests of containers share: one engine for all of them, a client for it, and a base image."""

import os
from collections.abc import Iterator
from typing import Any

import pytest


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
