"""Images of the repositories that the launcher may look into."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from aws.image_platforms import UnreadableImageError, image_platforms
from errors import LaunchError
from log_lines import log

if TYPE_CHECKING:
    from mypy_boto3_ecr import ECRClient
    from mypy_boto3_ecr.type_defs import ImageIdentifierTypeDef


# What every instance type of Braket runs.
_PLATFORM = "linux/amd64"


class Images:
    """Looks up what a job's image is at this moment."""

    def __init__(self, client: ECRClient) -> None:
        self._client = client

    def digest(self, repository: str, reference: str, volume_gb: int) -> str:
        """Return the digest (`sha256:...`) of the image that a tag or a digest names.

        Raises:
            LaunchError: It names no image, or one that is larger, even packed as the registry holds it, than the volume
                of the instance that is to pull it, or one for another platform than Braket's.
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
                else "If the stage builds it, deploy again on a machine with a container engine, so that `cdk deploy` "
                "pushes it; otherwise push it with `hybridjobs image push`",
            )
        packed = details[0].get("imageSizeInBytes", 0)
        if packed > volume_gb * 1_000_000_000:
            raise LaunchError(
                f"image {name} has {packed / 1e9:.1f} GB packed, the job's volume {volume_gb} GB",
                remedy=f"Raise instance.volume_gb to {3 * (packed // 1_000_000_000 + 1)}, or make the image smaller",
            )
        digest = details[0]["imageDigest"]
        self._refuse_other_platforms(repository, digest, name)
        return digest

    def _refuse_other_platforms(self, repository: str, digest: str, name: str) -> None:
        try:
            platforms = image_platforms(self._client, repository, digest)
        except UnreadableImageError as error:
            # What this function can't read may run all the same: Braket pulls the image by a way of its own.
            log("the image is launched without a look at its platform", image=name, digest=digest, reason=str(error))
            return
        if _PLATFORM not in platforms:
            raise LaunchError(
                f"image {name} is for {', '.join(sorted(platforms)) or 'no platform'}, while every instance of Braket "
                f"runs {_PLATFORM}",
                remedy=f"Build it with `docker build --platform {_PLATFORM}` or `hybridjobs image build`, and push it "
                "with `hybridjobs image push`",
            )
