"""The AWS clients that a runner uses on a job's behalf, made from the job's own AWS variables."""

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import boto3
import botocore.session
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_s3 import S3Client

_VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL_LOGS",
)
_CONFIGURATION = Config(
    connect_timeout=5,
    read_timeout=60,
    max_pool_connections=32,
    s3={"addressing_style": "path"},
)
_DATA = Config(retries={"mode": "standard", "max_attempts": 4})
_LOGS = Config(retries={"mode": "standard", "max_attempts": 2})  # a lost line must not hold up the job's end


@dataclass(frozen=True)
class Clients:
    """S3 and CloudWatch Logs; both are safe to share between threads."""

    s3: "S3Client"
    logs: "CloudWatchLogsClient"


class ClientCache:
    """Makes the clients once for each set of AWS variables: a client costs megabytes and 100 ms."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[tuple[tuple[str, str], ...], Clients] = {}

    def get(self, aws_environment: Mapping[str, str]) -> Clients:
        """Return the clients for these variables; the variables of this process don't matter."""
        key = tuple((name, aws_environment.get(name, "")) for name in _VARIABLES)
        with self._lock:
            if key not in self._made:
                self._made[key] = _make(aws_environment)
            return self._made[key]


def _make(environment: Mapping[str, str]) -> Clients:
    # Neither a profile nor a configuration file of whoever runs this process may redirect a job's data.
    isolated = botocore.session.Session(
        session_vars={"profile": (None, None, None, None), "config_file": (None, None, os.devnull, None)}
    )
    session = boto3.session.Session(
        botocore_session=isolated,
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=environment.get("AWS_SESSION_TOKEN"),
        region_name=environment.get("AWS_REGION") or environment["AWS_DEFAULT_REGION"],
    )
    general = environment.get("AWS_ENDPOINT_URL")
    return Clients(
        s3=session.client(
            "s3",
            endpoint_url=environment.get("AWS_ENDPOINT_URL_S3") or general,
            config=_CONFIGURATION.merge(_DATA),
        ),
        logs=session.client(
            "logs",
            endpoint_url=environment.get("AWS_ENDPOINT_URL_LOGS") or general,
            config=_CONFIGURATION.merge(_LOGS),
        ),
    )
