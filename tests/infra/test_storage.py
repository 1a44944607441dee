"""What the buckets and the ledger refuse, keep and forget, and what becomes of them when a stage is destroyed."""

from tests.infra.synthesised import Synthesise, Synthesised, flat, many

STATEFUL = {"AWS::ECR::Repository", "AWS::S3::Bucket", "AWS::DynamoDB::Table"}


def test_buckets_are_private_encrypted_and_answer_only_over_tls(kept: Synthesised) -> None:
    buckets = kept.resources("Storage", "AWS::S3::Bucket")
    assert len(buckets) == 2
    for bucket in buckets.values():
        properties = bucket["Properties"]
        assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}
        (rule,) = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
        assert properties["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]

    policies = kept.resources("Storage", "AWS::S3::BucketPolicy").values()
    refused = {
        policy["Properties"]["Bucket"]["Ref"]
        for policy in policies
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny"
        and statement["Principal"] == {"AWS": "*"}
        and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    }
    assert refused == set(buckets)


def test_braket_accepts_the_job_bucket(kept: Synthesised) -> None:
    (bucket,) = [
        each["Properties"]
        for each in kept.resources("Storage", "AWS::S3::Bucket").values()
        if "BucketName" in each["Properties"]
    ]
    assert flat(bucket["BucketName"]) == "amazon-braket-hybrid-jobs-kept-<AWS::AccountId>-<AWS::Region>"
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    assert bucket["LoggingConfiguration"]["LogFilePrefix"] == "job-bucket/"


def test_records_expire_only_where_the_stage_says_so(kept: Synthesised, local: Synthesised) -> None:
    def expiring(stage: Synthesised) -> dict[str, int]:
        return {
            rule.get("Prefix", ""): rule["ExpirationInDays"]
            for bucket in stage.resources("Storage", "AWS::S3::Bucket").values()
            if "BucketName" in bucket["Properties"]
            for rule in bucket["Properties"]["LifecycleConfiguration"]["Rules"]
            if "ExpirationInDays" in rule
        }

    assert expiring(kept) == {"records/": 90}
    assert expiring(local) == {}


def test_the_ledger_can_be_read_consistently_and_restored(local: Synthesised) -> None:
    table = local.the("Storage", "AWS::DynamoDB::Table")
    assert table["KeySchema"] == [
        {"AttributeName": "kind", "KeyType": "HASH"},
        {"AttributeName": "name", "KeyType": "RANGE"},
    ]
    # A local index, because a global one can't be read consistently.
    (index,) = table["LocalSecondaryIndexes"]
    assert index["IndexName"] == "open-launches"
    assert index["Projection"] == {"ProjectionType": "ALL"}
    assert "GlobalSecondaryIndexes" not in table
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


def test_a_stage_that_retains_keeps_everything_that_holds_data(kept: Synthesised) -> None:
    policies = [
        (each["DeletionPolicy"], each["UpdateReplacePolicy"])
        for _, _, each in kept.everything()
        if each["Type"] in STATEFUL
    ]
    assert policies == [("Retain", "Retain")] * 4
    assert kept.the("Storage", "AWS::DynamoDB::Table")["DeletionProtectionEnabled"] is True
    assert kept.the("Registry", "AWS::ECR::Repository")["EmptyOnDelete"] is False
    assert not kept.resources("Storage", "Custom::S3AutoDeleteObjects")


def test_a_stage_that_destroys_empties_what_aws_would_not_delete(empty: Synthesised) -> None:
    assert {each["DeletionPolicy"] for _, _, each in empty.everything() if each["Type"] in STATEFUL} == {"Delete"}
    assert empty.the("Registry", "AWS::ECR::Repository")["EmptyOnDelete"] is True
    emptied = {
        each["Properties"]["BucketName"]["Ref"]
        for each in empty.resources("Storage", "Custom::S3AutoDeleteObjects").values()
    }
    assert emptied == set(empty.resources("Storage", "AWS::S3::Bucket"))


def test_statements_of_bucket_policies_name_their_bucket(kept: Synthesised) -> None:
    for policy in kept.resources("Storage", "AWS::S3::BucketPolicy").values():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            assert "*" not in [flat(resource) for resource in many(statement["Resource"])]


def test_a_stage_s_own_key_encrypts_bucket_ledger_and_images(synthesise: Synthesise) -> None:
    key = "arn:aws:kms:us-east-1:111122223333:key/0f1e2d3c-0000-1111-2222-333344445555"
    stage = synthesise("keyed", f'launch = []\nremoval = "retain"\nmax_spend_usd = 0.0\nencryption_key = "{key}"\n')
    (bucket,) = [
        each["Properties"]
        for each in stage.resources("Storage", "AWS::S3::Bucket").values()
        if "BucketName" in each["Properties"]
    ]
    assert bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"] == [
        {
            "BucketKeyEnabled": True,
            "ServerSideEncryptionByDefault": {"KMSMasterKeyID": key, "SSEAlgorithm": "aws:kms"},
        }
    ]
    assert stage.the("Storage", "AWS::DynamoDB::Table")["SSESpecification"]["KMSMasterKeyId"] == key
    assert stage.the("Registry", "AWS::ECR::Repository")["EncryptionConfiguration"] == {
        "EncryptionType": "KMS",
        "KmsKey": key,
    }
    uses = {
        name: each["Properties"]["PolicyDocument"]["Statement"]
        for name, each in stage.resources("Jobs", "AWS::IAM::Policy").items()
    }
    holders = {
        name.partition("DefaultPolicy")[0]: statement["Condition"]["StringEquals"]["kms:ViaService"]
        for name, statements in uses.items()
        for statement in statements
        if statement.get("Sid") == "UseEncryptionKey" and statement["Resource"] == key
    }
    assert {name: len(many(services)) for name, services in holders.items()} == {
        "JobRole": 1,
        "LauncherRole": 2,
        "CollectorRole": 2,
        "CollectorSweepRole": 2,
    }


def test_the_role_that_braket_needs_once_an_account_outlives_the_stage(synthesise: Synthesise) -> None:
    stage = synthesise("linked", 'launch = []\nremoval = "destroy"\nmax_spend_usd = 0.0\nservice_linked_role = true\n')
    (role,) = stage.resources("Storage", "AWS::IAM::ServiceLinkedRole").values()
    assert role["Properties"] == {"AWSServiceName": "braket.amazonaws.com"}
    assert role["DeletionPolicy"] == role["UpdateReplacePolicy"] == "Retain"
