"""A hybrid job as its `jobs.toml` declares it, valid for CreateJob, and the document that its launcher receives."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from hybridjobs.model import job_fields, job_rules
from hybridjobs.model.inputs import InputFile
from hybridjobs.model.instances import InstanceType, instance_type
from hybridjobs.model.validation import Declaration, refuse_several

# The custom resource that carries a launch document into a stack.
LAUNCH_RESOURCE_TYPE: Final = "Custom::BraketHybridJob"


class Instance(Declaration):
    """The machines of a job: `count` instances of `type`, each with a volume of `volume_gb` gigabytes."""

    missing: ClassVar[Mapping[str, str]] = {"type": 'Write type = "ml.m5.2xlarge", or another instance type of Braket'}
    remedies: ClassVar[Mapping[str, str]] = {
        "instanceType": "It is called type here",
        "instanceCount": "It is called count here",
        "volumeSizeInGb": "It is called volume_gb here",
    }

    type: job_fields.InstanceTypeName
    count: job_fields.AtLeastOne = 1
    volume_gb: job_fields.VolumeSize = 30


class Limits(Declaration):
    """What a job may use: it is stopped after `max_runtime_seconds` (1 to 432000)."""

    missing: ClassVar[Mapping[str, str]] = {
        "max_runtime_seconds": "Write max_runtime_seconds = <the longest time the job may take>; Braket's own default "
        "is five days, and every minute is billed"
    }
    remedies: ClassVar[Mapping[str, str]] = {"maxRuntimeInSeconds": "It is called max_runtime_seconds here"}

    max_runtime_seconds: job_fields.RuntimeSeconds


class JobSpec(Declaration):
    """One hybrid job, free of everything that CreateJob would refuse and of what would be paid for in vain.

    `name` is the name of the job's table. `entry_point` is `package.module` (run as `__main__`) or
    `package.module:function`, or the path of a program where the image is the user's own. `device` is a device ARN or
    `local:<provider>/<simulator>`. `image` is read by images.parse_image. `hyperparameters` hold strings, as Braket
    passes them. `inputs` maps a channel to a file or folder below the source folder. Jobs of the same `benchmark` are
    compared with the one that is its `baseline`.

    Limits: the CreateJob operation of the Braket API.
    """

    missing: ClassVar[Mapping[str, str]] = {
        "entry_point": 'Write entry_point = "<source folder>.<module>"',
        "device": 'Write device = "local:pennylane/lightning.qubit", or another simulator or device ARN',
        "instance": 'Write a table with instance.type = "ml.m5.2xlarge", or another instance type of Braket',
        "limits": "Write a table with limits.max_runtime_seconds = <the longest time the job may take>; Braket's own "
        "default is five days, and every minute is billed",
    }
    # Names from CreateJob and from the Braket SDK, which users bring along.
    remedies: ClassVar[Mapping[str, str]] = {
        "job_name": "The name of the table is the name of the job",
        "jobName": "The name of the table is the name of the job",
        "source_module": "The source is the folder that holds jobs.toml; libraries beside it stand in [source]",
        "s3Uri": "The source is the folder that holds jobs.toml; deploying uploads it as one archive",
        "compressionType": "The source is always sent as one gzip archive",
        "clientToken": "It is derived for every launch, so that one launch starts one job",
        "roleArn": "The deployment makes the job's role",
        "role_arn": "The deployment makes the job's role",
        "entryPoint": "It is called entry_point here",
        "image_uri": "It is called image here",
        "deviceConfig": "It is called device here",
        "instance_config": "It is the table instance here",
        "instanceConfig": "It is the table instance here",
        "stopping_condition": "It is limits.max_runtime_seconds here",
        "stoppingCondition": "It is limits.max_runtime_seconds here",
        "max_runtime_seconds": "It belongs into the table limits: limits.max_runtime_seconds",
        "hyperParameters": "It is the table hyperparameters here",
        "input_data": "It is the table inputs here",
        "inputDataConfig": "It is the table inputs here",
        "checkpoint_config": "Write checkpoints = true or false; their place is chosen by the deployment",
        "checkpointConfig": "Write checkpoints = true or false; their place is chosen by the deployment",
        "output_data_config": "Results always go to the job bucket of the deployment",
        "outputDataConfig": "Results always go to the job bucket of the deployment",
    }

    name: job_fields.JobName
    description: str = ""
    entry_point: job_fields.EntryPoint
    device: job_fields.Device
    image: job_fields.ImageReference = "base"
    distribution: Literal["none", "data_parallel"] = "none"
    instance: Instance
    limits: Limits
    hyperparameters: job_fields.Hyperparameters = Field(default_factory=dict)
    inputs: job_fields.Inputs = Field(default_factory=dict)
    benchmark: job_fields.BenchmarkName | None = None
    baseline: bool = False
    checkpoints: bool = True

    @model_validator(mode="after")
    def _rules_over_several_fields(self) -> Self:
        problems = list(job_rules.broken_rules(self))
        if problems:
            raise refuse_several(problems)
        return self

    @property
    def instance_type(self) -> InstanceType:
        """What one of the job's instances offers."""
        return instance_type(self.instance.type)


def launch_document(
    spec: JobSpec,
    source_sha256: str,
    input_files: Mapping[str, Sequence[InputFile]],
    image_content: str | None = None,
) -> dict[str, Any]:
    """Write what a launch of `spec` consists of as a JSON document, whose hash decides whether to launch again.

    `input_files` holds the files of each of the job's channels. `image_content` is the hash of what an image of the
    project is built from: its name alone would not tell that it has changed. Remarks and prices are left out: changing
    them must not launch a job.
    """
    if set(input_files) != set(spec.inputs):
        raise ValueError(
            f"files are given for the channels {sorted(input_files)}, and the job has {sorted(spec.inputs)}"
        )
    hyperparameters = dict(spec.hyperparameters)
    if spec.distribution == "data_parallel":
        enabled, kind = job_fields.DATA_PARALLEL_HYPERPARAMETERS
        hyperparameters |= {enabled: "true", kind: spec.instance.type}
    document: dict[str, Any] = {
        "name": spec.name,
        "device": spec.device,
        "entry_point": spec.entry_point,
        "image": spec.image,
        "distribution": spec.distribution,
        "instance": {
            "type": spec.instance.type,
            "count": spec.instance.count,
            "volume_gb": spec.instance.volume_gb,
        },
        "max_runtime_seconds": spec.limits.max_runtime_seconds,
        "hyperparameters": hyperparameters,
        "source": {"sha256": source_sha256},
        "inputs": {
            channel: [
                {"path": each.path, "sha256": each.sha256}
                for each in sorted(files, key=lambda input_file: input_file.path)
            ]
            for channel, files in input_files.items()
        },
        "checkpoints": spec.checkpoints,
        "benchmark": None if spec.benchmark is None else {"name": spec.benchmark, "baseline": spec.baseline},
    }
    if image_content is not None:
        document["image_content"] = image_content
    return document
