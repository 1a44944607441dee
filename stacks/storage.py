"""The long-lived stack of what jobs read, write and leave behind."""

from aws_cdk import Environment, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from hybridjobs.model.stage import StageSettings
from stacks import contract
from stacks.constructs.encryption import imported_key
from stacks.constructs.job_bucket import RECORDS_PREFIX, JobBucket
from stacks.constructs.launch_ledger import LaunchLedger
from stacks.constructs.permissions import bound_roles
from stacks.names import job_bucket_name, stack_name


class StorageStack(Stack):
    """Job bucket, access-log bucket and launch ledger."""

    def __init__(self, scope: Construct, construct_id: str, *, stage: StageSettings, env: Environment) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=stack_name(stage.name, construct_id),
            env=env,
            description=f"Hybrid quantum jobs, stage {stage.name}: job bucket and launch ledger",
            termination_protection=stage.removal == "retain",
        )
        removal = RemovalPolicy.RETAIN if stage.removal == "retain" else RemovalPolicy.DESTROY
        key = imported_key(self, stage.encryption_key)
        storage = JobBucket(
            self,
            "JobData",
            name=job_bucket_name(stage.name),
            removal=removal,
            empty_on_delete=stage.removal == "destroy",
            keep_records_days=stage.retain_records_days,
            encryption_key=key,
        )
        ledger = LaunchLedger(self, "Ledger", removal=removal, encryption_key=key)
        if stage.service_linked_role:
            # One for the account, whoever uses Braket in it: it outlives the stage.
            role = iam.CfnServiceLinkedRole(self, "BraketServiceLinkedRole", aws_service_name="braket.amazonaws.com")
            role.apply_removal_policy(RemovalPolicy.RETAIN)
        bound_roles(self, stage.permissions_boundary)
        published = contract.Contract(self, "Contract", stage_name=stage.name)
        published.publish(contract.JOB_BUCKET, storage.bucket.bucket_name)
        published.publish(contract.RECORDS_PREFIX, RECORDS_PREFIX)
        published.publish(contract.LEDGER_TABLE, ledger.table.table_name)
