"""Least privilege, by statement: who may do what to which resource."""

from collections.abc import Iterator
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_iam as iam

from stacks.constructs.permissions import Permission, allow
from tests.infra.synthesised import Synthesise, Synthesised, flat, many

BUCKET = "arn:<AWS::Partition>:s3:::amazon-braket-hybrid-jobs-kept-<AWS::AccountId>-<AWS::Region>"
HERE = "<AWS::Region>:<AWS::AccountId>"
# Actions for which AWS knows no resource, or whose resource can't be named before it exists.
ANY_RESOURCE = {"braket:CreateJob", "braket:SearchJobs", "cloudwatch:PutMetricData", "ecr:GetAuthorizationToken"}


def statements(stage: Synthesised, role: str) -> list[dict[str, Any]]:
    """The statements of the role whose logical id begins with `role`."""
    (policy,) = [
        each["Properties"]["PolicyDocument"]["Statement"]
        for name, each in stage.resources("Jobs", "AWS::IAM::Policy").items()
        if name.startswith(f"{role}DefaultPolicy")
    ]
    return list(policy)


def allowed(stage: Synthesised, role: str) -> dict[str, set[str]]:
    """What the role may do: action -> resources."""
    result: dict[str, set[str]] = {}
    for statement in statements(stage, role):
        if statement["Effect"] == "Allow":
            for action in many(statement["Action"]):
                result.setdefault(action, set()).update(flat(each) for each in many(statement["Resource"]))
    return result


FUNCTION_ROLES = ("LauncherRole", "CollectorRole", "CollectorSweepRole")


def all_statements(stage: Synthesised) -> Iterator[dict[str, Any]]:
    for stack, _, each in stage.everything():
        if stack == "Jobs" and each["Type"] == "AWS::IAM::Policy":
            yield from each["Properties"]["PolicyDocument"]["Statement"]


def test_the_job_role_may_do_what_an_embedded_simulator_needs_and_no_more(kept: Synthesised) -> None:
    log_group = f"arn:<AWS::Partition>:logs:{HERE}:log-group:/aws/braket/jobs"
    images = {f"arn:<AWS::Partition>:ecr:{HERE}:repository/amazon-braket-hybrid-jobs-kept"} | {
        f"arn:<AWS::Partition>:ecr:<AWS::Region>:292282985366:repository/amazon-braket-{kind}-jobs"
        for kind in ("base", "cudaq", "pytorch", "tensorflow")
    }
    assert allowed(kept, "JobRole") == {
        "s3:GetObject": {f"{BUCKET}/sources/*", f"{BUCKET}/inputs/*", f"{BUCKET}/jobs/*"},
        "s3:PutObject": {f"{BUCKET}/jobs/*"},
        "s3:ListBucket": {BUCKET},
        "ecr:GetAuthorizationToken": {"*"},
        "ecr:BatchCheckLayerAvailability": images,
        "ecr:BatchGetImage": images,
        "ecr:GetDownloadUrlForLayer": images,
        "logs:CreateLogGroup": {log_group, f"{log_group}:*"},
        "logs:CreateLogStream": {log_group, f"{log_group}:*"},
        "logs:DescribeLogStreams": {log_group, f"{log_group}:*"},
        "logs:PutLogEvents": {log_group, f"{log_group}:*"},
        "cloudwatch:PutMetricData": {"*"},
    }
    conditions = {each["Sid"]: each["Condition"] for each in statements(kept, "JobRole") if "Condition" in each}
    assert conditions == {
        "ListOwnPrefixes": {"StringLike": {"s3:prefix": ["sources/*", "inputs/*", "jobs/*"]}},
        "SendJobMetrics": {"StringEquals": {"cloudwatch:namespace": "/aws/braket"}},
    }


def test_braket_runs_only_jobs_of_this_account_with_the_job_role(kept: Synthesised) -> None:
    (role,) = [
        each["Properties"]
        for each in kept.resources("Jobs", "AWS::IAM::Role").values()
        if "RoleName" in each["Properties"]
    ]
    assert role["Path"] == "/service-role/"
    assert flat(role["RoleName"]) == "AmazonBraketJobsExecutionRole-HybridJobs-kept-<AWS::Region>"
    assert role["AssumeRolePolicyDocument"]["Statement"] == [
        {
            "Action": "sts:AssumeRole",
            "Effect": "Allow",
            "Principal": {"Service": "braket.amazonaws.com"},
            "Condition": {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}},
        }
    ]


@pytest.mark.parametrize("role", FUNCTION_ROLES)
def test_functions_pass_the_job_role_to_braket_and_nothing_else(kept: Synthesised, role: str) -> None:
    (passing,) = [each for each in statements(kept, role) if "iam:PassRole" in many(each["Action"])]
    (job_role,) = [name for name in kept.resources("Jobs", "AWS::IAM::Role") if name.startswith("JobRole")]
    assert passing["Action"] == "iam:PassRole"
    assert passing["Resource"] == {"Fn::GetAtt": [job_role, "Arn"]}
    assert passing["Condition"] == {"StringEquals": {"iam:PassedToService": "braket.amazonaws.com"}}


def test_nobody_else_passes_a_role(kept: Synthesised) -> None:
    passing = [each for each in all_statements(kept) if "iam:PassRole" in many(each["Action"])]
    assert len(passing) == len(FUNCTION_ROLES)


@pytest.mark.parametrize("role", ["JobRole", *FUNCTION_ROLES])
def test_quantum_hardware_is_denied(kept: Synthesised, role: str) -> None:
    (deny,) = [each for each in statements(kept, role) if each["Effect"] == "Deny"]
    assert deny["Action"] == ["braket:CreateJob", "braket:CreateQuantumTask"]
    assert deny["Resource"] == "arn:aws:braket:*:*:device/qpu/*"
    assert "Condition" not in deny


def test_the_launcher_reads_the_files_of_its_stage_and_no_other_app_s(local: Synthesised) -> None:
    (reading,) = [each for each in statements(local, "LauncherRole") if each.get("Sid") == "ReadAssets"]
    assert reading["Action"] == "s3:GetObject"
    assets = "cdk-hnb659fds-assets-000000000000-us-east-1/hybrid-jobs/local/"
    assert flat(reading["Resource"]) == f"arn:aws:s3:::{assets}*"
    for job in local.resources("Jobs", "Custom::BraketHybridJob").values():
        for url in (job["Properties"]["SourceArchive"], *job["Properties"]["InputFiles"].values()):
            assert flat(url).startswith(f"s3://{assets}")
    for url in local.the("Jobs", "Custom::HybridJobRecords")["Schemas"].values():
        assert flat(url).startswith(f"s3://{assets}")


LOOKS_AT_IMAGES = {"ecr:BatchGetImage", "ecr:DescribeImages", "ecr:GetDownloadUrlForLayer"}


def ecr_of(stage: Synthesised, role: str) -> dict[str, set[str]]:
    return {action: resources for action, resources in allowed(stage, role).items() if action.startswith("ecr:")}


def test_the_launcher_alone_looks_at_images_and_at_those_of_its_stage(kept: Synthesised) -> None:
    own = f"arn:<AWS::Partition>:ecr:{HERE}:repository/amazon-braket-hybrid-jobs-kept"
    assert ecr_of(kept, "LauncherRole") == {action: {own} for action in LOOKS_AT_IMAGES}
    assert ecr_of(kept, "CollectorRole") == ecr_of(kept, "CollectorSweepRole") == {}


@pytest.mark.parametrize(
    ("account", "owner", "looks"),
    [
        ("", "111122223333", True),
        ("111122223333", "111122223333", True),
        ("111122223333", "444455556666", False),
        ("", "292282985366", False),
    ],
)
def test_the_launcher_looks_at_images_that_jobs_name_in_other_repositories_of_its_account(
    synthesise: Synthesise, account: str, owner: str, looks: bool
) -> None:
    reference = f"amazon-braket-team@sha256:{'0' * 64}"
    stage = synthesise(
        "sister",
        f"""
launch = ["qaoa-18-cpu"]
removal = "destroy"
max_spend_usd = 1.0
{f'account = "{account}"' if account else ""}
overrides.qaoa-18-cpu.image = "{owner}.dkr.ecr.us-east-1.amazonaws.com/{reference}"
""",
    )
    named = f"arn:<AWS::Partition>:ecr:us-east-1:{owner}:repository/amazon-braket-team"
    assert {named in resources for resources in ecr_of(stage, "LauncherRole").values()} == {looks}
    assert named in allowed(stage, "JobRole")["ecr:BatchGetImage"]


@pytest.mark.parametrize("role", FUNCTION_ROLES)
def test_functions_keep_to_their_ledger_and_its_index(kept: Synthesised, role: str) -> None:
    table = f"arn:<AWS::Partition>:dynamodb:{HERE}:table/"
    for action, resources in allowed(kept, role).items():
        if action.startswith("dynamodb:"):
            assert all(resource.startswith(table) for resource in resources)
            assert not any("*" in resource for resource in resources)


def test_no_statement_has_a_wildcard_action_and_few_any_resource(kept: Synthesised) -> None:
    for statement in all_statements(kept):
        actions = many(statement["Action"])
        assert not [action for action in actions if "*" in action]
        if "*" in [flat(each) for each in many(statement["Resource"])]:
            assert set(actions) <= ANY_RESOURCE


def test_no_role_has_a_managed_policy(kept: Synthesised) -> None:
    for role in kept.resources("Jobs", "AWS::IAM::Role").values():
        assert "ManagedPolicyArns" not in role["Properties"]


def test_the_framework_calls_only_the_launcher(kept: Synthesised) -> None:
    (launcher,) = [name for name in kept.resources("Jobs", "AWS::Lambda::Function") if name.startswith("LauncherF")]
    calling = allowed(kept, "LauncherFrameworkRole")
    assert calling["lambda:InvokeFunction"] == calling["lambda:GetFunction"] == {f"<{launcher}.Arn>"}


POLICY = "arn:<AWS::Partition>:iam::aws:policy/AmazonBraketJobsExecutionPolicy"


def test_amazon_s_own_policy_takes_the_place_of_ours_with_a_warning(synthesise: Synthesise) -> None:
    stage = synthesise("managed", 'launch = []\nremoval = "destroy"\nmax_spend_usd = 0.0\nmanaged_job_policy = true\n')
    (role,) = [each for name, each in stage.resources("Jobs", "AWS::IAM::Role").items() if name.startswith("JobRole")]
    assert [flat(each) for each in role["Properties"]["ManagedPolicyArns"]] == [POLICY]
    assert [each["Sid"] for each in statements(stage, "JobRole")] == ["DenyQuantumHardware"]
    assert "Leave managed_job_policy out of the stage" in (stage.folder / "validation-report.json").read_text()


def test_a_permissions_boundary_bounds_every_role(synthesise: Synthesise) -> None:
    boundary = "arn:aws:iam::111122223333:policy/Boundary"
    stage = synthesise(
        "bounded", f'launch = []\nremoval = "destroy"\nmax_spend_usd = 0.0\npermissions_boundary = "{boundary}"\n'
    )
    roles = [each for _, _, each in stage.everything() if each["Type"] == "AWS::IAM::Role"]
    assert len(roles) == 6
    assert {each["Properties"].get("PermissionsBoundary") for each in roles} == {boundary}


def test_quantum_hardware_is_allowed_where_the_stage_says_so_to_the_jobs_that_name_it(synthesise: Synthesise) -> None:
    qpu = "arn:aws:braket:us-east-1::device/qpu/ionq/Aria-1"
    stage = synthesise(
        "hardware",
        f"""
launch = ["qaoa-18-cpu"]
removal = "destroy"
max_spend_usd = 1.0
allow_unknown_price = true
quantum_hardware = true
overrides.qaoa-18-cpu.device = "{qpu}"
""",
    )
    for role in ("JobRole", *FUNCTION_ROLES):
        assert not [each for each in statements(stage, role) if each["Effect"] == "Deny"]
    assert qpu in allowed(stage, "JobRole")["braket:CreateQuantumTask"]
    assert "which max_spend_usd does not bound" in (stage.folder / "validation-report.json").read_text()


SIMULATOR = "arn:aws:braket:::device/quantum-simulator/amazon/sv1"


def test_a_managed_simulator_is_allowed_only_when_a_job_names_it(synthesise: Synthesise) -> None:
    stage = synthesise(
        "sv1",
        f"""
launch = ["qaoa-18-cpu"]
removal = "destroy"
max_spend_usd = 1.0
allow_unknown_price = true
overrides.qaoa-18-cpu.device = "{SIMULATOR}"
""",
    )
    tasks = f"arn:<AWS::Partition>:braket:{HERE}:quantum-task/*"
    may = allowed(stage, "JobRole")
    assert {action: resources for action, resources in may.items() if action.startswith("braket:")} == {
        "braket:CreateQuantumTask": {SIMULATOR, tasks},
        "braket:CancelQuantumTask": {tasks},
        "braket:GetQuantumTask": {tasks},
        "braket:GetDevice": {SIMULATOR},
    }


class TestPermission:
    @pytest.fixture
    def role(self) -> iam.Role:
        return iam.Role(Stack(App(), "Test"), "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))

    def test_a_wildcard_resource_needs_a_reason(self, role: iam.Role) -> None:
        with pytest.raises(ValueError, match=r"ReadAll: resource arn:aws:s3:::mine/\* holds a wildcard; .* a reason"):
            allow(role, Permission(sid="ReadAll", actions=["s3:GetObject"], resources=["arn:aws:s3:::mine/*"]))

    def test_a_wildcard_action_is_refused_whatever_the_reason(self, role: iam.Role) -> None:
        with pytest.raises(ValueError, match="name each action"):
            allow(role, Permission(sid="All", actions=["s3:Get*"], resources=["*"], wildcard_reason="convenience"))
