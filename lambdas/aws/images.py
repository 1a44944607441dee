"""Images of the project's own repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from errors import LaunchError

if TYPE_CHECKING:
    from mypy_boto3_ecr import ECRClient


class Images:
    """Looks up what a tag stands for at this moment."""

    def __init__(self, client: ECRClient) -> None:
        self._client = client

    def digest(self, repository: str, tag: str) -> str:
        """Return the digest (`sha256:...`) of the image that carries a tag.

        Raises:
            LaunchError: No image carries it.
        """
        try:
            details = self._client.describe_images(repositoryName=repository, imageIds=[{"imageTag": tag}])[
                "imageDetails"
            ]
        except ClientError as error:
            if error.response["Error"]["Code"] not in {"ImageNotFoundException", "RepositoryNotFoundException"}:
                raise
            details = []
        if not details or "imageDigest" not in details[0]:
            raise LaunchError(
                f"image {repository}:{tag} is not in the registry",
                remedy="Deploy again on a machine with a container engine, so that `cdk deploy` builds and pushes it",
            )
        return details[0]["imageDigest"]
