"""The bucket of everything that jobs read and write, and the bucket of its access logs."""

from aws_cdk import CfnResource, Duration, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

SOURCES_PREFIX = "sources/"
INPUTS_PREFIX = "inputs/"
JOBS_PREFIX = "jobs/"
RECORDS_PREFIX = "records/"
BENCHMARKS_PREFIX = "benchmarks/"
SCHEMAS_PREFIX = "schemas/"
EMPTYING_TIMEOUT = Duration.minutes(15)


class JobBucket(Construct):
    """A private, versioned, encrypted bucket that answers only over TLS, with access logs in a second bucket.

    `encryption_key` is for the job bucket: S3's log delivery can't use a key whose policy doesn't name it.
    `empty_on_delete` adds the CDK's function that empties both buckets before they are deleted, which AWS needs.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        removal: RemovalPolicy,
        empty_on_delete: bool,
        keep_records_days: int | None,
        encryption_key: kms.IKey | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.access_logs = s3.Bucket(
            self,
            "AccessLogs",
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            removal_policy=removal,
            auto_delete_objects=empty_on_delete,
            lifecycle_rules=[s3.LifecycleRule(id="ExpireAccessLogs", expiration=Duration.days(365))],
        )
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            bucket_name=name,
            encryption=s3.BucketEncryption.KMS if encryption_key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=encryption_key,
            bucket_key_enabled=True if encryption_key else None,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            versioned=True,
            server_access_logs_bucket=self.access_logs,
            server_access_logs_prefix="job-bucket/",
            removal_policy=removal,
            auto_delete_objects=empty_on_delete,
            lifecycle_rules=_lifecycle(keep_records_days),
        )
        if empty_on_delete:
            _limit_emptying(self.access_logs)
            _limit_emptying(self.bucket)


def _lifecycle(keep_records_days: int | None) -> list[s3.LifecycleRule]:
    # Sources and inputs are addressed by content and shared by launches: they stay.
    rules = [
        s3.LifecycleRule(
            id="ExpireOldVersions",
            noncurrent_version_expiration=Duration.days(30),
            expired_object_delete_marker=True,
            abort_incomplete_multipart_upload_after=Duration.days(7),
        ),
        s3.LifecycleRule(
            id="CoolJobData",
            prefix=JOBS_PREFIX,
            transitions=[
                s3.Transition(storage_class=s3.StorageClass.INFREQUENT_ACCESS, transition_after=Duration.days(60))
            ],
        ),
    ]
    if keep_records_days is not None:
        rules.append(
            s3.LifecycleRule(id="ExpireRecords", prefix=RECORDS_PREFIX, expiration=Duration.days(keep_records_days))
        )
    return rules


def _limit_emptying(bucket: s3.Bucket) -> None:
    # The CDK leaves this resource at CloudFormation's hour; its function has 15 minutes.
    resource = bucket.node.find_child("AutoDeleteObjectsCustomResource").node.default_child
    if not isinstance(resource, CfnResource):
        raise TypeError(f"the CDK empties {bucket.node.path} with {resource!r} instead of a custom resource")
    resource.add_property_override("ServiceTimeout", str(EMPTYING_TIMEOUT.to_seconds()))
