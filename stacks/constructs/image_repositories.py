"""The repositories whose images a stage's jobs run: its own, and those of the account that jobs name."""

from collections.abc import Iterator, Sequence

from aws_cdk import Stack

from hybridjobs.model.images import STOCK_ACCOUNT, EcrImage, parse_image
from hybridjobs.model.job_spec import JobSpec
from hybridjobs.model.stage import StageSettings
from stacks.names import repository_name


def own_repository(stack: Stack, stage_name: str) -> str:
    """ARN of the stage's own repository."""
    return stack.format_arn(service="ecr", resource="repository", resource_name=repository_name(stage_name))


def named_repositories(stack: Stack, specs: Sequence[JobSpec]) -> list[str]:
    """ARNs of the repositories that jobs name, whoever owns them."""
    return sorted({_arn(stack, image) for image in _images(specs)})


def readable_repositories(stack: Stack, stage: StageSettings, specs: Sequence[JobSpec]) -> list[str]:
    """ARNs of the repositories that the launcher looks into: the stage's own, and what jobs name of its account.

    Where the stage leaves its account open, every account but Braket's may turn out to be it.
    """
    named = {
        _arn(stack, image)
        for image in _images(specs)
        if image.account != STOCK_ACCOUNT and stage.account in {None, image.account}
    }
    own = own_repository(stack, stage.name)
    return [own, *sorted(named - {own})]


def _images(specs: Sequence[JobSpec]) -> Iterator[EcrImage]:
    for spec in specs:
        image = parse_image(spec.image)
        if isinstance(image, EcrImage):
            yield image


def _arn(stack: Stack, image: EcrImage) -> str:
    return stack.format_arn(
        service="ecr",
        account=image.account,
        region=image.region,
        resource="repository",
        resource_name=image.repository,
    )
