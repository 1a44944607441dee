"""The disposable stack that launches jobs and collects what they produced."""

from collections.abc import Sequence
from pathlib import Path

from aws_cdk import Aws, DefaultStackSynthesizer, Environment, RemovalPolicy, Stack, Validations
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as s3_assets
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from hybridjobs.model.catalogue import CatalogueEntry
from hybridjobs.model.errors import SpecError, SpecProblem
from hybridjobs.model.stage import StageSettings
from stacks import contract
from stacks.constructs.dashboard import Dashboard, alarm_topic
from stacks.constructs.encryption import imported_key
from stacks.constructs.hybrid_job import HybridJob
from stacks.constructs.image_repositories import readable_repositories
from stacks.constructs.job_launcher import JobLauncher
from stacks.constructs.job_role import JobRole
from stacks.constructs.launch_environment import LaunchEnvironment
from stacks.constructs.permissions import bound_roles
from stacks.constructs.published_records import PublishedRecords
from stacks.constructs.result_collector import ResultCollector
from stacks.constructs.run_time_function import run_time_code
from stacks.names import asset_prefix, job_bucket_name, repository_name, stack_name


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
            synthesizer=DefaultStackSynthesizer(
                image_assets_repository_name=repository_name(stage.name),
                # Files of this stage alone, so that the launcher may read them without each being named.
                bucket_prefix=asset_prefix(stage.name),
            ),
        )
        bound_roles(self, stage.permissions_boundary)
        self._judge_quantum_hardware(stage, jobs)
        published = contract.Contract(self, "Contract", stage_name=stage.name)
        published.publish(contract.VERSION, contract.CONTRACT_VERSION)

        bucket = job_bucket_name(stage.name)
        job_role = JobRole(
            self,
            "JobRole",
            stage=stage,
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
            image_repositories=readable_repositories(self, stage, [entry.spec for entry in jobs]),
            max_concurrent_jobs=stage.max_concurrent_jobs,
            max_spend_usd=stage.max_spend_usd,
            allow_unknown_price=stage.allow_unknown_price,
            cancel_orphans=stage.cancel_orphans,
            quantum_hardware=stage.quantum_hardware,
            encryption_key=stage.encryption_key,
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

        topic = alarm_topic(self, stage.alarm_topic, imported_key(self, stage.encryption_key))
        if topic is not None:
            published.publish(contract.ALARM_TOPIC_ARN, topic.topic_arn)
        Dashboard(
            self,
            "Dashboard",
            stage_name=stage.name,
            functions={"Launcher": launcher.function, **collector.functions},
            dead_letters=[collector.undelivered, collector.unprocessed],
            alarms=collector.alarms,
            topic=topic,
        )
        records = PublishedRecords(self, "Records", service_token=launcher.service_token)
        records.resource.node.add_dependency(job_role, launcher, collector)

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
            job.resource.node.add_dependency(job_role, launcher, collector, records.resource)
            # One after another: in a small account many launches at once exhaust Lambda's concurrency.
            if previous is not None:
                job.resource.node.add_dependency(previous.resource)
            published.publish(contract.job_name_value(entry.spec.name), job.job_name)
            assets += job.assets
            previous = job
        launcher.allow_reading([*assets, *records.assets])

    def _judge_quantum_hardware(self, stage: StageSettings, jobs: Sequence[CatalogueEntry]) -> None:
        on_hardware = [entry for entry in jobs if ":device/qpu/" in entry.spec.device]
        if not stage.quantum_hardware:
            _refuse_quantum_hardware(on_hardware)
        elif on_hardware:
            Validations.of(self).add_warning(
                "hybrid-jobs:quantum-hardware",
                f"{', '.join(entry.spec.name for entry in on_hardware)}: quantum hardware is billed by task and shot, "
                "which max_spend_usd does not bound. A Braket spending limit on the device does",
            )


def _refuse_quantum_hardware(on_hardware: Sequence[CatalogueEntry]) -> None:
    # Without the stage's leave the roles are denied hardware: such a job would be billed until its first task fails.
    problems = [
        SpecProblem(
            problem="this is quantum hardware, which is billed by shot and denied to the jobs of this stage",
            remedy='Use an embedded simulator, such as "local:pennylane/lightning.qubit", or a managed one, or write '
            "quantum_hardware = true in the stage",
            file=str(entry.file),
            key=f"jobs.{entry.spec.name}.device",
            value=entry.spec.device,
        )
        for entry in on_hardware
    ]
    if problems:
        raise SpecError.of(problems)
