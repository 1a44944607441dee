"""What a command prints in a container, read whole."""

from collections.abc import Mapping, Sequence
from typing import Any

_SECONDS = 600


def output_of(client: Any, image: str, command: Sequence[str], volumes: Mapping[str, Any] | None = None) -> str:
    """Return the standard output of a command in a new container of an image; AssertionError where the command fails.

    The log is read once the container has ended. docker-py's `containers.run` follows it meanwhile, and the engine may
    end such a stream with the container, in the middle of the output.
    """
    container = client.containers.create(image, list(command), network_mode="none", volumes=dict(volumes or {}))
    try:
        container.start()
        code = container.wait(timeout=_SECONDS)["StatusCode"]
        output, errors = (container.logs(stdout=wanted, stderr=not wanted).decode() for wanted in (True, False))
        assert code == 0, f"{command} ended with {code}: {errors[-2000:]}"
        return str(output)
    finally:
        container.remove(force=True, v=True)
