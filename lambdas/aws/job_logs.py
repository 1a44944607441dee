"""What the jobs have printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient

LOG_GROUP = "/aws/braket/jobs"


class JobLogs:
    """Reads the log group that Braket writes the jobs' output to."""

    def __init__(self, client: CloudWatchLogsClient) -> None:
        self._client = client

    def tail(self, job_name: str, job_arn: str, lines: int = 50) -> list[str]:
        """Return the last lines that a job has printed, on all its hosts, the oldest first."""
        prefix = f"{job_name}/{job_arn.rpartition('/')[2]}/"
        try:
            streams = self._client.describe_log_streams(logGroupName=LOG_GROUP, logStreamNamePrefix=prefix)[
                "logStreams"
            ]
            events = []
            for number, stream in enumerate(streams):
                answer = self._client.get_log_events(
                    logGroupName=LOG_GROUP, logStreamName=stream["logStreamName"], limit=lines, startFromHead=False
                )
                events += [
                    (event["timestamp"], number, index, event["message"].rstrip("\n"))
                    for index, event in enumerate(answer["events"])
                ]
        except ClientError as error:
            if error.response["Error"]["Code"] == "ResourceNotFoundException":
                return []
            raise
        return [message for *_, message in sorted(events)][-lines:]
