"""`auto_delete_objects=True`: the CDK's function for it needs a part of the JavaScript SDK that the emulator lacks.

The function dies on its import, nobody answers CloudFormation, and the deployment waits for an hour. Here the resource
is handled by the emulator itself, with the same effect: on Delete the bucket is emptied.
"""

from collections.abc import Mapping
from typing import Any

RESOURCE_TYPE = "Custom::S3AutoDeleteObjects"


def apply() -> None:
    """Make the emulator handle the resource type itself."""
    from ministack.services.cloudformation import provisioners  # noqa: PLC0415

    provisioners._RESOURCE_HANDLERS[RESOURCE_TYPE] = {"create": _create, "update": _update, "delete": _delete}


def _create(logical_id: str, _properties: Mapping[str, Any], stack_name: str) -> tuple[str, dict[str, str]]:
    return f"{stack_name}-{logical_id}", {}


def _update(
    physical_id: str, _old: Mapping[str, Any], _new: Mapping[str, Any], _stack_name: str
) -> tuple[str, dict[str, str]]:
    return physical_id, {}


def _delete(_physical_id: str, properties: Mapping[str, Any]) -> None:
    import boto3  # noqa: PLC0415

    # The daemon's environment points boto3 at this emulator, and handlers run on threads of their own.
    s3 = boto3.resource("s3")
    bucket = s3.Bucket(properties["BucketName"])
    if bucket.creation_date is not None:
        bucket.object_versions.delete()
