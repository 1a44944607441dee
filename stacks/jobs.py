"""The disposable stack that launches jobs and collects what they produced."""

from collections.abc import Sequence
from pathlib import Path

from aws_cdk import Aws, DefaultStackSynthesizer, Environment, RemovalPolicy, Stack
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as s3_assets
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from hybridjobs.model.catalogue import CatalogueEntry
from hybridjobs.model.errors import SpecError, SpecProblem
from hybridjobs.model.stage import StageSettings
from stacks import contract
from stacks.constructs.hybrid_job import HybridJob
from stacks.constructs.job_launcher import JobLauncher
from stacks.constructs.job_role import JobRole
from stacks.constructs.launch_environment import LaunchEnvironment
from stacks.constructs.result_collector import ResultCollector
from stacks.constructs.run_time_function import run_time_code
from stacks.names import job_bucket_name, repository_name, stack_name

# Inline policies of a role may have 10240 characters, and each file that the launcher may read is named in 135 of them.
MOST_FILES = 50


class JobsStack(Stack):
    """Job role, launcher, one custom resource a job, collector; image assets go into the stage's own repository."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: StageSettings,
        jobs: Sequence[CatalogueEntry],
        project: Path,
        env: Environment,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=stack_name(stage.name, construct_id),
            env=env,
            description=f"Hybrid quantum jobs, stage {stage.name}: launcher, jobs and result collector",
            synthesizer=DefaultStackSynthesizer(image_assets_repository_name=repository_name(stage.name)),
        )
        _refuse_quantum_hardware(jobs)
        published = contract.Contract(self, "Contract", stage_name=stage.name)
        published.publish(contract.VERSION, contract.CONTRACT_VERSION)

        bucket = job_bucket_name(stage.name)
        job_role = JobRole(
            self,
            "JobRole",
            stage_name=stage.name,
            bucket_arn=f"arn:{Aws.PARTITION}:s3:::{bucket}",
            specs=[entry.spec for entry in jobs],
        )
        published.publish(contract.JOB_ROLE_ARN, job_role.role.role_arn)

        launches = LaunchEnvironment(
            stack=self,
            stage_name=stage.name,
            job_bucket=bucket,
            job_role_arn=job_role.role.role_arn,
            # The table is named by CloudFormation; its parameter is read when this stack is deployed.
            ledger_table=ssm.StringParameter.value_for_string_parameter(
                self, contract.parameter_name(stage.name, contract.LEDGER_TABLE)
            ),
            repository=repository_name(stage.name),
            max_concurrent_jobs=stage.max_concurrent_jobs,
        )
        code = run_time_code(project / "lambdas")
        keep = stage.removal == "retain"
        log_retention = logs.RetentionDays.ONE_YEAR if keep else logs.RetentionDays.ONE_MONTH
        log_removal = RemovalPolicy.RETAIN if keep else RemovalPolicy.DESTROY
        collector = ResultCollector(
            self, "Collector", launches=launches, code=code, log_retention=log_retention, log_removal=log_removal
        )
        launcher = JobLauncher(
            self, "Launcher", launches=launches, code=code, log_retention=log_retention, log_removal=log_removal
        )

        # A scope of their own, so that a job may have the name of another part of this stack.
        launched = Construct(self, "HybridJobs")
        previous: HybridJob | None = None
        assets: list[s3_assets.Asset] = []
        for entry in jobs:
            job = HybridJob(
                launched,
                entry.spec.name,
                entry=entry,
                run=stage.run,
                service_token=launcher.service_token,
                container_assets=project / "container_assets",
            )
            # Before the first job ends its collector listens, and while a job exists its role has its permissions.
            job.resource.node.add_dependency(job_role, launcher, collector)
            # One after another: in a small account many launches at once exhaust Lambda's concurrency.
            if previous is not None:
                job.resource.node.add_dependency(previous.resource)
            published.publish(contract.job_name_value(entry.spec.name), job.job_name)
            assets += job.assets
            previous = job
        _refuse_more_files_than_a_policy_can_name(stage, assets)
        launcher.allow_reading(assets)


def _refuse_more_files_than_a_policy_can_name(stage: StageSettings, assets: Sequence[s3_assets.Asset]) -> None:
    files = len({asset.asset_hash for asset in assets})
    if files > MOST_FILES:
        raise SpecError(
            f"the jobs of this stage bring {files} files, and the launcher's policy has room for {MOST_FILES}",
            file=stage.file,
            key="launch",
            value=list(stage.launch),
            remedy="Pack the files of an input channel into one archive that the job unpacks, or launch fewer jobs",
        )


def _refuse_quantum_hardware(jobs: Sequence[CatalogueEntry]) -> None:
    # The roles of this stack are denied hardware, so such a job would start, be billed, and fail at its first task.
    problems = [
        SpecProblem(
            problem="this is quantum hardware, which is billed by shot and denied to the jobs of this project",
            remedy='Use an embedded simulator, such as "local:pennylane/lightning.qubit", or a managed simulator',
            file=str(entry.file),
            key=f"jobs.{entry.spec.name}.device",
            value=entry.spec.device,
        )
        for entry in jobs
        if ":device/qpu/" in entry.spec.device
    ]
    if problems:
        raise SpecError.of(problems)
