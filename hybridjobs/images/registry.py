"""The private repository of a stage: the only file of `hybridjobs image` that calls AWS."""

import base64
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from hybridjobs.deployment import Deployment
from hybridjobs.model.errors import ProjectError
from hybridjobs.model.images import EcrImage, parse_image

# Engines with the image store of containerd push an index, even for one platform.
_MANIFESTS = (
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.index.v1+json",
)


class RegistryError(ProjectError):
    """The stage's repository could not be used, with what to do about it."""


@dataclass(frozen=True)
class StoredImage:
    """What a tag of the repository stands for: `digest` is the manifest's, `config` its configuration's if it has one.

    An index, which names manifests, has none.
    """

    digest: str
    config: str | None

    def is_image(self, image_id: str) -> bool:
        """Whether this is the image of that id: an engine calls it by its configuration or by its manifest."""
        return image_id in {self.digest, self.config}


@dataclass(frozen=True)
class StageRegistry:
    """The repository of a deployed stage, as the container engine of this machine reaches it.

    `uri` is its name in AWS, `address` where pushes go: the same, except in the embedded cloud.
    """

    uri: str
    region: str
    address: str
    ecr: Any
    needs_login: bool

    @classmethod
    def of(cls, deployment: Deployment) -> "StageRegistry":
        """Find the repository by the contract of a deployed stage."""
        uri = deployment.parameters["repository-uri"]
        endpoint = deployment.endpoint_url
        address = f"{urlsplit(endpoint).netloc}/{uri.partition('/')[2]}" if endpoint else uri
        region = str(deployment.session.region_name)
        ecr = deployment.session.client("ecr", endpoint_url=endpoint)
        return cls(uri=uri, region=region, address=address, ecr=ecr, needs_login=endpoint is None)

    def stored(self, tag: str) -> StoredImage | None:
        """Return what `tag` stands for now, None where the repository has no such tag.

        Raises:
            RegistryError: The repository can't be read.
        """
        name = self.uri.partition("/")[2]
        try:
            answer = self.ecr.batch_get_image(
                repositoryName=name, imageIds=[{"imageTag": tag}], acceptedMediaTypes=list(_MANIFESTS)
            )
        except (BotoCoreError, ClientError) as error:
            raise RegistryError(
                f"repository {self.uri}: {error}. Check the credentials, and that ecr:BatchGetImage is allowed"
            ) from error
        for image in answer["images"]:
            manifest = json.loads(image.get("imageManifest") or "{}")
            return StoredImage(image["imageId"]["imageDigest"], manifest.get("config", {}).get("digest"))
        return None

    def credentials(self) -> dict[str, str] | None:
        """Return what the container engine logs in with, None where it need not.

        Raises:
            RegistryError: AWS gives no token.
        """
        if not self.needs_login:
            return None
        try:
            token = self.ecr.get_authorization_token()["authorizationData"][0]["authorizationToken"]
        except (BotoCoreError, ClientError) as error:
            raise RegistryError(f"{error}. Pushing needs ecr:GetAuthorizationToken") from error
        user, _, password = base64.b64decode(token).decode().partition(":")
        return {"username": user, "password": password}


def check_region(target: str, registry: StageRegistry) -> EcrImage:
    """Read the address that an image is to be pushed to; RegistryError when it is not in the stage's region."""
    image = parse_image(target)
    if not isinstance(image, EcrImage) or image.tag is None:
        raise RegistryError(f"{target!r}: this names no tag of a private repository. Write {registry.uri}:<tag>")
    if image.region != registry.region:
        raise RegistryError(
            f"{target}: the repository is in {image.region} and the stage's jobs run in {registry.region}, where they "
            f"could not pull it. Push to a repository in {registry.region}, such as {registry.uri}"
        )
    if target.partition(":")[0] != registry.uri:
        raise RegistryError(f"{target}: this is not the stage's repository. Push to {registry.uri}:{image.tag}")
    return image
