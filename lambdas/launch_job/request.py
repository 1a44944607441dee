"""The CreateJob request of a launch, and where its files lie in the job bucket. No AWS here."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from launches import Launch, canonical_json, client_token

if TYPE_CHECKING:
    from settings import Settings

# Where the SDK looks for checkpoints; the API's own default, /opt/braket/checkpoints, is a link into /opt/ml.
CHECKPOINT_FOLDER = "/opt/jobs/checkpoints"


def source_key(sha256: str) -> str:
    """Return the key of a source archive."""
    return f"sources/{sha256}/source.tar.gz"


def channel_prefix(files: list[dict[str, Any]]) -> str:
    """Return the prefix that holds exactly the files of an input channel, under their paths."""
    return f"inputs/{hashlib.sha256(canonical_json(files).encode()).hexdigest()}/"


def output_prefix(job_name: str) -> str:
    """Return where a job's results go: CreateJob's s3Path, without the bucket."""
    return f"jobs/{job_name}/data"


def create_job_request(launch: Launch, *, request_id: str, image_uri: str, settings: Settings) -> dict[str, Any]:
    """Build the CreateJob request of a launch from its spec.

    Args:
        launch: The launch; its `spec` is read.
        request_id: CloudFormation's request, of which the client token is made.
        image_uri: The image, by digest wherever one is known.
        settings: The stage's bucket and role.
    """
    spec = launch.spec or {}
    bucket = f"s3://{settings.job_bucket}"
    instance = spec["instance"]
    request: dict[str, Any] = {
        "clientToken": client_token(launch.name, request_id),
        "jobName": launch.name,
        "roleArn": settings.job_role_arn,
        "deviceConfig": {"device": spec["device"]},
        "instanceConfig": {
            "instanceType": instance["type"],
            "instanceCount": int(instance["count"]),
            "volumeSizeInGb": int(instance["volume_gb"]),
        },
        "algorithmSpecification": {
            "scriptModeConfig": {
                "entryPoint": spec["entry_point"],
                "s3Uri": f"{bucket}/{source_key(spec['source']['sha256'])}",
                "compressionType": "GZIP",
            },
            "containerImage": {"uri": image_uri},
        },
        "outputDataConfig": {"s3Path": f"{bucket}/{output_prefix(launch.name)}"},
        "stoppingCondition": {"maxRuntimeInSeconds": int(spec["max_runtime_seconds"])},
        "tags": launch.tags(settings.stage),
    }
    if spec["hyperparameters"]:
        request["hyperParameters"] = {key: str(value) for key, value in spec["hyperparameters"].items()}
    if spec["inputs"]:
        request["inputDataConfig"] = [
            {
                "channelName": channel,
                "dataSource": {"s3DataSource": {"s3Uri": f"{bucket}/{channel_prefix(files)}"}},
            }
            for channel, files in sorted(spec["inputs"].items())
        ]
    if spec["checkpoints"]:
        request["checkpointConfig"] = {
            "s3Uri": f"{bucket}/jobs/{launch.name}/checkpoints",
            "localPath": CHECKPOINT_FOLDER,
        }
    return request


def worst_case_usd(spec: dict[str, Any], price: dict[str, Any] | None) -> float | None:
    """Return what a job costs if it runs as long as it may, in USD.

    None without a price, and for a device that bills its tasks on top.
    """
    if price is None or not str(spec["device"]).startswith("local:"):
        return None
    minutes = int(spec["max_runtime_seconds"]) / 60
    return float(price["usd_per_minute"]) * minutes * int(spec["instance"]["count"])
