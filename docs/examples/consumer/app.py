"""A stack of another team that builds on the contract: a function that answers with a job's latest record.

    cd docs/examples/consumer && npx cdk deploy --context stage=dev --context job=qaoa-18-cpu

What belongs to the deployment (bucket, prefix) is read when this stack is deployed, and what changes with every launch
(the job's name) when the function runs. Nothing is imported from the producing stacks, so neither holds the other back.
"""

from aws_cdk import App, CfnOutput, Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_ssm as ssm
from constructs import Construct

READ_LATEST_RECORD = """
import json
import os

import boto3


def handle(event, context):
    job_name = boto3.client("ssm").get_parameter(Name=os.environ["JOB_PARAMETER"])["Parameter"]["Value"]
    key = f"{os.environ['RECORDS_PREFIX']}{job_name}.json"
    return json.loads(boto3.client("s3").get_object(Bucket=os.environ["JOB_BUCKET"], Key=key)["Body"].read())
"""


class ConsumerStack(Stack):
    """A function that may read the records of one stage, and nothing else of it."""

    def __init__(self, scope: Construct, construct_id: str, *, stage: str, job: str) -> None:
        super().__init__(scope, construct_id, stack_name=f"HybridJobs-{stage}-Consumer")
        prefix = f"/hybrid-jobs/{stage}"
        bucket = ssm.StringParameter.value_for_string_parameter(self, f"{prefix}/job-bucket")
        records = ssm.StringParameter.value_for_string_parameter(self, f"{prefix}/records-prefix")
        job_parameter = f"{prefix}/jobs/{job}"

        reader = lambda_.Function(
            self,
            "Reader",
            runtime=lambda_.Runtime.PYTHON_3_14,
            handler="index.handle",
            code=lambda_.Code.from_inline(READ_LATEST_RECORD),
            timeout=Duration.seconds(30),
            environment={"JOB_BUCKET": bucket, "RECORDS_PREFIX": records, "JOB_PARAMETER": job_parameter},
            log_group=logs.LogGroup(
                self, "Logs", retention=logs.RetentionDays.ONE_MONTH, removal_policy=RemovalPolicy.DESTROY
            ),
        )
        reader.add_to_role_policy(
            iam.PolicyStatement(actions=["s3:GetObject"], resources=[f"arn:{self.partition}:s3:::{bucket}/{records}*"])
        )
        reader.add_to_role_policy(
            iam.PolicyStatement(
                actions=["ssm:GetParameter"],
                resources=[self.format_arn(service="ssm", resource="parameter", resource_name=job_parameter[1:])],
            )
        )
        CfnOutput(self, "ReaderName", value=reader.function_name)


app = App()
ConsumerStack(
    app, "Consumer", stage=str(app.node.get_context("stage")), job=str(app.node.try_get_context("job") or "qaoa-18-cpu")
)
app.synth()
