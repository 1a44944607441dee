import re

import pytest

from hybridjobs.model.errors import SpecError
from hybridjobs.model.images import AssetImage, EcrImage, StockImage, parse_image

REPOSITORY = "111122223333.dkr.ecr.us-east-1.amazonaws.com/amazon-braket-team/qaoa"
DIGEST = "sha256:" + "0" * 64


def test_the_kinds_of_image() -> None:
    assert parse_image("pytorch") == StockImage("pytorch")
    assert parse_image("asset:pennylane") == AssetImage("pennylane")
    assert parse_image("asset:pennylane:gpu") == AssetImage("pennylane", "gpu")
    by_tag, by_digest = parse_image(f"{REPOSITORY}:1.4.2"), parse_image(f"{REPOSITORY}@{DIGEST}")
    assert isinstance(by_tag, EcrImage)
    assert isinstance(by_digest, EcrImage)
    assert (by_tag.account, by_tag.region, by_tag.tag, by_tag.digest) == ("111122223333", "us-east-1", "1.4.2", None)
    assert (by_digest.repository, by_digest.tag, by_digest.digest) == ("amazon-braket-team/qaoa", None, DIGEST)


@pytest.mark.parametrize(
    ("image", "said"),
    [
        (f"{REPOSITORY}:latest", "the tag latest moves"),
        (REPOSITORY, "no tag and no digest"),
        (f"{REPOSITORY}@sha256:abc", "private ECR repositories only"),
        ("public.ecr.aws/docker/library/python:3.12", "private ECR repositories only"),
        ("python:3.12", "private ECR repositories only"),
        (f"{REPOSITORY}:{'x' * 128}".replace("/qaoa", "/" + "q" * 80), "may have 255 characters"),
        (f"{REPOSITORY}:1".replace("us-east-1", "us-east-2"), "no hybrid jobs in us-east-2"),
        ("asset:", "no folder of container_assets"),
        ("asset:../x", "no folder of container_assets"),
        ("pytorh", 'Did you mean "pytorch"?'),
        ("", "names no image"),
    ],
)
def test_images_that_would_not_start_or_are_not_certain_are_refused(image: str, said: str) -> None:
    with pytest.raises(SpecError, match=re.escape(said)):
        parse_image(image)
