"""ECR DescribeImages of a tag that is not there: the emulator answers an empty list, AWS with ImageNotFoundException.

The CDK CLI takes any answer for a sign that the image is there: it would skip build and push, the deployment would look
green, and the repository would be empty.
"""

import json
from collections.abc import Mapping
from typing import Any


def apply() -> None:
    """Make the emulator refuse unknown images."""
    from ministack.services import ecr  # noqa: PLC0415

    describe = ecr._describe_images

    def describe_images(data: Mapping[str, Any]) -> Any:
        answer = describe(data)
        wanted = data.get("imageIds") or []
        missing = [image for image in wanted if ecr._find_image(data.get("repositoryName", ""), image) is None]
        if answer[0] != 200 or not missing:
            return answer
        return ecr.error_response_json(
            "ImageNotFoundException",
            f"The image with imageId {json.dumps(missing[0])} does not exist within the repository with name "
            f"'{data['repositoryName']}' in the registry with id '{ecr._registry_id()}'",
            400,
        )

    ecr._describe_images = describe_images
