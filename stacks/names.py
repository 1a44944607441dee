"""The physical names that Braket or another stack forces; everything else is named by CloudFormation.

Braket accepts only buckets and repositories called `amazon-braket-*`, and its managed policies know job roles only as
`service-role/AmazonBraketJobsExecutionRole*`. A name that can be computed is also how one stack refers to what another
one owns without an export between them.
"""

import re

from aws_cdk import Aws, Stack


def repository_name(stage_name: str) -> str:
    """Name of the private repository that holds the stage's job images."""
    return f"amazon-braket-hybrid-jobs-{stage_name}"


def job_bucket_name(stage_name: str) -> str:
    """Name of the bucket for sources, inputs, results and records; account and region are filled in by the deploy."""
    return f"amazon-braket-hybrid-jobs-{stage_name}-{Aws.ACCOUNT_ID}-{Aws.REGION}"


def asset_prefix(stage_name: str) -> str:
    """Where the Jobs stack's files lie in the CDK's asset bucket: the launcher may read these, and no other app's."""
    return f"hybrid-jobs/{stage_name}/"


def job_role_name(stage_name: str) -> str:
    """Name of the role that jobs run with; roles are global, so the region keeps two deployments of a stage apart."""
    return f"AmazonBraketJobsExecutionRole-HybridJobs-{stage_name}-{Aws.REGION}"


def job_role_arn(stack: Stack, stage_name: str) -> str:
    """ARN of the job role, for policies that are written before the role exists."""
    return stack.format_arn(
        service="iam", region="", resource="role", resource_name=f"service-role/{job_role_name(stage_name)}"
    )


def stack_name(stage_name: str, part: str) -> str:
    """Name of one of the stage's stacks: `HybridJobs-<stage>-<part>`."""
    return f"HybridJobs-{stage_name}-{part}"


def pascal_case(name: str) -> str:
    """`qaoa-18-cpu` as `Qaoa18Cpu`, for logical ids."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", name))
