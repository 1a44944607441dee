"""What other teams may rely on: SSM parameters below `/hybrid-jobs/<stage>/` and outputs with fixed logical ids.

Consumers read parameters when they deploy or run; nothing is exported, so that no stack holds another one back.
Values are only ever added: a renamed or removed one is a new contract version.
"""

from dataclasses import dataclass

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from stacks.names import pascal_case

CONTRACT_VERSION = "1"


@dataclass(frozen=True)
class ContractValue:
    """One published value: its parameter below the stage's prefix, its output's logical id, and what it is."""

    parameter: str
    output: str
    description: str


VERSION = ContractValue("contract-version", "ContractVersion", "Version of this set of parameters and outputs")
REPOSITORY_URI = ContractValue("repository-uri", "RepositoryUri", "URI of the private repository of job images")
REPOSITORY_ARN = ContractValue("repository-arn", "RepositoryArn", "ARN of the private repository of job images")
JOB_BUCKET = ContractValue("job-bucket", "JobBucketName", "Bucket of sources, inputs, results and records")
RECORDS_PREFIX = ContractValue(
    "records-prefix", "RecordsPrefix", "Prefix of the records of ended jobs in the job bucket"
)
LEDGER_TABLE = ContractValue("ledger-table", "LedgerTableName", "DynamoDB table of every launch that was asked for")
ALARM_TOPIC_ARN = ContractValue("alarm-topic-arn", "AlarmTopicArn", "ARN of the SNS topic that alarms go to")
JOB_ROLE_ARN = ContractValue("job-role-arn", "JobRoleArn", "ARN of the role that jobs run with")


def job_name_value(job: str) -> ContractValue:
    """The value that carries the Braket name of the latest launch of `job`, a name from a jobs.toml."""
    return ContractValue(f"jobs/{job}", f"Job{pascal_case(job)}Name", f"Braket name of the latest launch of {job}")


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
