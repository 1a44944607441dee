"""What the rules ask the embedded cloud about resources that a request names: role trust, bucket tags, images."""

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

Answer = TypeVar("Answer")

_TIMEOUT_SECONDS = 5


class CloudFacts(Protocol):
    """Answers about resources; None for what can't be known."""

    def trusts_braket(self, role_arn: str) -> bool | None:
        """Whether Braket may assume the role; False also for a role that doesn't exist."""
        ...

    def bucket_tags(self, bucket: str) -> Mapping[str, str]:
        """Return the tags of a bucket; none where they can't be read."""
        ...

    def has_image(self, repository: str, reference: str) -> bool | None:
        """Whether the repository holds the image; `reference` is `:tag` or `@sha256:...`."""
        ...


class EmulatedCloudFacts:
    """Asks the services behind AWS_ENDPOINT_URL of `aws_environment`; without one, nothing is asked anywhere."""

    def __init__(self, aws_environment: Mapping[str, str]):
        self._environment = aws_environment
        self._endpoint = aws_environment.get("AWS_ENDPOINT_URL")

    def trusts_braket(self, role_arn: str) -> bool | None:
        """See CloudFacts."""
        if not self._endpoint:
            return None
        role: Mapping[str, Any] | None = _answer(
            lambda: self._iam.get_role(RoleName=role_arn.rsplit("/", 1)[-1])["Role"], {"NoSuchEntity": {}}, default=None
        )
        if role is None:
            return None
        return role.get("Arn") == role_arn and allows_braket(role["AssumeRolePolicyDocument"])

    def bucket_tags(self, bucket: str) -> Mapping[str, str]:
        """See CloudFacts."""
        if not self._endpoint:
            return {}
        nothing: list[Mapping[str, str]] = []
        tags = _answer(lambda: self._s3.get_bucket_tagging(Bucket=bucket)["TagSet"], {}, default=nothing)
        return {tag["Key"]: tag["Value"] for tag in tags}

    def has_image(self, repository: str, reference: str) -> bool | None:
        """See CloudFacts."""
        if not self._endpoint:
            return None
        identity = {"imageDigest": reference[1:]} if reference.startswith("@") else {"imageTag": reference[1:]}
        absent: dict[str, list[Any]] = {"ImageNotFoundException": [], "RepositoryNotFoundException": []}
        images = _answer(
            lambda: self._ecr.describe_images(repositoryName=repository, imageIds=[identity])["imageDetails"],
            absent,
            default=None,
        )
        return None if images is None else bool(images)

    @cached_property
    def _iam(self) -> Any:
        return self._client("iam")

    @cached_property
    def _s3(self) -> Any:
        return self._client("s3")

    @cached_property
    def _ecr(self) -> Any:
        return self._client("ecr")

    def _client(self, service: str) -> Any:
        return emulated_client(service, self._environment)


def emulated_client(service: str, aws_environment: Mapping[str, str]) -> Any:
    """Return a boto3 client for the embedded cloud that `aws_environment` points at, whatever this process's says."""
    session = boto3.Session(
        aws_access_key_id=aws_environment.get("AWS_ACCESS_KEY_ID", "test"),
        aws_secret_access_key=aws_environment.get("AWS_SECRET_ACCESS_KEY", "test"),
        region_name=aws_environment.get("AWS_REGION") or aws_environment.get("AWS_DEFAULT_REGION") or "us-east-1",
    )
    config = Config(
        connect_timeout=_TIMEOUT_SECONDS,
        read_timeout=_TIMEOUT_SECONDS,
        retries={"total_max_attempts": 2},
        s3={"addressing_style": "path"},
    )
    client: Any = session.client(service, endpoint_url=aws_environment["AWS_ENDPOINT_URL"], config=config)  # type: ignore[call-overload]
    return client


def allows_braket(trust_policy: Mapping[str, Any] | str) -> bool:
    """Whether a trust policy, as a document or as (URL-encoded) JSON, lets the Braket service assume its role."""
    document = json.loads(unquote(trust_policy)) if isinstance(trust_policy, str) else trust_policy
    statements = document.get("Statement", [])
    return any(_allows_braket(each) for each in (statements if isinstance(statements, list) else [statements]))


def _allows_braket(statement: Mapping[str, Any]) -> bool:
    principal = statement.get("Principal", {})
    services = _listed(principal.get("Service", []) if isinstance(principal, dict) else principal)
    actions = {action.lower() for action in _listed(statement.get("Action", []))}
    return (
        statement.get("Effect") == "Allow"
        and bool({"braket.amazonaws.com", "*"} & set(services))
        and bool({"sts:assumerole", "sts:*", "*"} & actions)
    )


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _answer(ask: Callable[[], Answer], known_errors: Mapping[str, Answer], *, default: Answer) -> Answer:
    try:
        return ask()
    except ClientError as error:
        return known_errors.get(error.response["Error"]["Code"], default)
    except BotoCoreError:
        return default
