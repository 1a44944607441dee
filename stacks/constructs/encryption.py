"""The stage's own KMS key, where it names one, and who may use it for what."""

from aws_cdk import Aws, Stack
from aws_cdk import aws_kms as kms
from constructs import Construct

from stacks.constructs.permissions import Permission


def imported_key(scope: Construct, arn: str | None) -> kms.IKey | None:
    """The key that a stage names by its ARN; its own policy has to let the account's IAM policies decide."""
    return None if arn is None else kms.Key.from_key_arn(scope, "EncryptionKey", arn)


def use_key(stack: Stack, arn: str | None, *services: str) -> tuple[Permission, ...]:
    """Let a role read and write what `services` (`s3`, `dynamodb`) encrypt with the key, and only through them."""
    if arn is None:
        return ()
    return (
        Permission(
            sid="UseEncryptionKey",
            actions=["kms:Decrypt", "kms:GenerateDataKey"],
            resources=[arn],
            conditions={
                "StringEquals": {"kms:ViaService": [f"{name}.{stack.region}.{Aws.URL_SUFFIX}" for name in services]}
            },
        ),
    )
