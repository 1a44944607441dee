"""The boto3 clients of a function, each made when it is first needed and kept for the life of the process."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_braket import BraketClient
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_ecr import ECRClient
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_s3 import S3Client

# One call takes at most 3 x (3 + 10) s and two pauses of 1 and 2 s: less than the dispatcher's lease.
_CALLS = Config(connect_timeout=3, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 3})
# A server-side copy of gigabytes answers late.
_COPIES = Config(connect_timeout=3, read_timeout=50, retries={"mode": "standard", "total_max_attempts": 2})


class Clients:
    """Makes clients in one region; endpoints and credentials come from the environment."""

    def __init__(self, region: str) -> None:
        self._region = region

    @cached_property
    def braket(self) -> BraketClient:
        """Amazon Braket."""
        return boto3.client("braket", region_name=self._region, config=_CALLS)

    @cached_property
    def dynamodb(self) -> DynamoDBClient:
        """DynamoDB, where the ledger is."""
        return boto3.client("dynamodb", region_name=self._region, config=_CALLS)

    @cached_property
    def s3(self) -> S3Client:
        """S3, where the job bucket is."""
        return boto3.client("s3", region_name=self._region, config=_COPIES)

    @cached_property
    def ecr(self) -> ECRClient:
        """ECR, where the images are."""
        return boto3.client("ecr", region_name=self._region, config=_CALLS)

    @cached_property
    def logs(self) -> CloudWatchLogsClient:
        """CloudWatch Logs, where the jobs' output is."""
        return boto3.client("logs", region_name=self._region, config=_CALLS)

    @cached_property
    def cloudformation(self) -> CloudFormationClient:
        """CloudFormation, which knows what a stack holds."""
        return boto3.client("cloudformation", region_name=self._region, config=_CALLS)
