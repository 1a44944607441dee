"""What other teams may rely on: SSM parameters below `/hybrid-jobs/<stage>/` and outputs with fixed logical ids.

Consumers read parameters when they deploy or run; nothing is exported, so that no stack holds another one back.
Values are only ever added: a renamed or removed one is a new contract version.
"""

from dataclasses import dataclass
from typing import Any

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from stacks.names import pascal_case

CONTRACT_VERSION = "1"


@dataclass(frozen=True)
class ContractValue:
    """One published value: its parameter below the stage's prefix, its output's logical id, what it is, how it looks.

    `pattern` is a regular expression for the whole value. A value that is `optional` is published by some stages only.
    """

    parameter: str
    output: str
    description: str
    pattern: str
    optional: bool = False


_PARTITION = "arn:aws[a-z-]*"
VERSION = ContractValue(
    "contract-version", "ContractVersion", "Version of this set of parameters and outputs", CONTRACT_VERSION
)
REPOSITORY_URI = ContractValue(
    "repository-uri",
    "RepositoryUri",
    "URI of the private repository of job images",
    r"[^/]+/amazon-braket-[a-z0-9-]+",
)
REPOSITORY_ARN = ContractValue(
    "repository-arn",
    "RepositoryArn",
    "ARN of the private repository of job images",
    _PARTITION + r":ecr:[a-z0-9-]+:[0-9]{12}:repository/amazon-braket-[a-z0-9-]+",
)
JOB_BUCKET = ContractValue(
    "job-bucket", "JobBucketName", "Bucket of sources, inputs, results and records", r"amazon-braket-[a-z0-9.-]{1,49}"
)
RECORDS_PREFIX = ContractValue(
    "records-prefix", "RecordsPrefix", "Prefix of the records of ended jobs in the job bucket", r"([^/]+/)+"
)
LEDGER_TABLE = ContractValue(
    "ledger-table",
    "LedgerTableName",
    "DynamoDB table of every launch that was asked for",
    r"[A-Za-z0-9_.-]{3,255}",
)
JOB_ROLE_ARN = ContractValue(
    "job-role-arn",
    "JobRoleArn",
    "ARN of the role that jobs run with",
    _PARTITION + r":iam::[0-9]{12}:role/service-role/AmazonBraketJobsExecutionRole[A-Za-z0-9+=,.@_-]*",
)
ALARM_TOPIC_ARN = ContractValue(
    "alarm-topic-arn",
    "AlarmTopicArn",
    "ARN of the SNS topic that alarms go to",
    _PARTITION + r":sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_.-]+",
    optional=True,
)
VALUES = (
    VERSION,
    REPOSITORY_URI,
    REPOSITORY_ARN,
    JOB_BUCKET,
    RECORDS_PREFIX,
    LEDGER_TABLE,
    JOB_ROLE_ARN,
    ALARM_TOPIC_ARN,
)
JOB_NAME_PATTERN = r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,49}"


def job_name_value(job: str) -> ContractValue:
    """The value that carries the Braket name of the latest launch of `job`, a name from a jobs.toml."""
    return ContractValue(
        f"jobs/{job}",
        f"Job{pascal_case(job)}Name",
        f"Braket name of the latest launch of {job}",
        JOB_NAME_PATTERN,
        optional=True,
    )


def json_schema() -> dict[str, Any]:
    """JSON Schema of a stage's parameters: the object of their names below the stage's prefix and their values."""
    jobs = job_name_value("<job>")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Parameters below /hybrid-jobs/<stage>/, contract version {CONTRACT_VERSION}",
        "type": "object",
        "required": [value.parameter for value in VALUES if not value.optional],
        "properties": {value.parameter: _string(value) for value in VALUES},
        "patternProperties": {f"^{jobs.parameter.replace('<job>', JOB_NAME_PATTERN)}$": _string(jobs)},
        # Values are added without a new version, so a consumer must bear what it doesn't know.
        "additionalProperties": {"type": "string"},
    }


def _string(value: ContractValue) -> dict[str, str]:
    return {"type": "string", "description": value.description, "pattern": f"^{value.pattern}$"}


def parameter_name(stage_name: str, value: ContractValue) -> str:
    """Full name of the SSM parameter that carries `value`."""
    return f"/hybrid-jobs/{stage_name}/{value.parameter}"


class Contract(Construct):
    """Publishes a stack's share of the contract."""

    def __init__(self, scope: Stack, construct_id: str, *, stage_name: str) -> None:
        super().__init__(scope, construct_id)
        self._stage_name = stage_name

    def publish(self, value: ContractValue, content: str) -> None:
        """Publish `content` as both the parameter and the output of `value`."""
        ssm.StringParameter(
            self,
            value.output,
            parameter_name=parameter_name(self._stage_name, value),
            string_value=content,
            description=value.description,
        )
        output = CfnOutput(self, f"{value.output}Output", value=content, description=value.description)
        output.override_logical_id(value.output)
