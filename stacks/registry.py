"""The long-lived stack of the job images."""

from aws_cdk import Environment, RemovalPolicy, Stack
from constructs import Construct

from hybridjobs.model.stage import StageSettings
from stacks import contract
from stacks.constructs.encryption import imported_key
from stacks.constructs.permissions import bound_roles
from stacks.constructs.private_repository import PrivateRepository
from stacks.names import job_role_arn, repository_name, stack_name


class RegistryStack(Stack):
    """Private ECR repository of the stage's job images, with its repository policy."""

    def __init__(self, scope: Construct, construct_id: str, *, stage: StageSettings, env: Environment) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=stack_name(stage.name, construct_id),
            env=env,
            description=f"Hybrid quantum jobs, stage {stage.name}: the private repository of the job images",
            termination_protection=stage.removal == "retain",
        )
        images = PrivateRepository(
            self,
            "JobImages",
            name=repository_name(stage.name),
            job_role_arn=job_role_arn(self, stage.name),
            pull_principals=stage.pull_principals,
            removal=RemovalPolicy.RETAIN if stage.removal == "retain" else RemovalPolicy.DESTROY,
            encryption_key=imported_key(self, stage.encryption_key),
        )
        bound_roles(self, stage.permissions_boundary)
        published = contract.Contract(self, "Contract", stage_name=stage.name)
        published.publish(contract.REPOSITORY_URI, images.repository.repository_uri)
        published.publish(contract.REPOSITORY_ARN, images.repository.repository_arn)
