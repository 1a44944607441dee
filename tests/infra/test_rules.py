"""Each of the project's own rules with a stack that keeps it and one that breaks it, through a real synthesis."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import Acknowledgment, App, CfnOutput, CfnResource, Fn, Stack, Validations

from stacks.rules.plugin import RULES, ProjectRules

Build = Callable[[Stack], object]

GOOD_JOB: dict[str, Any] = {
    "image": "base",
    "device": "local:pennylane/lightning.qubit",
    "distribution": "none",
    "instance": {"type": "ml.m5.2xlarge", "count": 1},
    "max_runtime_seconds": 600,
}
BRAKET_TRUST = {
    "Statement": [
        {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": ["braket.amazonaws.com"]}},
    ]
}
IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/amazon-braket-mine"


def resource(kind: str, **properties: object) -> Build:
    return lambda stack: CfnResource(stack, "It", type=kind, properties=properties)


def bucket(**properties: object) -> Build:
    return resource("AWS::S3::Bucket", **properties)


def repository(**properties: object) -> Build:
    return resource("AWS::ECR::Repository", **properties)


def job(uri: str | None = None, **changes: object) -> Build:
    image = {} if uri is None else {"ImageUri": uri}
    document = {key: value for key, value in (GOOD_JOB | changes).items() if value is not None}
    return resource("Custom::BraketHybridJob", ServiceTimeout="300", Spec=json.dumps(document), **image)


def job_role(path: str, name: str | None) -> Build:
    named = {} if name is None else {"RoleName": name}
    return resource("AWS::IAM::Role", Path=path, AssumeRolePolicyDocument=BRAKET_TRUST, **named)


def function(**variables: str) -> Build:
    return resource("AWS::Lambda::Function", Environment={"Variables": variables})


def policy(**more: object) -> dict[str, object]:
    return {"Statement": [{"Sid": "Pull", "Effect": "Allow", "Action": ["ecr:BatchGetImage"], **more}]}


def on(kind: str, count: int = 1) -> dict[str, object]:
    return {"type": kind, "count": count}


GPU = "local:pennylane/lightning.gpu"
# Rule -> (stacks that keep it, stacks that break it and a part of what the finding says).
CASES: dict[str, tuple[list[Build], list[tuple[Build, str]]]] = {
    "bucket-name": (
        [
            bucket(BucketName="amazon-braket-mine"),
            bucket(),
            bucket(BucketName="results", AbacStatus="Enabled", Tags=[{"Key": "AmazonBraket", "Value": "true"}]),
            function(JOB_BUCKET="amazon-braket-mine"),
        ],
        [
            (bucket(BucketName="results", Tags=[{"Key": "AmazonBraket", "Value": "true"}]), "results"),
            (bucket(BucketName="quantum-results"), "quantum-results"),
            (bucket(BucketName=Fn.join("-", ["results", Fn.ref("AWS::Region")])), "results-<AWS::Region>"),
            (function(JOB_BUCKET="quantum-results"), "quantum-results"),
        ],
    ),
    "cross-stack-export": (
        [lambda stack: CfnOutput(stack, "It", value="x")],
        [
            (lambda stack: CfnOutput(stack, "It", value="x", export_name="shared"), "shared"),
            (bucket(Tags=[{"Key": "of", "Value": Fn.import_value("shared")}]), "Fn::ImportValue shared"),
        ],
    ),
    "custom-resource-timeout": (
        [resource("Custom::Mine", ServiceTimeout="300"), resource("Custom::Mine", ServiceTimeout=900)],
        [
            (resource("Custom::Mine"), "an hour"),
            (resource("AWS::CloudFormation::CustomResource", ServiceTimeout="3600"), "3600"),
            (resource("Custom::Mine", ServiceTimeout=Fn.ref("AWS::StackName")), "Ref"),
        ],
    ),
    "data-parallel": (
        [
            job(distribution="data_parallel"),
            job(distribution="data_parallel", instance=on("ml.m5.2xlarge", 2)),
            job(distribution="data_parallel", device=GPU, instance=on("ml.g6.12xlarge")),
        ],
        [
            (
                job(distribution="data_parallel", device=GPU, instance=on("ml.g6.xlarge")),
                "data_parallel on one ml.g6.xlarge",
            )
        ],
    ),
    "gpu-device": (
        [job(device=GPU, instance=on("ml.g6.xlarge"))],
        [(job(device=GPU), "local:pennylane/lightning.gpu on ml.m5.2xlarge")],
    ),
    "idle-gpu": (
        [job()],
        [(job(instance=on("ml.g6.xlarge")), "local:pennylane/lightning.qubit on ml.g6.xlarge")],
    ),
    "image-pinned": (
        [job(), job(f"{IMAGE}:0123abcd"), job(f"{IMAGE}@sha256:{'0' * 64}"), job(image=f"{IMAGE}:2026-12-01")],
        [
            (job(f"{IMAGE}:latest"), "amazon-braket-mine:latest"),
            (job(IMAGE), "amazon-braket-mine"),
            (job(image=f"{IMAGE}:latest"), "the tag latest moves"),
        ],
    ),
    "job-role": (
        [
            job_role("/service-role/", "AmazonBraketJobsExecutionRole-Mine"),
            resource("AWS::IAM::Role", AssumeRolePolicyDocument={"Statement": [{"Principal": {"AWS": "arn:x"}}]}),
        ],
        [
            (job_role("/", "AmazonBraketJobsExecutionRole-Mine"), "Properties/Path: /"),
            (job_role("/service-role/", "JobRole"), "JobRole"),
            (job_role("/service-role/", None), "named by CloudFormation"),
        ],
    ),
    "max-runtime": (
        [job(), job(max_runtime_seconds=432_000)],
        [
            (job(max_runtime_seconds=None), "None"),
            (job(max_runtime_seconds=432_001), "432001"),
            (resource("Custom::BraketHybridJob", ServiceTimeout="300", Spec="{"), "None"),
        ],
    ),
    "repository-name": (
        [repository(RepositoryName="amazon-braket-mine")],
        [(repository(RepositoryName="braket-julia"), "braket-julia"), (repository(), "named by CloudFormation")],
    ),
    "repository-policy": (
        [repository(RepositoryName="amazon-braket-mine", RepositoryPolicyText=policy())],
        [
            (
                repository(RepositoryName="amazon-braket-mine", RepositoryPolicyText=policy(Resource="*")),
                "statement Pull has Resource",
            ),
        ],
    ),
    "retired-instance": (
        [job()],
        [
            (job(instance=on("ml.p3.2xlarge")), 'Use "ml.g6.xlarge"'),
            (job(instance=on("ml.m5.2xlagre")), 'Did you mean "ml.m5.2xlarge"?'),
        ],
    ),
    "secret-string": (
        [
            function(DB_PASSWORD="{{resolve:secretsmanager:database}}", MAX_TOKENS="4096-per-job"),
            function(API_TOKEN="arn:aws:secretsmanager:us-east-1:111122223333:secret:token"),
            resource("Custom::Mine", ServiceTimeout="300", ServiceToken="arn-of-a-function"),
        ],
        [
            (function(NOTE=f"AKIA{'A' * 16}"), "(hidden)"),
            (function(DB_PASSWORD="correct-horse"), "(hidden)"),
            (job(hyperparameters={"note": "-----BEGIN RSA PRIVATE KEY-----"}), "(hidden)"),
            (lambda stack: CfnOutput(stack, "It", value=f"ASIA{'B' * 16}"), "(hidden)"),
        ],
    ),
}


def findings(build: Build, folder: Path) -> list[tuple[str, str]]:
    """Rule and description of every violation that stops the synthesis of a stack."""
    app = App(outdir=str(folder), analytics_reporting=False, builtin_cloud_formation_validation=False)
    build(Stack(app, "Case"))
    Validations.of(app).add_plugins(ProjectRules())
    report = folder / "validation-report.json"
    try:
        app.synth()
    except RuntimeError:
        violations = [
            each for plugin in json.loads(report.read_text())["pluginReports"] for each in plugin["violations"]
        ]
        assert violations
        return [(each["ruleName"], each["description"]) for each in violations]
    assert json.loads(report.read_text())["pluginReports"] == []
    return []


def test_every_rule_has_cases_and_a_file_of_its_own() -> None:
    assert sorted(rule.name for rule in RULES) == sorted(CASES)
    assert {rule.check.__module__ for rule in RULES} == {f"stacks.rules.{name.replace('-', '_')}" for name in CASES}


@pytest.mark.parametrize(
    "build", [pytest.param(each, id=f"{rule}-{n}") for rule, (good, _) in CASES.items() for n, each in enumerate(good)]
)
def test_a_stack_that_keeps_the_rules_passes(build: Build, tmp_path: Path) -> None:
    assert findings(build, tmp_path) == []


@pytest.mark.parametrize(
    ("rule", "build", "said"),
    [
        pytest.param(rule, build, said, id=f"{rule}-{number}")
        for rule, (_, bad) in CASES.items()
        for number, (build, said) in enumerate(bad)
    ],
)
def test_a_stack_that_breaks_a_rule_is_stopped_by_this_rule(rule: str, build: Build, said: str, tmp_path: Path) -> None:
    (found,) = findings(build, tmp_path)
    assert found[0] == rule
    assert said in found[1]


def test_the_message_says_rule_place_problem_and_remedy(tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path), analytics_reporting=False, builtin_cloud_formation_validation=False)
    CfnResource(Stack(app, "Case"), "Results", type="AWS::S3::Bucket", properties={"BucketName": "quantum-results"})
    Validations.of(app).add_plugins(ProjectRules())
    with pytest.raises(RuntimeError) as stopped:
        app.synth()
    for part in ("bucket-name", "Case/Results", "quantum-results", "amazon-braket-", "Properties/BucketName"):
        assert part in str(stopped.value)


def test_a_finding_can_be_acknowledged_on_its_construct_alone(tmp_path: Path) -> None:
    def build(stack: Stack) -> None:
        for name in ("Known", "Other"):
            made = CfnResource(stack, name, type="AWS::S3::Bucket", properties={"BucketName": "results"})
            if name == "Known":
                acknowledgment = Acknowledgment(id="hybrid-jobs::bucket-name", reason="No job reads or writes it.")
                Validations.of(made).acknowledge(acknowledgment)

    (found,) = findings(build, tmp_path)
    assert found[0] == "bucket-name"
    assert "Case/Other" in (tmp_path / "validation-report.json").read_text()
