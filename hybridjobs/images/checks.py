"""What an image needs to run a hybrid job, and what to do about each thing that it lacks. Pure decisions."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from hybridjobs.model.errors import SpecProblem

# The oldest Python that container_assets/entrypoint runs on.
OLDEST_PYTHON = (3, 10)
CODE_FOLDER = "/opt/ml/code"
GIGABYTE = 1_000_000_000


@dataclass(frozen=True)
class ImageFacts:
    """What was found out about an image.

    `size_bytes` is the size of its layers unpacked. `programs` are those of the wanted ones that are on its PATH.
    `python_version` is (major, minor) of `python`, None where it does not run; `modules` are those of the wanted ones
    that it imports. `has_program_file` says whether SAGEMAKER_PROGRAM is in /opt/ml/code. `passes_command` says whether
    the ENTRYPOINT runs the command that the image is started with.
    """

    architecture: str
    size_bytes: int
    variables: dict[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] = ()
    has_shell: bool = True
    programs: frozenset[str] = frozenset()
    python_version: tuple[int, int] | None = None
    modules: frozenset[str] = frozenset()
    has_program_file: bool = False
    passes_command: bool = True


def problems_of(facts: ImageFacts, volume_gb: int) -> list[SpecProblem]:
    """List what keeps an image from running jobs on instances with volumes of `volume_gb` gigabytes; empty when fit."""
    if facts.architecture != "amd64":
        return [
            SpecProblem(
                problem="every instance type of Braket is x86-64, and no program of this image would start there",
                remedy="Build it with --platform linux/amd64, as `hybridjobs image build` does",
                key="architecture",
                value=facts.architecture,
            )
        ]
    return [*_volume(facts, volume_gb), *_start(facts)]


def _volume(facts: ImageFacts, volume_gb: int) -> Iterator[SpecProblem]:
    if facts.size_bytes > volume_gb * GIGABYTE:
        needed = facts.size_bytes // GIGABYTE + 1
        yield SpecProblem(
            problem=f"the image unpacks to {facts.size_bytes / GIGABYTE:.1f} GB and the volume of the job's instance "
            f"has {volume_gb} GB, so the instance could not pull it",
            remedy=f"Write instance.volume_gb = {2 * needed} or more, or make the image smaller",
            key="instance.volume_gb",
            value=volume_gb,
        )


def _start(facts: ImageFacts) -> Iterator[SpecProblem]:
    if not facts.passes_command:
        yield SpecProblem(
            problem="this ENTRYPOINT does not run the command train, with which the service starts a job",
            remedy='Write ENTRYPOINT [] into the Dockerfile, or end the entry point\'s script with exec "$@"',
            key="ENTRYPOINT",
            value=list(facts.entrypoint),
        )
    if not facts.has_shell:
        yield SpecProblem(
            problem="the image has no /bin/sh, so what else it holds can't be looked at",
            remedy="Build it on a base with a shell, such as debian:bookworm-slim; jobs' programs in sh need one too",
        )
        return
    if "train" not in facts.programs:
        yield SpecProblem(
            problem="the command train, with which the service starts a job, is not on the PATH",
            remedy="Add RUN pip install sagemaker-training==5.1.1 to the Dockerfile, and its bin folder to ENV PATH",
        )
    yield from _python(facts)
    yield from _program(facts)


def _python(facts: ImageFacts) -> Iterator[SpecProblem]:
    if "python" not in facts.programs:
        yield SpecProblem(
            problem="there is no python on the PATH, and train starts SAGEMAKER_PROGRAM with it",
            remedy="Install Python under this name, for example RUN apt-get install -y python3 python-is-python3",
        )
        return
    if facts.python_version is None or facts.python_version < OLDEST_PYTHON:
        found = "does not run" if facts.python_version is None else "is Python {}.{}".format(*facts.python_version)
        yield SpecProblem(
            problem=f"python in this image {found}",
            remedy="Install Python {}.{} or newer".format(*OLDEST_PYTHON),
        )
        return
    for module, purpose in (("boto3", "fetches the job's source from S3"), ("pip", "installs requirements.txt")):
        if module not in facts.modules:
            yield SpecProblem(
                problem=f"python in this image has no {module}, which {purpose}",
                remedy=f"Add RUN python -m pip install {module} to the Dockerfile"
                if module != "pip"
                else "Add RUN python -m ensurepip, or install python3-pip",
            )


def _program(facts: ImageFacts) -> Iterator[SpecProblem]:
    program = facts.variables.get("SAGEMAKER_PROGRAM")
    copy = f"COPY entrypoint/braket_entrypoint.py {CODE_FOLDER}/braket_entrypoint.py"
    if not program:
        yield SpecProblem(
            problem="the variable SAGEMAKER_PROGRAM is not set, so train does not know what to start",
            remedy=f"Add ENV SAGEMAKER_PROGRAM=braket_entrypoint.py and {copy} to the Dockerfile",
        )
    elif not facts.has_program_file:
        yield SpecProblem(
            problem=f"there is no {CODE_FOLDER}/{program}",
            remedy=f"Add {copy} to the Dockerfile, built with container_assets as context",
            key="SAGEMAKER_PROGRAM",
            value=program,
        )
