"""The private repository of the job images and who may push to it and pull from it."""

from collections.abc import Sequence

from aws_cdk import Aws, DefaultStackSynthesizer, Duration, RemovalPolicy, Stack
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

PULL_ACTIONS = ("ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer")
PUSH_ACTIONS = (
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:CompleteLayerUpload",
    "ecr:DescribeImages",
    "ecr:DescribeRepositories",
    "ecr:InitiateLayerUpload",
    "ecr:PutImage",
    "ecr:UploadLayerPart",
)


class PrivateRepository(Construct):
    """An immutable, scanned repository that the CDK publishes into and that named principals pull from.

    Its policy has no `Resource` (ECR refuses one when it is deployed) and no `*` principal. An ECR policy that names a
    role which doesn't exist is refused too, and one that names a role by ARN breaks when the role is made anew. The job
    role comes with a later stack and is disposable, so it is named by a condition on the account; its own policy
    completes the permission. The CDK's publishing role exists since the bootstrap, and its own policy knows only the
    bootstrap repository, so it has to be the principal itself.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        job_role_arn: str,
        pull_principals: Sequence[str],
        removal: RemovalPolicy,
        encryption_key: kms.IKey | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.repository = ecr.Repository(
            self,
            "Repository",
            repository_name=name,
            image_tag_mutability=ecr.TagMutability.IMMUTABLE,
            image_scan_on_push=True,
            encryption=ecr.RepositoryEncryption.KMS if encryption_key else ecr.RepositoryEncryption.AES_256,
            encryption_key=encryption_key,
            removal_policy=removal,
            empty_on_delete=removal == RemovalPolicy.DESTROY,
            # Tags are immutable, so a record's digest always has its tag: only what lost or never had one expires.
            lifecycle_rules=[
                ecr.LifecycleRule(
                    description="Expire images without a tag; tagged ones are named by records and stay",
                    tag_status=ecr.TagStatus.UNTAGGED,
                    max_image_age=Duration.days(14),
                )
            ],
        )
        self._allow("PushByCdk", iam.ArnPrincipal(_image_publishing_role_arn(Stack.of(self))), PUSH_ACTIONS)
        self._allow(
            "PullByJobRole",
            iam.AccountPrincipal(Aws.ACCOUNT_ID),
            PULL_ACTIONS,
            conditions={"ArnEquals": {"aws:PrincipalArn": job_role_arn}},
        )
        if pull_principals:
            statement = iam.PolicyStatement(
                sid="PullByNamedPrincipals",
                principals=[iam.ArnPrincipal(principal) for principal in pull_principals],
                actions=list(PULL_ACTIONS),
            )
            self.repository.add_to_resource_policy(statement)

    def _allow(
        self,
        sid: str,
        principal: iam.IPrincipal,
        actions: Sequence[str],
        conditions: dict[str, object] | None = None,
    ) -> None:
        self.repository.add_to_resource_policy(
            iam.PolicyStatement(sid=sid, principals=[principal], actions=list(actions), conditions=conditions)
        )


def _image_publishing_role_arn(stack: Stack) -> str:
    qualifier = stack.synthesizer.bootstrap_qualifier or DefaultStackSynthesizer.DEFAULT_QUALIFIER
    return stack.format_arn(
        service="iam",
        region="",
        resource="role",
        resource_name=f"cdk-{qualifier}-image-publishing-role-{Aws.ACCOUNT_ID}-{Aws.REGION}",
    )
