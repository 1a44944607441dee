"""A Lambda function of the project with its own role and its own log group."""

from collections.abc import Mapping
from pathlib import Path

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.constructs.permissions import Permission, allow


def run_time_code(lambdas: Path) -> lambda_.Code:
    """The folder of the run-time code as one asset; the same for every function, so it is uploaded once."""
    return lambda_.Code.from_asset(str(lambdas), exclude=["**/__pycache__", "**/*.pyc", "**/.*", "**/*.md", "**/tests"])


class FunctionRole(iam.Role):
    """A function's role that may write to one log group; nothing of the managed execution policies."""

    def __init__(self, scope: Construct, construct_id: str, *, log_group: logs.ILogGroup) -> None:
        super().__init__(scope, construct_id, assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        # The group's ARN attribute ends in ":*", which is the group's own streams.
        allow(
            self,
            Permission(
                sid="WriteOwnLogs",
                actions=["logs:CreateLogStream", "logs:PutLogEvents"],
                resources=[log_group.log_group_arn],
            ),
        )


class RunTimeFunction(Construct):
    """A function from the project's run-time code, in no VPC and without reserved concurrency.

    Reserved concurrency fails the deploy in accounts whose limit is 10, and a function in a VPC may not reach Braket.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        code: lambda_.Code,
        handler: str,
        description: str,
        environment: Mapping[str, str],
        timeout: Duration,
        memory_mib: int,
        log_retention: logs.RetentionDays,
        log_removal: RemovalPolicy,
        dead_letters: sqs.IQueue | None = None,
        retry_attempts: int | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        log_group = logs.LogGroup(self, "Logs", retention=log_retention, removal_policy=log_removal)
        self.role = FunctionRole(self, "Role", log_group=log_group)
        self.function = lambda_.Function(
            self,
            "Function",
            runtime=lambda_.Runtime.PYTHON_3_14,
            architecture=lambda_.Architecture.ARM_64,
            code=code,
            handler=handler,
            description=description,
            environment=dict(environment),
            timeout=timeout,
            memory_size=memory_mib,
            role=self.role,
            log_group=log_group,
            logging_format=lambda_.LoggingFormat.JSON,
            dead_letter_queue=dead_letters,
            retry_attempts=retry_attempts,
        )
