"""What the three functions share: the names they are told and the permissions to start and follow jobs."""

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import Stack

from stacks.constructs.encryption import use_key
from stacks.constructs.job_bucket import (
    BENCHMARKS_PREFIX,
    INPUTS_PREFIX,
    JOBS_PREFIX,
    RECORDS_PREFIX,
    SCHEMAS_PREFIX,
    SOURCES_PREFIX,
)
from stacks.constructs.job_role import JOB_LOG_GROUP
from stacks.constructs.launch_ledger import OPEN_LAUNCHES_INDEX
from stacks.constructs.permissions import Permission


@dataclass(frozen=True)
class LaunchEnvironment:
    """Where launches of one stage happen; names and ARNs may be tokens of the Jobs stack.

    `repository` is the name of the stage's own, `image_repositories` are the ARNs of all that the launcher looks into.
    """

    stack: Stack
    stage_name: str
    job_bucket: str
    job_role_arn: str
    ledger_table: str
    repository: str
    image_repositories: Sequence[str]
    max_concurrent_jobs: int
    max_spend_usd: float
    allow_unknown_price: bool
    cancel_orphans: bool
    quantum_hardware: bool
    encryption_key: str | None

    def variables(self) -> dict[str, str]:
        """The environment variables that the run-time code reads."""
        return {
            "STAGE": self.stage_name,
            "JOB_BUCKET": self.job_bucket,
            "JOB_ROLE_ARN": self.job_role_arn,
            "LEDGER_TABLE": self.ledger_table,
            "MAX_CONCURRENT_JOBS": str(self.max_concurrent_jobs),
            "MAX_SPEND_USD": str(self.max_spend_usd),
            "ALLOW_UNKNOWN_PRICE": _flag(self.allow_unknown_price),
            "CANCEL_ORPHANS": _flag(self.cancel_orphans),
            "REPOSITORY_NAME": self.repository,
        }

    @property
    def _bucket_arn(self) -> str:
        return f"arn:{self.stack.partition}:s3:::{self.job_bucket}"

    def start_jobs(self) -> tuple[Permission, ...]:
        """Keep the ledger and start what waits in it: the dispatcher, which runs in all three functions."""
        table = self.stack.format_arn(service="dynamodb", resource="table", resource_name=self.ledger_table)
        return (
            Permission(
                sid="KeepLedger",
                actions=["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem"],
                resources=[table],
            ),
            Permission(
                sid="ReadOpenLaunches",
                actions=["dynamodb:Query"],
                resources=[f"{table}/index/{OPEN_LAUNCHES_INDEX}"],
            ),
            Permission(
                sid="StartJobs",
                actions=["braket:CreateJob", "braket:SearchJobs"],
                resources=["*"],
                wildcard_reason="There is no job to name yet, and embedded simulators have no ARN.",
            ),
            Permission(
                sid="FollowAndCancelJobs",
                actions=["braket:CancelJob", "braket:GetJob", "braket:TagResource"],
                resources=[self.stack.format_arn(service="braket", resource="job", resource_name="*")],
                wildcard_reason="A job's ARN ends in an id that Braket makes up when the job is created.",
            ),
            Permission(
                sid="PassJobRoleToBraket",
                actions=["iam:PassRole"],
                resources=[self.job_role_arn],
                conditions={"StringEquals": {"iam:PassedToService": "braket.amazonaws.com"}},
            ),
            *use_key(self.stack, self.encryption_key, "dynamodb", "s3"),
        )

    def place_sources_and_inputs(self) -> tuple[Permission, ...]:
        """Copy archives and inputs into the job bucket under their content's hash; look images up."""
        return (
            Permission(
                sid="PlaceSourcesAndInputs",
                actions=["s3:GetObject", "s3:PutObject"],
                resources=[f"{self._bucket_arn}/{prefix}*" for prefix in (SOURCES_PREFIX, INPUTS_PREFIX)],
                wildcard_reason="Sources and inputs are named by a hash of their content.",
            ),
            Permission(
                sid="PublishSchemas",
                actions=["s3:PutObject"],
                resources=[f"{self._bucket_arn}/{SCHEMAS_PREFIX}*"],
                wildcard_reason="Schemas are named by what they describe and their version.",
            ),
            self._tell_missing_objects(),
            Permission(
                sid="LookImagesUp",
                # Digest and size, the manifest, and the configuration, which names the platform.
                actions=["ecr:BatchGetImage", "ecr:DescribeImages", "ecr:GetDownloadUrlForLayer"],
                resources=self.image_repositories,
            ),
        )

    def collect_results(self) -> tuple[Permission, ...]:
        """Read what a job left behind and write its record and its benchmark's summary."""
        log_group = self.stack.format_arn(service="logs", resource=f"log-group:{JOB_LOG_GROUP}")
        return (
            Permission(
                sid="ReadResults",
                actions=["s3:GetObject"],
                resources=[f"{self._bucket_arn}/{JOBS_PREFIX}*/data/output/*"],
                wildcard_reason="Results are named by the job, which exists only once it is launched.",
            ),
            Permission(
                sid="KeepRecords",
                actions=["s3:GetObject", "s3:PutObject"],
                resources=[f"{self._bucket_arn}/{prefix}*" for prefix in (RECORDS_PREFIX, BENCHMARKS_PREFIX)],
                wildcard_reason="Records are named by the job, which exists only once it is launched.",
            ),
            self._tell_missing_objects(),
            Permission(
                sid="ReadJobLogs",
                actions=["logs:DescribeLogStreams", "logs:GetLogEvents"],
                # Streams are listed in the group, and read one by one.
                resources=[log_group, f"{log_group}:*"],
                wildcard_reason="Braket names a log stream by the job's id, which exists only once a job is launched.",
            ),
        )

    def see_stack_going(self) -> tuple[Permission, ...]:
        """Ask whether this very stack is being deleted, so that nothing can hold its jobs any more."""
        return (
            Permission(sid="SeeStackGoing", actions=["cloudformation:DescribeStacks"], resources=[self.stack.stack_id]),
        )

    def find_orphans(self) -> tuple[Permission, ...]:
        """Ask whether the resource that launched a job still stands, in this stack or in one of its name before it."""
        stacks = self.stack.format_arn(
            service="cloudformation", resource="stack", resource_name=f"{self.stack.stack_name}/*"
        )
        return (
            Permission(
                sid="AskForLaunchingResource",
                actions=["cloudformation:DescribeStackResource", "cloudformation:DescribeStacks"],
                resources=[stacks],
                wildcard_reason="A stack's ARN ends in an id; the ledger may hold launches of a stack that is gone.",
            ),
        )

    def _tell_missing_objects(self) -> Permission:
        # Without it S3 answers a missing object with 403 instead of 404. A condition on the prefix would undo it,
        # since only a request that lists carries a prefix.
        return Permission(sid="TellMissingObjects", actions=["s3:ListBucket"], resources=[self._bucket_arn])


def _flag(value: bool) -> str:
    return "true" if value else "false"
