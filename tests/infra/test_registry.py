"""Who may push to and pull from the private repository, and what it never throws away."""

import json

from tests.infra.synthesised import Synthesised, flat, many

PULL = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]


def test_tags_are_immutable_and_every_push_is_scanned(local: Synthesised) -> None:
    repository = local.the("Registry", "AWS::ECR::Repository")
    assert repository["RepositoryName"] == "amazon-braket-hybrid-jobs-local"
    assert repository["ImageTagMutability"] == "IMMUTABLE"
    assert repository["ImageScanningConfiguration"] == {"ScanOnPush": True}


def test_only_images_without_a_tag_expire(local: Synthesised) -> None:
    text = local.the("Registry", "AWS::ECR::Repository")["LifecyclePolicy"]["LifecyclePolicyText"]
    assert [rule["selection"]["tagStatus"] for rule in json.loads(text)["rules"]] == ["untagged"]


def test_the_policy_names_who_may_push_and_pull_and_nobody_else(kept: Synthesised) -> None:
    statements = kept.the("Registry", "AWS::ECR::Repository")["RepositoryPolicyText"]["Statement"]
    by_sid = {statement["Sid"]: statement for statement in statements}
    assert set(by_sid) == {"PushByCdk", "PullByJobRole", "PullByNamedPrincipals"}

    push = by_sid["PushByCdk"]
    assert flat(push["Principal"]["AWS"]) == (
        "arn:<AWS::Partition>:iam::<AWS::AccountId>:role/"
        "cdk-hnb659fds-image-publishing-role-<AWS::AccountId>-<AWS::Region>"
    )
    assert {"ecr:PutImage", "ecr:InitiateLayerUpload", "ecr:UploadLayerPart", "ecr:CompleteLayerUpload"} < set(
        push["Action"]
    )

    # The role doesn't exist yet when the policy is deployed, so it stands in a condition.
    job_role = by_sid["PullByJobRole"]
    assert flat(job_role["Principal"]["AWS"]) == "arn:<AWS::Partition>:iam::<AWS::AccountId>:root"
    assert {kind: flat(names["aws:PrincipalArn"]) for kind, names in job_role["Condition"].items()} == {
        "ArnEquals": "arn:<AWS::Partition>:iam::<AWS::AccountId>:role/service-role/"
        "AmazonBraketJobsExecutionRole-HybridJobs-kept-<AWS::Region>"
    }

    named = by_sid["PullByNamedPrincipals"]["Principal"]["AWS"]
    assert set(named) == {"arn:aws:iam::111122223333:root", "arn:aws:iam::111122223333:role/ImageReader"}
    assert job_role["Action"] == by_sid["PullByNamedPrincipals"]["Action"] == PULL


def test_the_policy_has_no_resource_and_no_wildcard(local: Synthesised, kept: Synthesised) -> None:
    # ECR refuses a Resource element when it is deployed; the CDK only warns.
    for stage in (local, kept):
        for statement in stage.the("Registry", "AWS::ECR::Repository")["RepositoryPolicyText"]["Statement"]:
            assert "Resource" not in statement
            assert not [action for action in many(statement["Action"]) if "*" in action]
            assert not [principal for principal in many(statement["Principal"]["AWS"]) if "*" in flat(principal)]
