"""Who may do what to which resource, as IAM itself decides: the synthesised identity and resource policies together."""

from collections.abc import Mapping, Sequence

import pytest

from tests.infra.policies import ACCOUNT, REGION, Account, Request
from tests.infra.synthesised import Synthesise

OTHER_ACCOUNT = "111122223333"
STAGE = "guarded"
STAGE_FILE = f"""
launch = ["qaoa-18-cpu"]
removal = "retain"
max_spend_usd = 1.0
pull_principals = ["arn:aws:iam::{OTHER_ACCOUNT}:role/ImageReader"]
"""

BUCKET = f"arn:aws:s3:::amazon-braket-hybrid-jobs-{STAGE}-{ACCOUNT}-{REGION}"
OTHER_BUCKET = f"arn:aws:s3:::amazon-braket-hybrid-jobs-other-{ACCOUNT}-{REGION}"
ASSETS = f"arn:aws:s3:::cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"
IMAGES = f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository/amazon-braket-hybrid-jobs-{STAGE}"
OTHER_IMAGES = f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository/amazon-braket-other"
STOCK_IMAGES = f"arn:aws:ecr:{REGION}:292282985366:repository/amazon-braket-base-jobs"
JOB_LOGS = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws/braket/jobs"
JOB = f"arn:aws:braket:{REGION}:{ACCOUNT}:job/0f1e2d3c"
QPU = "arn:aws:braket:us-east-1::device/qpu/ionq/Aria-1"
SV1 = "arn:aws:braket:::device/quantum-simulator/amazon/sv1"
JOB_ROLE = f"arn:aws:iam::{ACCOUNT}:role/service-role/AmazonBraketJobsExecutionRole-HybridJobs-{STAGE}-{REGION}"
OTHER_JOB_ROLE = f"arn:aws:iam::{ACCOUNT}:role/service-role/AmazonBraketJobsExecutionRole-Other"
ADMIN = f"arn:aws:iam::{ACCOUNT}:role/Administrator"
LEDGER = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/ledgertable9343e4aa"
OTHER_TABLE = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/other"
STACK = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/HybridJobs-{STAGE}-Jobs/0"
OTHER_STACK = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/Payroll/0"

PUBLISHER = f"arn:aws:iam::{ACCOUNT}:role/cdk-hnb659fds-image-publishing-role-{ACCOUNT}-{REGION}"
NEIGHBOUR = f"arn:aws:iam::{ACCOUNT}:role/Neighbour"
READER = f"arn:aws:iam::{OTHER_ACCOUNT}:role/ImageReader"
STRANGER = f"arn:aws:iam::{OTHER_ACCOUNT}:role/Stranger"
# Principals of the stage, by the beginning of their roles' logical ids.
JOBS, LAUNCHER, COLLECTOR, SWEEP, FRAMEWORK = (
    "JobRole",
    "LauncherRole",
    "CollectorRole",
    "CollectorSweepRole",
    "LauncherFrameworkRole",
)

YES, NO, NEVER = "Allowed", "ImplicitlyDenied", "ExplicitlyDenied"
TLS = {"aws:SecureTransport": "true"}
BRAKET = {"iam:PassedToService": "braket.amazonaws.com"}
METRICS = {"cloudwatch:namespace": "/aws/braket"}
Row = tuple[str, str, str, str] | tuple[str, str, str, str, Mapping[str, str | Sequence[str]]]

JOB_ROWS: list[Row] = [
    (JOBS, "s3:GetObject", f"{BUCKET}/sources/0a1b/source.tar.gz", YES, TLS),
    (JOBS, "s3:GetObject", f"{BUCKET}/inputs/0a1b/graph.adjlist", YES, TLS),
    (JOBS, "s3:GetObject", f"{BUCKET}/jobs/qaoa-1/checkpoints/state.json", YES, TLS),
    (JOBS, "s3:PutObject", f"{BUCKET}/jobs/qaoa-1/data/output/model.tar.gz", YES, TLS),
    (JOBS, "s3:PutObject", f"{BUCKET}/jobs/qaoa-1/data/output/model.tar.gz", NEVER, {"aws:SecureTransport": "false"}),
    (JOBS, "s3:PutObject", f"{BUCKET}/records/qaoa-1.json", NO, TLS),
    (JOBS, "s3:GetObject", f"{BUCKET}/records/qaoa-1.json", NO, TLS),
    (JOBS, "s3:PutObject", f"{BUCKET}/benchmarks/qaoa-18/latest.json", NO, TLS),
    (JOBS, "s3:PutObject", f"{BUCKET}/sources/0a1b/source.tar.gz", NO, TLS),
    (JOBS, "s3:PutObject", f"{BUCKET}/inputs/0a1b/graph.adjlist", NO, TLS),
    (JOBS, "s3:DeleteObject", f"{BUCKET}/jobs/qaoa-1/data/output/model.tar.gz", NO, TLS),
    (JOBS, "s3:GetObject", f"{OTHER_BUCKET}/jobs/qaoa-1/data", NO, TLS),
    (JOBS, "s3:PutObject", f"{OTHER_BUCKET}/jobs/qaoa-1/data", NO, TLS),
    (JOBS, "s3:GetObject", f"{ASSETS}/0a1b.zip", NO, TLS),
    (JOBS, "s3:ListBucket", BUCKET, YES, TLS | {"s3:prefix": "inputs/0a1b/"}),
    (JOBS, "s3:ListBucket", BUCKET, NO, TLS | {"s3:prefix": "records/"}),
    (JOBS, "s3:ListBucket", BUCKET, NO, TLS),
    (JOBS, "s3:ListBucket", OTHER_BUCKET, NO, TLS | {"s3:prefix": "inputs/"}),
    (JOBS, "s3:CreateBucket", "arn:aws:s3:::amazon-braket-new", NO),
    (JOBS, "s3:PutBucketPolicy", BUCKET, NO, TLS),
    (JOBS, "ecr:GetAuthorizationToken", "*", YES),
    (JOBS, "ecr:BatchGetImage", IMAGES, YES),
    (JOBS, "ecr:GetDownloadUrlForLayer", IMAGES, YES),
    (JOBS, "ecr:BatchCheckLayerAvailability", STOCK_IMAGES, YES),
    (JOBS, "ecr:BatchGetImage", OTHER_IMAGES, NO),
    (JOBS, "ecr:PutImage", IMAGES, NO),
    (JOBS, "iam:PassRole", JOB_ROLE, NO, BRAKET),
    (JOBS, "iam:PassRole", ADMIN, NO, BRAKET),
    (JOBS, "iam:ListRoles", "*", NO),
    (JOBS, "braket:CreateJob", SV1, NO),
    (JOBS, "braket:CancelJob", JOB, NO),
    (JOBS, "braket:CreateQuantumTask", SV1, NO),
    (JOBS, "braket:CreateQuantumTask", QPU, NEVER),
    (JOBS, "braket:CreateJob", QPU, NEVER),
    (JOBS, "logs:PutLogEvents", f"{JOB_LOGS}:log-stream:qaoa-1/0f1e/algo-1", YES),
    (JOBS, "logs:CreateLogGroup", JOB_LOGS, YES),
    (JOBS, "logs:PutLogEvents", f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws/lambda/pay:log-stream:1", NO),
    (JOBS, "logs:GetLogEvents", f"{JOB_LOGS}:log-stream:qaoa-1/0f1e/algo-1", NO),
    (JOBS, "logs:StartQuery", JOB_LOGS, NO),
    (JOBS, "cloudwatch:PutMetricData", "*", YES, METRICS),
    (JOBS, "cloudwatch:PutMetricData", "*", NO, {"cloudwatch:namespace": "AWS/Billing"}),
    (JOBS, "dynamodb:PutItem", LEDGER, NO),
    (JOBS, "secretsmanager:GetSecretValue", f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:pay-a1b2c3", NO),
    (JOBS, "sts:AssumeRole", ADMIN, NO),
]
LAUNCHER_ROWS: list[Row] = [
    (LAUNCHER, "iam:PassRole", JOB_ROLE, YES, BRAKET),
    (LAUNCHER, "iam:PassRole", JOB_ROLE, NO, {"iam:PassedToService": "sagemaker.amazonaws.com"}),
    (LAUNCHER, "iam:PassRole", JOB_ROLE, NO, {"iam:PassedToService": "lambda.amazonaws.com"}),
    (LAUNCHER, "iam:PassRole", OTHER_JOB_ROLE, NO, BRAKET),
    (LAUNCHER, "iam:PassRole", ADMIN, NO, BRAKET),
    (LAUNCHER, "braket:CreateJob", SV1, YES),
    (LAUNCHER, "braket:CreateJob", QPU, NEVER),
    (LAUNCHER, "braket:CreateQuantumTask", QPU, NEVER),
    (LAUNCHER, "braket:CreateQuantumTask", SV1, NO),
    (LAUNCHER, "braket:CancelJob", JOB, YES),
    (LAUNCHER, "braket:GetJob", f"arn:aws:braket:{REGION}:{OTHER_ACCOUNT}:job/0f1e2d3c", NO),
    (LAUNCHER, "dynamodb:PutItem", LEDGER, YES),
    (LAUNCHER, "dynamodb:Query", f"{LEDGER}/index/open-launches", YES),
    (LAUNCHER, "dynamodb:DeleteItem", LEDGER, NO),
    (LAUNCHER, "dynamodb:Scan", LEDGER, NO),
    (LAUNCHER, "dynamodb:GetItem", OTHER_TABLE, NO),
    (LAUNCHER, "s3:PutObject", f"{BUCKET}/sources/0a1b/source.tar.gz", YES, TLS),
    (LAUNCHER, "s3:PutObject", f"{BUCKET}/records/qaoa-1.json", NO, TLS),
    (LAUNCHER, "s3:PutObject", f"{BUCKET}/jobs/qaoa-1/data", NO, TLS),
    (LAUNCHER, "s3:GetObject", f"{ASSETS}/hybrid-jobs/{STAGE}/0a1b.gz", YES, TLS),
    (LAUNCHER, "s3:GetObject", f"{ASSETS}/hybrid-jobs/other/0a1b.gz", NO, TLS),
    (LAUNCHER, "s3:GetObject", f"{ASSETS}/0a1b.zip", NO, TLS),
    (LAUNCHER, "s3:PutObject", f"{ASSETS}/hybrid-jobs/{STAGE}/0a1b.gz", NO, TLS),
    (LAUNCHER, "s3:DeleteObject", f"{BUCKET}/sources/0a1b/source.tar.gz", NO, TLS),
    (LAUNCHER, "ecr:DescribeImages", IMAGES, YES),
    (LAUNCHER, "ecr:DescribeImages", OTHER_IMAGES, NO),
    (LAUNCHER, "ecr:BatchGetImage", IMAGES, YES),
    (LAUNCHER, "ecr:BatchGetImage", OTHER_IMAGES, NO),
    (LAUNCHER, "ecr:BatchGetImage", STOCK_IMAGES, NO),
    (LAUNCHER, "ecr:GetDownloadUrlForLayer", IMAGES, YES),
    (LAUNCHER, "ecr:GetDownloadUrlForLayer", OTHER_IMAGES, NO),
    (LAUNCHER, "ecr:PutImage", IMAGES, NO),
    (LAUNCHER, "ecr:BatchDeleteImage", IMAGES, NO),
    (LAUNCHER, "s3:PutObject", f"{BUCKET}/schemas/record-1.json", YES, TLS),
    (LAUNCHER, "cloudformation:DescribeStacks", STACK, YES),
    (LAUNCHER, "cloudformation:DescribeStacks", OTHER_STACK, NO),
    (LAUNCHER, "cloudformation:DescribeStackResource", STACK, NO),
    (FRAMEWORK, "iam:PassRole", JOB_ROLE, NO, BRAKET),
    (FRAMEWORK, "braket:CreateJob", SV1, NO),
    (FRAMEWORK, "lambda:InvokeFunction", f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:Payroll", NO),
]
COLLECTOR_ROWS: list[Row] = [
    (COLLECTOR, "s3:GetObject", f"{BUCKET}/jobs/qaoa-1/data/output/model.tar.gz", YES, TLS),
    (COLLECTOR, "s3:GetObject", f"{BUCKET}/jobs/qaoa-1/checkpoints/state.json", NO, TLS),
    (COLLECTOR, "s3:PutObject", f"{BUCKET}/records/qaoa-1.json", YES, TLS),
    (COLLECTOR, "s3:PutObject", f"{BUCKET}/benchmarks/qaoa-18/latest.json", YES, TLS),
    (COLLECTOR, "s3:PutObject", f"{BUCKET}/jobs/qaoa-1/data/output/model.tar.gz", NO, TLS),
    (COLLECTOR, "s3:GetObject", f"{OTHER_BUCKET}/jobs/qaoa-1/data/output/model.tar.gz", NO, TLS),
    (COLLECTOR, "logs:GetLogEvents", f"{JOB_LOGS}:log-stream:qaoa-1/0f1e/algo-1", YES),
    (COLLECTOR, "logs:GetLogEvents", f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws/lambda/pay:log-stream:1", NO),
    (COLLECTOR, "iam:PassRole", ADMIN, NO, BRAKET),
    (COLLECTOR, "iam:PassRole", JOB_ROLE, NO, {"iam:PassedToService": "sagemaker.amazonaws.com"}),
    (COLLECTOR, "braket:CreateJob", QPU, NEVER),
    (COLLECTOR, "cloudformation:DescribeStackResource", STACK, NO),
    (COLLECTOR, "s3:PutObject", f"{BUCKET}/schemas/record-1.json", NO, TLS),
    (SWEEP, "cloudformation:DescribeStackResource", STACK, YES),
    (SWEEP, "cloudformation:DescribeStacks", STACK, YES),
    (SWEEP, "cloudformation:DescribeStacks", OTHER_STACK, NO),
    (SWEEP, "cloudformation:DescribeStackResource", OTHER_STACK, NO),
    (SWEEP, "cloudformation:DeleteStack", STACK, NO),
    (SWEEP, "braket:CreateJob", QPU, NEVER),
    (SWEEP, "iam:PassRole", OTHER_JOB_ROLE, NO, BRAKET),
]
# The bootstrap gives its publishing role rights on its own repository alone; these strangers may do anything that
# their own account can allow.
IMAGE_ROWS: list[Row] = [
    (PUBLISHER, "ecr:PutImage", IMAGES, YES),
    (PUBLISHER, "ecr:InitiateLayerUpload", IMAGES, YES),
    (PUBLISHER, "ecr:UploadLayerPart", IMAGES, YES),
    (PUBLISHER, "ecr:CompleteLayerUpload", IMAGES, YES),
    (PUBLISHER, "ecr:DescribeImages", IMAGES, YES),
    (PUBLISHER, "ecr:BatchDeleteImage", IMAGES, NO),
    (PUBLISHER, "ecr:SetRepositoryPolicy", IMAGES, NO),
    (PUBLISHER, "ecr:PutImage", OTHER_IMAGES, NO),
    (READER, "ecr:BatchGetImage", IMAGES, YES),
    (READER, "ecr:GetDownloadUrlForLayer", IMAGES, YES),
    (READER, "ecr:PutImage", IMAGES, NO),
    (STRANGER, "ecr:BatchGetImage", IMAGES, NO),
    (STRANGER, "ecr:GetDownloadUrlForLayer", IMAGES, NO),
    (STRANGER, "ecr:PutImage", IMAGES, NO),
    (STRANGER, "s3:GetObject", f"{BUCKET}/records/qaoa-1.json", NO, TLS),
    (STRANGER, "s3:PutObject", f"{BUCKET}/sources/0a1b/source.tar.gz", NO, TLS),
    (NEIGHBOUR, "ecr:BatchGetImage", IMAGES, NO),
    (NEIGHBOUR, "s3:GetObject", f"{BUCKET}/records/qaoa-1.json", NO, TLS),
]
TRUST_ROWS: list[Row] = [
    ("braket.amazonaws.com", "sts:AssumeRole", JOBS, YES, {"aws:SourceAccount": ACCOUNT}),
    ("braket.amazonaws.com", "sts:AssumeRole", JOBS, NO, {"aws:SourceAccount": OTHER_ACCOUNT}),
    ("braket.amazonaws.com", "sts:AssumeRole", JOBS, NO),
    ("sagemaker.amazonaws.com", "sts:AssumeRole", JOBS, NO, {"aws:SourceAccount": ACCOUNT}),
    ("lambda.amazonaws.com", "sts:AssumeRole", JOBS, NO, {"aws:SourceAccount": ACCOUNT}),
    ("lambda.amazonaws.com", "sts:AssumeRole", LAUNCHER, YES),
    ("lambda.amazonaws.com", "sts:AssumeRole", COLLECTOR, YES),
    ("braket.amazonaws.com", "sts:AssumeRole", LAUNCHER, NO, {"aws:SourceAccount": ACCOUNT}),
    (STRANGER, "sts:AssumeRole", JOBS, NO),
    (STRANGER, "sts:AssumeRole", LAUNCHER, NO),
]
ROWS = [*JOB_ROWS, *LAUNCHER_ROWS, *COLLECTOR_ROWS, *IMAGE_ROWS, *TRUST_ROWS]


@pytest.fixture(scope="module")
def account(synthesise: Synthesise) -> Account:
    account = Account(synthesise(STAGE, STAGE_FILE))
    container_assets = f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository/cdk-hnb659fds-container-assets-{ACCOUNT}-{REGION}"
    account.grant(PUBLISHER, _policy("ecr:*", container_assets))
    account.grant(READER, _policy("ecr:*", "*"))
    account.grant(STRANGER, _policy("*", "*"))
    return account


@pytest.fixture(scope="module")
def decisions(account: Account) -> list[str]:
    return account.decide([_request(account, row) for row in ROWS])


def _policy(action: str, resource: str) -> dict[str, object]:
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": action, "Resource": resource}]}


def _request(account: Account, row: Row) -> Request:
    principal, action, resource, _, *context = row
    known = {JOBS, LAUNCHER, COLLECTOR, SWEEP, FRAMEWORK}
    return Request(
        principal=account.role(principal) if principal in known else principal,
        action=action,
        resource=account.role(resource) if resource in known else resource,
        context=context[0] if context else {},
    )


@pytest.mark.parametrize(
    "number", [pytest.param(n, id=f"{r[0].split('/')[-1]} {r[1]} {n}") for n, r in enumerate(ROWS)]
)
def test_the_table_holds(decisions: list[str], number: int) -> None:
    principal, action, resource, expected, *context = ROWS[number]
    assert decisions[number] == expected, f"{principal} {action} on {resource} with {context}"


def test_the_table_is_about_the_roles_and_names_that_are_deployed(account: Account) -> None:
    # A row about a resource that doesn't exist would be denied for the wrong reason.
    assert account.role(JOBS) == JOB_ROLE
    allowed = {row[2] for row in ROWS if row[3] == YES}
    assert {IMAGES, LEDGER, STACK, JOB_LOGS, JOB_ROLE} <= allowed
    assert len(ROWS) >= 60
    assert len({row[3] for row in ROWS}) == 3


def test_the_stage_s_key_is_used_through_the_services_that_hold_its_data_and_no_other(synthesise: Synthesise) -> None:
    key, other = (f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{name}" for name in ("stage-key", "other-key"))
    account = Account(
        synthesise("keyed", f'launch = []\nremoval = "destroy"\nmax_spend_usd = 0.0\nencryption_key = "{key}"\n')
    )

    for each in (key, other):
        # KMS's own default: the account's IAM policies decide.
        everybody = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "kms:*"}
        account.attach(each, {"Version": "2012-10-17", "Statement": [{**everybody, "Resource": "*"}]})

    def through(service: str) -> dict[str, str]:
        return {"kms:ViaService": f"{service}.{REGION}.amazonaws.com"}

    rows: list[tuple[str, str, str, Mapping[str, str], str]] = [
        (JOBS, "kms:Decrypt", key, through("s3"), YES),
        (JOBS, "kms:GenerateDataKey", key, through("s3"), YES),
        (JOBS, "kms:Decrypt", key, through("dynamodb"), NO),
        (JOBS, "kms:Decrypt", key, {}, NO),
        (JOBS, "kms:Decrypt", other, through("s3"), NO),
        (JOBS, "kms:ScheduleKeyDeletion", key, {}, NO),
        (LAUNCHER, "kms:Decrypt", key, through("dynamodb"), YES),
        (COLLECTOR, "kms:GenerateDataKey", key, through("s3"), YES),
        (SWEEP, "kms:Decrypt", key, through("secretsmanager"), NO),
        (FRAMEWORK, "kms:Decrypt", key, through("s3"), NO),
    ]
    requests = [Request(account.role(role), action, on, context) for role, action, on, context, _ in rows]
    assert account.decide(requests) == [expected for *_, expected in rows]
