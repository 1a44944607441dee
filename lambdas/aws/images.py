"""Images of the project's own repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from errors import LaunchError

if TYPE_CHECKING:
    from mypy_boto3_ecr import ECRClient
    from mypy_boto3_ecr.type_defs import ImageIdentifierTypeDef


class Images:
    """Looks up what a job's image is at this moment."""

    def __init__(self, client: ECRClient) -> None:
        self._client = client

    def digest(self, repository: str, reference: str, volume_gb: int) -> str:
        """Return the digest (`sha256:...`) of the image that a tag or a digest names.

        Raises:
            LaunchError: It names no image, or one that is larger, even packed as the registry holds it, than the volume
                of the instance that is to pull it.
        """
        by_digest = reference.startswith("sha256:")
        name = f"{repository}{'@' if by_digest else ':'}{reference}"
        wanted: ImageIdentifierTypeDef = {"imageDigest": reference} if by_digest else {"imageTag": reference}
        try:
            details = self._client.describe_images(repositoryName=repository, imageIds=[wanted])["imageDetails"]
        except ClientError as error:
            if error.response["Error"]["Code"] not in {"ImageNotFoundException", "RepositoryNotFoundException"}:
                raise
            details = []
        if not details or "imageDigest" not in details[0]:
            raise LaunchError(
                f"image {name} is not in the registry",
                remedy="Push it again with `hybridjobs image push`, and name what that prints"
                if by_digest
                else "Deploy again on a machine with a container engine, so that `cdk deploy` builds and pushes it",
            )
        packed = details[0].get("imageSizeInBytes", 0)
        if packed > volume_gb * 1_000_000_000:
            raise LaunchError(
                f"image {name} has {packed / 1e9:.1f} GB packed, the job's volume {volume_gb} GB",
                remedy=f"Raise instance.volume_gb to {3 * (packed // 1_000_000_000 + 1)}, or make the image smaller",
            )
        return details[0]["imageDigest"]
