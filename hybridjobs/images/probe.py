"""Looks into an image: what the engine says of it, and what a container of it says of itself. Nothing of it is kept."""

import io
import re
import tarfile
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from docker.errors import APIError, ImageNotFound
from requests.exceptions import ReadTimeout, RequestException

from hybridjobs.images.checks import CODE_FOLDER, ImageFacts
from hybridjobs.model.errors import ProjectError

WANTED_PROGRAMS = ("train", "python")
WANTED_MODULES = ("boto3", "pip")
_LABELS = {"hybrid-jobs.probe": "1"}
_PATIENCE_SECONDS = 60
_PROBE_FOLDER = "/hybrid-jobs-probe"
_QUESTIONS = f"""
for name in {" ".join(WANTED_PROGRAMS)}; do command -v "$name" > /dev/null && echo "program=$name"; done
python -c 'import sys; print("python=%d.%d" % sys.version_info[:2])'
for name in {" ".join(WANTED_MODULES)}; do python -c "import $name" && echo "module=$name"; done
test -n "$SAGEMAKER_PROGRAM" && test -f "{CODE_FOLDER}/$SAGEMAKER_PROGRAM" && echo program-file=yes
exit 0
"""


class ImageNotThereError(ProjectError):
    """The image is not in the container engine."""


def facts_of(client: Any, reference: str) -> ImageFacts:
    """Find out about the image that `reference` names in the engine of `client` (a docker.DockerClient).

    Raises:
        ImageNotThereError: The engine has no such image.
    """
    image = local_image(client, reference)
    attributes = image.attrs
    configuration = attributes.get("Config") or {}
    variables = dict(entry.split("=", 1) for entry in configuration.get("Env") or () if "=" in entry)
    entrypoint = tuple(configuration.get("Entrypoint") or ())
    seen: dict[str, Any] = {
        "architecture": attributes["Architecture"],
        "size_bytes": attributes["Size"],
        "variables": variables,
        "entrypoint": entrypoint,
    }
    if attributes["Architecture"] != "amd64":
        return ImageFacts(**seen)
    answers = _ask(client, image, ["-c", _QUESTIONS], entrypoint=["/bin/sh"])
    seen["has_shell"] = answers is not None
    seen["passes_command"] = not entrypoint or _passes_command(client, image, variables)
    return ImageFacts(**seen, **parsed_answers(answers or ""))


def local_image(client: Any, reference: str) -> Any:
    """Return the image (docker.models.images.Image); ImageNotThereError where the engine has none of that name."""
    try:
        return client.images.get(reference)
    except ImageNotFound as error:
        raise ImageNotThereError(
            f"there is no image {reference} in the container engine. Build it with `hybridjobs image build`, or pull it"
        ) from error


def parsed_answers(text: str) -> dict[str, Any]:
    """Read what the probe printed: lines of name=value among whatever the image's own programs print."""
    found = re.findall(r"^(program|module|python|program-file)=(\S+)$", text, re.MULTILINE)
    version = next((value for name, value in found if name == "python"), None)
    number = re.match(r"(\d+)\.(\d+)", version) if version else None
    return {
        "programs": frozenset(value for name, value in found if name == "program"),
        "modules": frozenset(value for name, value in found if name == "module"),
        "python_version": (int(number[1]), int(number[2])) if number else None,
        "has_program_file": ("program-file", "yes") in found,
    }


def _passes_command(client: Any, image: Any, variables: Mapping[str, str]) -> bool:
    """Start the image with a `train` that prints a word, and see whether the word comes out."""
    word = uuid.uuid4().hex
    path = f"{_PROBE_FOLDER}:{variables.get('PATH', '/usr/local/bin:/usr/bin:/bin')}"
    script = f"#!/bin/sh\necho {word}\n".encode()
    answer = _ask(client, image, ["train"], environment={"PATH": path}, program=script)
    return answer is not None and word in answer


def _ask(client: Any, image: Any, command: Sequence[str], program: bytes | None = None, **options: Any) -> str | None:
    """Return what a container prints to standard output, with `program` as the command train; None if none starts."""
    container = client.containers.create(image.id, list(command), network_mode="none", labels=_LABELS, **options)
    try:
        if program is not None:
            container.put_archive("/", _archive(f"{_PROBE_FOLDER}/train".lstrip("/"), program))
        try:
            container.start()
        except APIError:
            return None
        try:
            container.wait(timeout=_PATIENCE_SECONDS)
        except (ReadTimeout, RequestException):  # an entry point that waits for something else
            container.kill()
        output: bytes = container.logs(stdout=True, stderr=False)
        return output.decode(errors="replace")
    finally:
        container.remove(force=True, v=True)


def _archive(name: str, content: bytes) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        header = tarfile.TarInfo(name)
        header.size, header.mode = len(content), 0o755
        archive.addfile(header, io.BytesIO(content))
    return raw.getvalue()
