"""Predicts with the model that a job trained: takes it out of the job's results and runs the source's code on it."""

import importlib
import json
import posixpath
import shutil
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Final

from rich.table import Table

from hybridjobs.deployment import Deployment, Launch
from hybridjobs.model.errors import ProjectError, closest
from hybridjobs.report.text import plain

MODEL_FILE: Final = "model.pt"
# The models of qml_source take kilobytes; what else a job saved is passed over without being unpacked.
LARGEST_MODEL_BYTES: Final = 1 << 30
MOST_PASSED_BYTES: Final = 20 << 30
_WITH_ERRORS: Final = ("data", "model", "simulators")


class PredictionError(ProjectError):
    """A prediction that can't be made, with what to do about it."""


@dataclass(frozen=True)
class Prediction:
    """One sample's predicted label, and the model's output, whose sign is the class."""

    label: str
    output: float


def predict(
    deployment: Deployment, job: str, data: Path, job_sources: Path, device: str | None = None
) -> list[Prediction]:
    """Predict the label of every sample in `data` by the model that `job` trained.

    Args:
        deployment: The stage that the job was launched in.
        job: The name of a launched job, or of a job in a jobs.toml, of which the latest launch is taken.
        data: A file of samples: a line of numbers each, separated by commas; a label may follow.
        job_sources: The folder of the job sources, whose code made the model.
        device: The simulator to evaluate the model on; None for one that suits its qubits.

    Raises:
        PredictionError: The job is unknown, has not completed or has no model, or model, data or device can't be used.
        DeploymentError: The job's results can't be read.
    """
    launch = _completed(deployment, job)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / MODEL_FILE
        with tempfile.TemporaryFile() as archive:
            deployment.results_archive(launch.job_name, archive)
            archive.seek(0)
            with model.open("wb") as target:
                take_model(launch.job_name, archive, target)
        return _predict(model, data, job_sources, device)


def json_text(predictions: Sequence[Prediction]) -> str:
    """The predictions as one JSON document, `{"predictions": [{"label", "output"}, ...]}`."""
    return json.dumps({"predictions": [asdict(each) for each in predictions]}, indent=2)


def table(predictions: Sequence[Prediction]) -> Table:
    """The predictions as a table, a sample a line."""
    drawn = Table("sample", "label", "output")
    for number, each in enumerate(predictions, start=1):
        drawn.add_row(str(number), plain(each.label), f"{each.output:+.4f}")
    return drawn


def take_model(job_name: str, archive: IO[bytes], target: IO[bytes]) -> None:
    """Copy the model out of a job's model.tar.gz; nothing else of the archive is written anywhere.

    Raises:
        PredictionError: The archive is broken or has no model.
    """
    passed = 0
    try:
        with tarfile.open(fileobj=archive, mode="r|gz") as members:
            for member in members:
                content = members.extractfile(member) if _is_model(member) else None
                if content is not None:
                    if member.size > LARGEST_MODEL_BYTES:
                        raise PredictionError(f"{MODEL_FILE} of {job_name} has {member.size} bytes: not a model")
                    shutil.copyfileobj(content, target)
                    return
                passed += member.size
                if passed > MOST_PASSED_BYTES:
                    break
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise PredictionError(
            f"the results of {job_name} can't be unpacked: {type(error).__name__}: {error}. Run the job again"
        ) from error
    raise PredictionError(
        f"{job_name} saved no {MODEL_FILE}. Name a job that trains a model, such as those of job_sources/qml_source"
    )


def _is_model(member: tarfile.TarInfo) -> bool:
    return member.isreg() and posixpath.normpath(member.name) == MODEL_FILE


def _completed(deployment: Deployment, job: str) -> Launch:
    launches = {launch.job_name: launch for launch in deployment.launches()}
    launch = launches.get(deployment.parameters.get(f"jobs/{job}", job))
    if launch is None:
        raise PredictionError(f"stage {deployment.stage!r} has no job {job!r}. {_hint(job, deployment, launches)}")
    if launch.is_open:
        raise PredictionError(
            f"{launch.job_name} is {launch.state} and has no model yet. Wait until it has completed: hybridjobs status"
        )
    if launch.state != "COMPLETED":
        raise PredictionError(
            f"{launch.job_name} ended {launch.state} and left no model: {launch.reason or 'no reason is known'}. "
            "Repair the cause and run it again, or name another job"
        )
    return launch


def _hint(job: str, deployment: Deployment, launches: Iterable[str]) -> str:
    catalogue = [name.removeprefix("jobs/") for name in deployment.parameters if name.startswith("jobs/")]
    near = closest(job, [*catalogue, *launches])
    return f"Did you mean {near!r}?" if near else "hybridjobs status lists the jobs"


def _predict(model_file: Path, data_file: Path, job_sources: Path, device: str | None) -> list[Prediction]:
    with _importable(job_sources):
        try:
            # Loaded only here: PyTorch and a simulator take seconds, and no other command needs them.
            code = importlib.import_module("qml_source.predict")
        except ModuleNotFoundError as error:
            raise PredictionError(
                f"the model can't be loaded: {error.name} is not installed in {sys.prefix}. Install it: pip install "
                "-r requirements/jobs.txt -r requirements/torch.txt"
            ) from error
        data, model, simulators = (importlib.import_module(f"qml_source.{each}") for each in _WITH_ERRORS)
        try:
            found: list[dict[str, Any]] = code.predict(model_file, data_file, device)
        except (data.DataError, model.ModelError, simulators.DeviceError) as error:
            raise PredictionError(str(error)) from error
    return [Prediction(each["label"], each["output"]) for each in found]


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
