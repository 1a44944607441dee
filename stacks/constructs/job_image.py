"""A job image built from a Dockerfile of the project and published straight into the stage's repository."""

from pathlib import Path

from aws_cdk import DockerBuildSecret
from aws_cdk import aws_ecr_assets as ecr_assets
from constructs import Construct

from hybridjobs.model.errors import SpecError
from hybridjobs.model.image_build import CONTEXT, load_image_build
from hybridjobs.model.images import AssetImage

# Beside the images' folders: what every image copies.
SHARED_FOLDERS = frozenset({"entrypoint", "materials"})


class JobImage(Construct):
    """An image asset of `container_assets/<folder>`; `uri` names it by its tag, which is `content`.

    `content` is the hash of what the image is built from: the build context, the Dockerfile and the target. The build
    context is container_assets with this folder and what all images share: a change to one image builds no other.
    Braket runs x86-64 images only, so the platform is fixed whatever machine builds. The context value `image-build`
    may name a file with this machine's build settings, see hybridjobs.model.image_build.

    Raises:
        SpecError: The folder has no Dockerfile.
    """

    def __init__(self, scope: Construct, construct_id: str, *, image: AssetImage, container_assets: Path) -> None:
        super().__init__(scope, construct_id)
        dockerfile = container_assets / image.folder / "Dockerfile"
        if not dockerfile.is_file():
            raise SpecError(
                f"there is no {dockerfile.relative_to(container_assets.parent)}",
                key="image",
                value=f"asset:{image.folder}",
                remedy="Name a folder of container_assets that holds a Dockerfile",
            )
        others = [
            f"{folder.name}/"
            for folder in sorted(container_assets.iterdir())
            if folder.is_dir() and folder.name not in {image.folder, *SHARED_FOLDERS}
        ]
        # What the machine that builds has of its own; only build arguments change the image, and so its tag.
        build = load_image_build(self.node.try_get_context(CONTEXT))
        asset = ecr_assets.DockerImageAsset(
            self,
            "Asset",
            directory=str(container_assets),
            file=f"{image.folder}/Dockerfile",
            target=image.target,
            platform=ecr_assets.Platform.LINUX_AMD64,
            build_args=dict(build.arguments_for(image.folder)) or None,
            build_secrets={name: DockerBuildSecret.from_src(file) for name, file in build.secrets.items()} or None,
            network_mode=ecr_assets.NetworkMode.HOST if build.network == "host" else None,
            invalidation=ecr_assets.DockerImageAssetInvalidationOptions(build_secrets=False, network_mode=False),
            exclude=[*others, "**/__pycache__", "**/*.pyc", "**/*.md", "**/tests"],
        )
        self.uri = asset.image_uri
        self.content = asset.asset_hash
