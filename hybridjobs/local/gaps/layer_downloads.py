"""ECR GetDownloadUrlForLayer: the emulator answers with an address in AWS, also for a layer that it does not have.

The launcher downloads an image's configuration, which names the platform. Pushed layers are in the emulator: its own
registry gives them.
"""

import os
from collections.abc import Mapping
from typing import Any


def apply() -> None:
    """Make the emulator name its own registry, and refuse layers that were never pushed."""
    from ministack.services import ecr  # noqa: PLC0415

    name_address = ecr._get_download_url_for_layer
    endpoint = f"http://127.0.0.1:{os.environ['GATEWAY_PORT']}"

    def get_download_url_for_layer(data: Mapping[str, Any]) -> Any:
        answer = name_address(data)
        if answer[0] != 200:
            return answer
        repository, layer = data["repositoryName"], data["layerDigest"]
        if layer not in ecr._layer_blobs.get(repository, {}):
            return ecr.error_response_json(
                "LayersNotFoundException",
                f"The layer with digest '{layer}' does not exist in the repository with name '{repository}' in the "
                f"registry with id '{ecr._registry_id()}'",
                400,
            )
        return ecr.json_response(
            {"downloadUrl": f"{endpoint}/v2/{repository}/blobs/{layer}", "layerDigest": layer},
        )

    ecr._get_download_url_for_layer = get_download_url_for_layer
