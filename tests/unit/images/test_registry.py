"""What a tag of the stage's repository stands for, whichever kind of manifest the engine pushed."""

import json
from typing import Any

import boto3
import pytest
from moto import mock_aws

from hybridjobs.images.registry import StageRegistry

CONFIGURATION = "sha256:" + "c" * 64
SCHEMA_2 = "application/vnd.docker.distribution.manifest.v2+json"
LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
OCI = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


def manifest(media_type: str) -> str:
    document: dict[str, Any] = {"schemaVersion": 2, "mediaType": media_type}
    if media_type in {LIST, INDEX}:
        image = {"mediaType": OCI, "digest": "sha256:" + "a" * 64, "size": 1}
        document["manifests"] = [image | {"platform": {"os": "linux", "architecture": "amd64"}}]
    else:
        document |= {"config": {"digest": CONFIGURATION, "size": 1, "mediaType": "c"}, "layers": []}
    return json.dumps(document)


class Ecr:
    """A repository that gives a manifest only to those who accept its type, as the service does."""

    def __init__(self, media_type: str) -> None:
        self.media_type = media_type

    def batch_get_image(self, *, acceptedMediaTypes: list[str], **_: Any) -> dict[str, Any]:  # noqa: N803
        if self.media_type not in acceptedMediaTypes:
            return {"images": [], "failures": [{"failureCode": "UnsupportedImageType"}]}
        found = {"imageId": {"imageDigest": "sha256:" + "d" * 64}, "imageManifest": manifest(self.media_type)}
        return {"images": [found], "failures": []}


def stored(ecr: Any) -> Any:
    uri = "000000000000.dkr.ecr.us-east-1.amazonaws.com/amazon-braket-hybrid-jobs-local"
    registry = StageRegistry(uri=uri, region="us-east-1", address=uri, ecr=ecr, needs_login=False)
    return registry.stored("1")


@pytest.mark.parametrize("media_type", [SCHEMA_2, OCI, LIST, INDEX])
def test_an_image_is_known_again_by_its_configuration_or_by_its_manifest(media_type: str) -> None:
    there = stored(Ecr(media_type))
    assert there.is_image("sha256:" + "d" * 64)
    assert there.is_image(CONFIGURATION) is (media_type in {SCHEMA_2, OCI})
    assert not there.is_image("sha256:" + "e" * 64)


@mock_aws
def test_a_tag_that_is_not_there_stands_for_nothing() -> None:
    ecr = boto3.client("ecr", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    ecr.create_repository(repositoryName="amazon-braket-hybrid-jobs-local")
    assert stored(ecr) is None
