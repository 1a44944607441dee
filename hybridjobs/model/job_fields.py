"""The keys of a job one by one: what CreateJob accepts of each, and what to write instead of what it refuses."""

import math
import re
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator

from hybridjobs.model.credentials import holds_a_credential
from hybridjobs.model.entry_points import checked_entry_point
from hybridjobs.model.errors import SpecError
from hybridjobs.model.images import parse_image
from hybridjobs.model.instances import instance_type
from hybridjobs.model.validation import refuse

# CreateJob allows 50 characters; the launcher appends a dash and ten hexadecimal digits.
LONGEST_JOB_NAME: Final = 39
LONGEST_RUNTIME_SECONDS: Final = 432_000
MOST_HYPERPARAMETERS: Final = 100
MOST_INPUT_CHANNELS: Final = 20
# The Braket API names no limit; EBS, which the volume is on, does.
LARGEST_VOLUME_GB: Final = 16_384

DATA_PARALLEL_HYPERPARAMETERS: Final = ("sagemaker_distributed_dataparallel_enabled", "sagemaker_instance_type")

_JOB_NAME: Final = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9])*")
_BENCHMARK: Final = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}")
_CHANNEL: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LOCAL_DEVICE: Final = re.compile(r"local:[A-Za-z0-9._-]+/[A-Za-z0-9._-]+")
_DEVICE_ARN: Final = re.compile(r"arn:aws[a-z-]*:braket:[a-z0-9-]*::device/(qpu|quantum-simulator)/[^/\s]+/[^/\s]+")
_CONTROL_CHARACTER: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def _job_name(name: str) -> str:
    if len(name) > LONGEST_JOB_NAME:
        raise refuse(
            f"a job's name may have {LONGEST_JOB_NAME} characters, and this has {len(name)}: Braket allows 50, and "
            "every launch appends a dash and ten digits",
            f"Shorten it by {len(name) - LONGEST_JOB_NAME}",
        )
    if not _JOB_NAME.fullmatch(name):
        raise refuse(
            "Braket allows letters, digits and inner dashes in a job's name",
            f"Rename the table, for example to [jobs.{re.sub('[^a-zA-Z0-9]+', '-', name).strip('-') or 'my-job'}]",
        )
    return name


def _device(device: str) -> str:
    if not 1 <= len(device) <= 256:
        raise refuse(
            f"a device may have 1 to 256 characters, and this has {len(device)}",
            'Write a device ARN or "local:<provider>/<simulator>"',
        )
    if device.startswith("arn:"):
        if not _DEVICE_ARN.fullmatch(device):
            raise refuse(
                "this is not the ARN of a Braket device",
                'Write "arn:aws:braket:<region>::device/<qpu or quantum-simulator>/<provider>/<name>"',
            )
    elif not _LOCAL_DEVICE.fullmatch(device):
        raise refuse(
            "this is neither a device ARN nor an embedded simulator, whose provider and name consist of letters, "
            "digits, dots, dashes and underscores",
            'Write "local:<provider>/<simulator>", such as "local:pennylane/lightning.qubit"',
        )
    return device


def _image(image: str) -> str:
    try:
        parse_image(image)
    except SpecError as error:
        raise refuse(error.problem, error.remedy) from error
    return image


def _instance_type(name: str) -> str:
    try:
        instance_type(name)
    except SpecError as error:
        raise refuse(error.problem, error.remedy) from error
    return name


def _at_least_one(number: int) -> int:
    if number < 1:
        raise refuse("this must be 1 or more", "Write 1 or more")
    return number


def _volume(gigabytes: int) -> int:
    if not 1 <= gigabytes <= LARGEST_VOLUME_GB:
        raise refuse(
            f"a volume has 1 to {LARGEST_VOLUME_GB} gigabytes",
            "Write what the image, the inputs and the results need together; 30 is the default",
        )
    return gigabytes


def _runtime(seconds: int) -> int:
    if not 1 <= seconds <= LONGEST_RUNTIME_SECONDS:
        raise refuse(
            f"a job may run for 1 to {LONGEST_RUNTIME_SECONDS} seconds (five days)",
            "Write the longest time the job may take; it ends the job, and so its cost",
        )
    return seconds


def _hyperparameter_name(name: str) -> str:
    if not 1 <= len(name) <= 256:
        raise refuse(
            f"a hyperparameter's name may have 1 to 256 characters, and this has {len(name)}",
            "Rename the hyperparameter",
        )
    if _CONTROL_CHARACTER.search(name) or "\t" in name:
        raise refuse(
            "a hyperparameter's name is one line of text without control characters",
            "Rename the hyperparameter",
        )
    if name in DATA_PARALLEL_HYPERPARAMETERS:
        raise refuse(
            "this hyperparameter is sent by the project itself", 'Write distribution = "data_parallel" instead'
        )
    return name


def _hyperparameter_text(value: object) -> object:
    """Turn a TOML scalar into the string that Braket passes to the job."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        raise refuse("this number is not finite", "Write a finite number, or a string that the job itself interprets")
    if isinstance(value, int | float):
        return repr(value)
    if not isinstance(value, str):
        raise refuse(
            "a hyperparameter is a string, a number, true or false",
            "Write one of them; a list can be a string that the job splits",
        )
    return value


def _hyperparameter_value(value: str) -> str:
    if holds_a_credential(value):
        raise refuse(
            "this looks like a credential, and a job's log repeats its hyperparameters",
            "Remove it; the job's role gives the job what it may use, and AWS Secrets Manager keeps secrets",
        )
    if not 1 <= len(value) <= 2500:
        raise refuse(
            f"a hyperparameter's value may have 1 to 2500 characters, and this has {len(value)}",
            "Leave the hyperparameter out" if not value else "Put long values into a file of an input channel",
        )
    if _CONTROL_CHARACTER.search(value):
        raise refuse(
            "a hyperparameter's value is one line of text without control characters",
            "Put longer text into a file of an input channel",
        )
    return value


def _hyperparameters(values: dict[str, str]) -> dict[str, str]:
    if len(values) > MOST_HYPERPARAMETERS:
        raise refuse(
            f"a job may have {MOST_HYPERPARAMETERS} hyperparameters, and this has {len(values)}",
            "Put them into a file of an input channel",
        )
    return values


def _channel(name: str) -> str:
    if not _CHANNEL.fullmatch(name) or name in {".", ".."}:
        raise refuse(
            "a channel's name consists of 1 to 64 letters, digits, dots, dashes and underscores",
            'Rename the channel, for example to "input-graph"',
        )
    return name


def _input_path(path: str) -> str:
    if "://" in path:
        raise refuse(
            "inputs are files of the source folder, kept and hashed with it",
            "Put the file below the source folder, for example into inputs/",
        )
    parts = path.split("/")
    if not path or path.startswith("/") or "\\" in path or ".." in parts or re.match("[A-Za-z]:", path):
        raise refuse(
            "this does not lie below the source folder",
            'Write the path of a file or folder in the source folder, with "/", such as "inputs/graph.adjlist"',
        )
    return path


def _inputs(channels: dict[str, str]) -> dict[str, str]:
    if len(channels) > MOST_INPUT_CHANNELS:
        raise refuse(
            f"a job may have {MOST_INPUT_CHANNELS} input channels, and this has {len(channels)}",
            "Put several files into one folder and name the folder",
        )
    return channels


def _benchmark(name: str) -> str:
    if not _BENCHMARK.fullmatch(name):
        raise refuse(
            "a benchmark's name consists of up to 63 letters, digits, dots, dashes and underscores, and begins with a "
            "letter or digit",
            "Rename the benchmark in all of its jobs",
        )
    return name


JobName = Annotated[str, AfterValidator(_job_name)]
EntryPoint = Annotated[str, AfterValidator(checked_entry_point)]
Device = Annotated[str, AfterValidator(_device)]
ImageReference = Annotated[str, AfterValidator(_image)]
InstanceTypeName = Annotated[str, AfterValidator(_instance_type)]
AtLeastOne = Annotated[int, AfterValidator(_at_least_one)]
VolumeSize = Annotated[int, AfterValidator(_volume)]
RuntimeSeconds = Annotated[int, AfterValidator(_runtime)]
HyperparameterName = Annotated[str, AfterValidator(_hyperparameter_name)]
HyperparameterValue = Annotated[str, BeforeValidator(_hyperparameter_text), AfterValidator(_hyperparameter_value)]
Hyperparameters = Annotated[dict[HyperparameterName, HyperparameterValue], AfterValidator(_hyperparameters)]
Channel = Annotated[str, AfterValidator(_channel)]
InputPath = Annotated[str, AfterValidator(_input_path)]
Inputs = Annotated[dict[Channel, InputPath], AfterValidator(_inputs)]
BenchmarkName = Annotated[str, AfterValidator(_benchmark)]
