"""The container contract in one place: folders, configuration files and variables that a job finds on its host.

The layout is that of SageMaker training (/opt/ml), which the service builds on, with AMZN_BRAKET_* variables on top.
Every path is taken below `HostLayout.root`, so that the same functions describe a container (root "/") and a private
folder. Sources: the Braket developer guide, the amazon-braket-sdk's local mode, sagemaker-training's environment.py.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from hybridjobs.local.runners.base import JobRun
from hybridjobs.local.runners.storage import S3Location

PROGRAM = "braket_entrypoint.py"
LOG_GROUP = "/aws/braket/jobs"
DEFAULT_CHECKPOINT_PATH = "/opt/braket/checkpoints/"
DATA_PARALLEL = "sagemaker_distributed_dataparallel_enabled"
BYTES_PER_GB = 1 << 30
_GROUP_NAME = "homogeneousCluster"
_SAGEMAKER = "sagemaker_"


@dataclass(frozen=True)
class HostLayout:
    """The folders of one host; `root` stands for the "/" of its container."""

    root: Path

    @property
    def ml(self) -> Path:
        """What the service mounts at /opt/ml."""
        return self.root / "opt" / "ml"

    @property
    def configuration(self) -> Path:
        """The folder of hyperparameters.json, resourceconfig.json and inputdataconfig.json."""
        return self.ml / "input" / "config"

    @property
    def hyperparameters(self) -> Path:
        """The file of the hyperparameters, a flat object of strings."""
        return self.configuration / "hyperparameters.json"

    @property
    def input_data(self) -> Path:
        """The folder with one folder a channel."""
        return self.ml / "input" / "data"

    @property
    def model(self) -> Path:
        """The results folder, whose content becomes model.tar.gz."""
        return self.ml / "model"

    @property
    def output(self) -> Path:
        """The folder of the failure and success files."""
        return self.ml / "output"

    @property
    def failure(self) -> Path:
        """The file whose text is the failure reason."""
        return self.output / "failure"

    @property
    def code(self) -> Path:
        """The folder of the entry point program and, below it, of the job's code."""
        return self.ml / "code"

    @property
    def code_finished(self) -> Path:
        """Written when Python job code has returned, while its interpreter may still wait for its children."""
        return self.code / "customer_code" / "finished"

    @property
    def home(self) -> Path:
        """The job's home folder."""
        return self.root / "home"

    @property
    def temporary(self) -> Path:
        """The job's folder for temporary files."""
        return self.root / "tmp"

    def inside(self, path: str) -> Path:
        """Return where an absolute path of the container lies below the root.

        Raises ValueError for a path that is not absolute or climbs.
        """
        pure = PurePosixPath(path)
        if not pure.is_absolute() or ".." in pure.parts:
            raise ValueError(f"checkpointConfig.localPath '{path}' must be absolute and free of '..'")
        return self.root.joinpath(*pure.parts[1:])

    def create(self) -> None:
        """Make every folder that a job may expect."""
        for folder in (
            self.configuration,
            self.input_data,
            self.model,
            self.output / "data",
            self.code,
            self.home,
            self.temporary,
        ):
            folder.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o700)
        (self.root / "opt" / "braket").symlink_to("ml")  # the service's own name for the same folder


@dataclass(frozen=True)
class HostResources:
    """What one host may use: `cpus` and `gpus` are counts, `network_interface` is the one that hosts talk over."""

    cpus: int
    gpus: int
    network_interface: str


def host_names(request: Mapping[str, Any]) -> tuple[str, ...]:
    """Return algo-1 to algo-n for the request's instanceCount."""
    count: int = request["instanceConfig"].get("instanceCount", 1)
    return tuple(f"algo-{number}" for number in range(1, count + 1))


def volume_bytes(request: Mapping[str, Any]) -> int:
    """Return how many bytes the job's files may take on each host."""
    return int(request["instanceConfig"]["volumeSizeInGb"]) * BYTES_PER_GB


def checkpoint_path(request: Mapping[str, Any]) -> str:
    """Return the checkpoint folder as the container names it."""
    return str(request.get("checkpointConfig", {}).get("localPath") or DEFAULT_CHECKPOINT_PATH)


def results_location(request: Mapping[str, Any]) -> S3Location:
    """Return the folder in S3 that model.tar.gz is written to, which is where the SDK looks for it."""
    return S3Location.parse(request["outputDataConfig"]["s3Path"]).child("output")


def _decoded(text: str) -> Any:
    """Read a value as JSON where it is JSON: sagemaker-training does so before it exports hyperparameters."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _user_hyperparameters(request: Mapping[str, Any]) -> dict[str, Any]:
    given = request.get("hyperParameters", {})
    return {name: _decoded(value) for name, value in given.items() if not name.startswith(_SAGEMAKER)}


def user_arguments(request: Mapping[str, Any]) -> list[str]:
    """Return the hyperparameters as the command line that the entry point is started with: --name value."""
    arguments: list[str] = []
    for name, value in sorted(_user_hyperparameters(request).items()):
        arguments += [f"-{name}" if len(name) == 1 else f"--{name}", str(value)]
    return arguments


def _resource_configuration(request: Mapping[str, Any], host: str, interface: str) -> dict[str, Any]:
    instance_type = request["instanceConfig"]["instanceType"]
    hosts = list(host_names(request))
    group = {"instance_group_name": _GROUP_NAME, "instance_type": instance_type, "hosts": hosts}
    return {
        "current_host": host,
        "current_instance_type": instance_type,
        "current_group_name": _GROUP_NAME,
        "hosts": hosts,
        "instance_groups": [group],
        "network_interface_name": interface,
    }


def _input_configuration(request: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    fixed = {"TrainingInputMode": "File", "S3DistributionType": "FullyReplicated", "RecordWrapperType": "None"}
    configuration = {}
    for channel in request.get("inputDataConfig", []):
        content = {"ContentType": channel["contentType"]} if "contentType" in channel else {}
        configuration[channel["channelName"]] = {**fixed, **content}
    return configuration


def write_configuration(run: JobRun, layout: HostLayout, host: str, resources: HostResources) -> None:
    """Write the three files below input/config for one host."""
    contents: Mapping[Path, object] = {
        layout.hyperparameters: run.request.get("hyperParameters", {}),
        layout.configuration / "resourceconfig.json": _resource_configuration(
            run.request, host, resources.network_interface
        ),
        layout.configuration / "inputdataconfig.json": _input_configuration(run.request),
    }
    for file, content in contents.items():
        file.write_text(json.dumps(content), encoding="utf-8")


def braket_environment(run: JobRun, layout: HostLayout) -> dict[str, str]:
    """Return the AMZN_BRAKET_* variables of a job on one host."""
    request = run.request
    output = S3Location.parse(request["outputDataConfig"]["s3Path"])
    variables = {
        "AMZN_BRAKET_JOB_NAME": run.job_name,
        "AMZN_BRAKET_JOB_TOKEN": run.job_arn,  # opaque to the job; the endpoint recognises its own jobs by it
        "AMZN_BRAKET_DEVICE_ARN": request["deviceConfig"]["device"],
        "AMZN_BRAKET_JOB_RESULTS_DIR": str(layout.model),
        "AMZN_BRAKET_CHECKPOINT_DIR": str(layout.inside(checkpoint_path(request))),
        "AMZN_BRAKET_OUT_S3_BUCKET": output.bucket,
        "AMZN_BRAKET_JOB_RESULTS_S3_PATH": results_location(request).key,
        "AMZN_BRAKET_TASK_RESULTS_S3_URI": f"s3://{output.bucket}/jobs/{run.job_name}/tasks",
    }
    script = request["algorithmSpecification"].get("scriptModeConfig")
    if script:
        variables["AMZN_BRAKET_SCRIPT_S3_URI"] = script["s3Uri"]
        variables["AMZN_BRAKET_SCRIPT_ENTRY_POINT"] = script["entryPoint"]
        variables["AMZN_BRAKET_SCRIPT_COMPRESSION_TYPE"] = script.get("compressionType", "NONE")
    if request.get("hyperParameters"):
        variables["AMZN_BRAKET_HP_FILE"] = str(layout.hyperparameters)
    if request.get("inputDataConfig"):
        variables["AMZN_BRAKET_INPUT_DIR"] = str(layout.input_data)
    for association in request.get("associations", []):
        if association["type"] == "RESERVATION_TIME_WINDOW_ARN":
            variables["AMZN_BRAKET_RESERVATION_DEVICE_ARN"] = request["deviceConfig"]["device"]
            variables["AMZN_BRAKET_RESERVATION_TIME_WINDOW_ARN"] = association["arn"]
    return variables


def _encoded(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, separators=(",", ":"))


def sagemaker_environment(run: JobRun, layout: HostLayout, host: str, resources: HostResources) -> dict[str, str]:
    """Return the SM_* variables that sagemaker-training exports to the program on one host."""
    request = run.request
    hosts: Sequence[str] = host_names(request)
    resource_configuration = _resource_configuration(request, host, resources.network_interface)
    hyperparameters = _user_hyperparameters(request)
    given = request.get("hyperParameters", {})
    framework = {name: _decoded(value) for name, value in given.items() if name.startswith(_SAGEMAKER)}
    channels = {name: str(layout.input_data / name) for name in _input_configuration(request)}
    common: dict[str, object] = {
        "hosts": list(hosts),
        "current_host": host,
        "current_instance_type": request["instanceConfig"]["instanceType"],
        "current_instance_group": _GROUP_NAME,
        "current_instance_group_hosts": list(hosts),
        "instance_groups": [_GROUP_NAME],
        "instance_groups_dict": {_GROUP_NAME: resource_configuration["instance_groups"][0]},
        "distribution_instance_groups": [_GROUP_NAME] if framework else [],
        "is_hetero": False,
        "network_interface_name": resources.network_interface,
        "resource_config": resource_configuration,
        "input_data_config": _input_configuration(request),
        "num_cpus": resources.cpus,
        "num_gpus": resources.gpus,
        "input_dir": str(layout.ml / "input"),
        "input_config_dir": str(layout.configuration),
        "output_dir": str(layout.output),
        "output_data_dir": str(layout.output / "data"),
        "output_intermediate_dir": str(layout.output / "intermediate"),
        "model_dir": str(layout.model),
        "module_dir": str(layout.code),
        "module_name": PROGRAM.removesuffix(".py"),
        "user_entry_point": PROGRAM,
        "framework_module": None,
        "log_level": 20,
    }
    described = {
        **common,
        "additional_framework_parameters": framework,
        "channel_input_dirs": channels,
        "hyperparameters": hyperparameters,
        "is_master": host == hosts[0],
        "master_hostname": hosts[0],
        "job_name": run.job_name,
    }
    exported = {
        **common,
        "channels": sorted(channels),
        "framework_params": framework,
        "hps": hyperparameters,
        "training_env": described,
        "user_args": user_arguments(request),
        **{f"channel_{name}": path for name, path in channels.items()},
        **{f"hp_{name}": value for name, value in hyperparameters.items()},
    }
    return {f"SM_{name.upper()}": _encoded(value) for name, value in exported.items()}


def container_environment(run: JobRun, layout: HostLayout, host: str, resources: HostResources) -> dict[str, str]:
    """Return every variable of the contract for one host, and those that point AWS clients at the embedded cloud."""
    return {
        **sagemaker_environment(run, layout, host, resources),
        **braket_environment(run, layout),
        **run.aws_environment,
        "SAGEMAKER_PROGRAM": PROGRAM,
        "BRAKET_ML_ROOT": str(layout.ml),
        "BRAKET_VOLUME_BYTES": str(volume_bytes(run.request)),
    }
