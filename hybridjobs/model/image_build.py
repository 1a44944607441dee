"""How this machine builds images: registries, certificates and secrets of its own. It changes no stage and no image."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from hybridjobs.model.errors import SpecError
from hybridjobs.model.validation import Declaration, read_toml, validated

VARIABLE = "HYBRIDJOBS_IMAGE_BUILD"
CONTEXT = "image-build"


class ImageBuild(Declaration):
    """What a build gets besides the Dockerfile, which needs none of it on a machine that reaches public registries.

    `network` is the network of the build's RUN steps; "host" where the engine has no other. `secrets` maps a BuildKit
    secret to the file that holds it; a secret is mounted while a step runs and is in no layer. `arguments` maps a
    folder of container_assets to its build arguments, such as a mirror's BASE_IMAGE.
    """

    network: Literal["default", "host"] = "default"
    secrets: dict[str, str] = Field(default_factory=dict)
    arguments: dict[str, dict[str, str]] = Field(default_factory=dict)

    def arguments_for(self, folder: str) -> Mapping[str, str]:
        """Return the build arguments of an image."""
        return self.arguments.get(folder, {})


def load_image_build(file: str | None) -> ImageBuild:
    """Read the settings from a TOML file; None stands for no settings.

    Raises:
        SpecError: The file can't be read, has a wrong key, or names a secret whose file is not there.
    """
    if not file:
        return ImageBuild()
    settings = validated(ImageBuild, read_toml(Path(file)), file=file)
    for name, secret in settings.secrets.items():
        if not Path(secret).is_file():
            raise SpecError(
                "there is no such file",
                file=file,
                key=f"secrets.{name}",
                value=secret,
                remedy="Write the absolute path of the file that holds the secret, or remove the line",
            )
    return settings
