"""The role that jobs run with: what an embedded-simulator job touches, and nothing of the managed policy's extras."""

from collections.abc import Sequence

from aws_cdk import Acknowledgment, Aws, Stack, Validations
from aws_cdk import aws_iam as iam
from constructs import Construct

from hybridjobs.model.images import STOCK_ACCOUNT
from hybridjobs.model.job_spec import JobSpec
from hybridjobs.model.stage import StageSettings
from stacks.constructs.encryption import use_key
from stacks.constructs.image_repositories import named_repositories, own_repository
from stacks.constructs.job_bucket import INPUTS_PREFIX, JOBS_PREFIX, SOURCES_PREFIX
from stacks.constructs.permissions import Permission, allow, deny_quantum_hardware
from stacks.constructs.private_repository import PULL_ACTIONS
from stacks.names import job_role_name

# Amazon's account of the stock Braket images, the same in every region, and its repositories.
STOCK_IMAGE_REPOSITORIES = (
    "amazon-braket-base-jobs",
    "amazon-braket-cudaq-jobs",
    "amazon-braket-pytorch-jobs",
    "amazon-braket-tensorflow-jobs",
)
# Where Braket writes the logs of every job of the account, and the one namespace a job may send metrics to.
JOB_LOG_GROUP = "/aws/braket/jobs"
METRIC_NAMESPACE = "/aws/braket"
MANAGED_POLICY = "AmazonBraketJobsExecutionPolicy"
READABLE_PREFIXES = (SOURCES_PREFIX, INPUTS_PREFIX, JOBS_PREFIX)


class JobRole(Construct):
    """Role for Braket to run jobs with; only this account's jobs may assume it.

    `specs` are the jobs that the stage launches: devices and further image repositories that none of them names are not
    allowed to any. Where the stage says `managed_job_policy`, the role has Amazon's policy in place of ours, which a
    warning says on every synthesis.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, stage: StageSettings, bucket_arn: str, specs: Sequence[JobSpec]
    ) -> None:
        super().__init__(scope, construct_id)
        self.role = iam.Role(
            self,
            "Role",
            path="/service-role/",
            role_name=job_role_name(stage.name),
            description=f"Runs the hybrid quantum jobs of stage {stage.name}",
            assumed_by=iam.ServicePrincipal(
                "braket.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
            ),
        )
        if stage.managed_job_policy:
            self._attach_managed_policy()
        else:
            self._allow_what_jobs_need(stage.name, bucket_arn, specs)
        allow(self.role, *use_key(Stack.of(self), stage.encryption_key, "s3"))
        if not stage.quantum_hardware:
            deny_quantum_hardware(self.role)

    def _attach_managed_policy(self) -> None:
        self.role.add_managed_policy(iam.ManagedPolicy.from_aws_managed_policy_name(MANAGED_POLICY))
        Validations.of(self).add_warning(
            "hybrid-jobs:managed-job-policy",
            f"The job role has {MANAGED_POLICY}: jobs may use every bucket and repository called amazon-braket-*, "
            "create jobs and pass roles to Braket. Leave managed_job_policy out of the stage to allow only what jobs "
            "need",
        )
        Validations.of(self.role).acknowledge(
            Acknowledgment(
                id=f"AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{MANAGED_POLICY}]",
                reason="The stage asks for Amazon's own policy by managed_job_policy, and every synthesis warns of it.",
            )
        )

    def _allow_what_jobs_need(self, stage_name: str, bucket_arn: str, specs: Sequence[JobSpec]) -> None:
        stack = Stack.of(self)
        per_job = "Object names hold the job's name or a content hash, which exist only once a job is launched."
        log_group = stack.format_arn(service="logs", resource=f"log-group:{JOB_LOG_GROUP}")
        allow(
            self.role,
            Permission(
                sid="ReadSourcesInputsAndCheckpoints",
                actions=["s3:GetObject"],
                resources=[f"{bucket_arn}/{prefix}*" for prefix in READABLE_PREFIXES],
                wildcard_reason=per_job,
            ),
            Permission(
                sid="WriteResultsAndCheckpoints",
                actions=["s3:PutObject"],
                resources=[f"{bucket_arn}/{JOBS_PREFIX}*"],
                wildcard_reason=per_job,
            ),
            Permission(
                sid="ListOwnPrefixes",
                actions=["s3:ListBucket"],
                resources=[bucket_arn],
                conditions={"StringLike": {"s3:prefix": [f"{prefix}*" for prefix in READABLE_PREFIXES]}},
            ),
            Permission(
                sid="LogInToEcr",
                actions=["ecr:GetAuthorizationToken"],
                resources=["*"],
                wildcard_reason="The action has no resource; the repositories are named where images are pulled.",
            ),
            Permission(
                sid="PullJobImages", actions=PULL_ACTIONS, resources=_image_repositories(stack, stage_name, specs)
            ),
            Permission(
                sid="WriteJobLogs",
                actions=[
                    "logs:CreateLogGroup",
                    "logs:CreateLogStream",
                    "logs:DescribeLogStreams",
                    "logs:PutLogEvents",
                ],
                resources=[log_group, f"{log_group}:*"],
                wildcard_reason="Braket names a log stream by the job's id, which exists only once a job is launched.",
            ),
            Permission(
                sid="SendJobMetrics",
                actions=["cloudwatch:PutMetricData"],
                resources=["*"],
                conditions={"StringEquals": {"cloudwatch:namespace": METRIC_NAMESPACE}},
                wildcard_reason="The action has no resource; the condition narrows it to one namespace.",
            ),
        )
        devices = sorted({spec.device for spec in specs if spec.device.startswith("arn:")})
        if devices:
            allow(self.role, *_use_devices(stack, devices))


def _image_repositories(stack: Stack, stage_name: str, specs: Sequence[JobSpec]) -> list[str]:
    own = own_repository(stack, stage_name)
    stock = [
        stack.format_arn(service="ecr", account=STOCK_ACCOUNT, resource="repository", resource_name=name)
        for name in STOCK_IMAGE_REPOSITORIES
    ]
    return [own, *stock, *(each for each in named_repositories(stack, specs) if each != own)]


def _use_devices(stack: Stack, devices: Sequence[str]) -> tuple[Permission, ...]:
    tasks = stack.format_arn(service="braket", resource="quantum-task", resource_name="*")
    reason = "A task's ARN ends in an id that Braket makes up when the task is created."
    return (
        Permission(
            sid="RunTasks",
            actions=["braket:CreateQuantumTask"],
            resources=[*devices, tasks],
            wildcard_reason=reason,
        ),
        Permission(
            sid="FollowTasks",
            actions=["braket:CancelQuantumTask", "braket:GetQuantumTask"],
            resources=[tasks],
            wildcard_reason=reason,
        ),
        Permission(sid="ReadDevices", actions=["braket:GetDevice"], resources=devices),
    )
