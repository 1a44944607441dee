"""The table of every launch that was asked for, which makes a launch happen once."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from constructs import Construct

OPEN_LAUNCHES_INDEX = "open-launches"


class LaunchLedger(Construct):
    """An on-demand table keyed by `kind` and `name`, with a local index of the launches that are still open.

    The index is local because only a local one can be read consistently: the dispatcher counts what runs by it.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, removal: RemovalPolicy, encryption_key: kms.IKey | None
    ) -> None:
        super().__init__(scope, construct_id)
        self.table = dynamodb.Table(
            self,
            "Table",
            partition_key=dynamodb.Attribute(name="kind", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="name", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            encryption=dynamodb.TableEncryption.CUSTOMER_MANAGED if encryption_key else None,
            encryption_key=encryption_key,
            deletion_protection=removal == RemovalPolicy.RETAIN,
            removal_policy=removal,
        )
        self.table.add_local_secondary_index(
            index_name=OPEN_LAUNCHES_INDEX,
            sort_key=dynamodb.Attribute(name="open_since", type=dynamodb.AttributeType.STRING),
            projection_type=dynamodb.ProjectionType.ALL,
        )
