"""Synthesis needs nothing but the files, always gives the same bytes, and refuses with a message to act on."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from aws_cdk import Acknowledgment, App, CfnResource, Stack, Validations
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks
from constructs import IConstruct

from hybridjobs.model.instances import REGIONS
from hybridjobs.model.stage import LONGEST_STAGE_NAME
from stacks.constructs import permissions
from tests.infra.synthesised import STACKS, Synthesise, Synthesised, flat

PROJECT = Path(__file__).resolve().parents[2]


WITHOUT_NETWORK = ("unshare", "--user", "--map-root-user", "--net", "--")


def run_app(
    root: Path, stage: str, *, hash_seed: str = "0", prefix: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run the app as CI does, from any folder: no credentials, no configuration, no CDK CLI."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
    environment |= {
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "CDK_CONTEXT_JSON": json.dumps({"stage": stage}),
        "CDK_OUTDIR": str(root / "assembly"),
        "CDK_VALIDATION": "false",
        "PYTHONHASHSEED": hash_seed,
        "PYTHONPATH": str(PROJECT),
    }
    return subprocess.run(
        [*prefix, sys.executable, str(root / "app.py")],
        env=environment,
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_two_checkouts_give_the_same_bytes_whatever_the_hash_seed(project: Path, tmp_path: Path) -> None:
    assemblies = []
    for seed in ("1", "2"):
        checkout = tmp_path / f"checkout-{seed}"
        shutil.copytree(project, checkout)
        result = run_app(checkout, "local", hash_seed=seed)
        assert result.returncode == 0, result.stderr
        assert result.stderr == ""
        assemblies.append(digests(checkout / "assembly"))
    assert {f"{stack}.template.json" for stack in STACKS} < set(assemblies[0])
    assert assemblies[0] == assemblies[1]


@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_a_synthesis_needs_no_credentials_and_no_network(project: Path, stage: str) -> None:
    if not shutil.which("unshare") or subprocess.run([*WITHOUT_NETWORK, "true"], check=False).returncode:
        pytest.skip("this machine can't take the network from a process: no unshare, or no user namespaces")
    result = run_app(project, stage, prefix=WITHOUT_NETWORK)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_nothing_is_looked_up_and_the_templates_fit_any_account(kept: Synthesised) -> None:
    manifest = json.loads((kept.folder / "manifest.json").read_text())
    assert "missing" not in manifest
    stacks = [each for each in manifest["artifacts"].values() if each["type"] == "aws:cloudformation:stack"]
    assert {each["environment"] for each in stacks} == {"aws://unknown-account/unknown-region"}


def test_templates_say_nothing_of_the_machine(kept: Synthesised) -> None:
    for stack in STACKS:
        text = (kept.folder / f"{stack}.template.json").read_text()
        assert str(PROJECT) not in text
        assert "AWS::CDK::Metadata" not in text


def test_a_retired_instance_fails_with_file_key_value_and_replacement_and_no_traceback(project: Path) -> None:
    (project / "stages" / "retired.toml").write_text(
        """
launch = ["qaoa-18-cpu"]
removal = "destroy"
max_spend_usd = 1.0
overrides.qaoa-18-cpu.instance.type = "ml.p3.2xlarge"
"""
    )
    result = run_app(project, "retired")
    assert result.returncode == 1
    assert result.stdout == ""
    assert "stages/retired.toml: overrides.qaoa-18-cpu.instance.type = " in result.stderr
    assert "ml.p3.2xlarge" in result.stderr
    assert "ml.g6.xlarge" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_unknown_stage_is_refused_and_the_nearest_named(project: Path) -> None:
    result = run_app(project, "lcoal")
    assert result.returncode == 1
    assert "lcoal" in result.stderr
    assert "local" in result.stderr.replace("lcoal", "")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("removal", ["destroy", "retain"])
def test_every_braket_region_gets_names_that_aws_accepts(synthesise: Synthesise, region: str, removal: str) -> None:
    stage = "s" * LONGEST_STAGE_NAME
    made = synthesise(
        stage,
        f"""
launch = ["qaoa-18-cpu"]
removal = "{removal}"
account = "111122223333"
region = "{region}"
max_spend_usd = 1.0
""",
    )

    def name(stack: str, kind: str, key: str) -> str:
        (found,) = [
            each["Properties"][key] for each in made.resources(stack, kind).values() if key in each["Properties"]
        ]
        return flat(found).replace("<AWS::AccountId>", "111122223333").replace("<AWS::Region>", region)

    assert len(name("Storage", "AWS::S3::Bucket", "BucketName")) <= 63
    assert len(name("Jobs", "AWS::IAM::Role", "RoleName")) <= 64
    manifest = json.loads((made.folder / "manifest.json").read_text())["artifacts"]
    assert {manifest[stack]["environment"] for stack in STACKS} == {f"aws://111122223333/{region}"}
    protected = {stack: manifest[stack]["properties"].get("terminationProtection", False) for stack in STACKS}
    assert protected == {"Registry": removal == "retain", "Storage": removal == "retain", "Jobs": False}


def test_a_finding_stops_the_synthesis(tmp_path: Path) -> None:
    # Guards the gate itself: the plugin has to be able to fail, or a clean report means nothing.
    app = App(outdir=str(tmp_path), builtin_cloud_formation_validation=False)
    s3.Bucket(Stack(app, "Careless"), "Bucket")
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    with pytest.raises(RuntimeError, match="server access logs disabled"):
        app.synth()


def test_templates_are_checked_against_cloudformation_s_own_schemas(tmp_path: Path) -> None:
    # On by default; the tests leave it out for its time, and `make lint` synthesises once with it.
    context = json.loads((PROJECT / "cdk.json").read_text())["context"]
    app = App(context=context, outdir=str(tmp_path), analytics_reporting=False)
    CfnResource(Stack(app, "Careless"), "Bucket", type="AWS::S3::Bucket", properties={"BucketNam": "mine"})
    with pytest.raises(RuntimeError, match="Did you mean 'BucketName'"):
        app.synth()
    (lint,) = re.findall(r"^lint:.*?\n\n", (PROJECT / "Makefile").read_text(), re.DOTALL | re.MULTILINE)
    assert "python app.py" in lint
    assert "CDK_VALIDATION" not in lint


def test_the_report_has_no_finding_left(local: Synthesised, kept: Synthesised, empty: Synthesised) -> None:
    for stage in (local, kept, empty):
        report = json.loads((stage.folder / "validation-report.json").read_text())
        assert report["pluginReports"] == []
        assert sum(1 for _ in stage.everything()) > 30


def test_what_is_acknowledged_has_a_reason_and_is_needed(
    synthesise: Synthesise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acknowledged: dict[tuple[str, str], str] = {}

    class Recorder:
        """Takes acknowledgements down instead of passing them on, so that the findings come to light."""

        def __init__(self, scope: IConstruct) -> None:
            self._scope = scope

        def acknowledge(self, *rules: Acknowledgment) -> None:
            for rule in rules:
                acknowledged[self._scope.node.path, rule.id] = rule.reason or ""

    monkeypatch.setattr(permissions, "Validations", type("Stub", (), {"of": Recorder}))
    with pytest.raises(RuntimeError, match="AwsSolutions"):
        synthesise("local", folder=tmp_path)

    (report,) = json.loads((tmp_path / "validation-report.json").read_text())["pluginReports"]
    findings = {
        (construct["constructPath"], violation["ruleName"])
        for violation in report["violations"]
        for construct in violation["violatingConstructs"]
    }
    covered = {
        (scope, rule): [path for path, finding in findings if finding == rule and path.startswith(f"{scope}/")]
        for scope, rule in acknowledged
    }
    assert not [key for key, paths in covered.items() if not paths], "these acknowledgements cover nothing any more"
    for (scope, rule), reason in acknowledged.items():
        assert scope.count("/") >= 2, f"{rule} is acknowledged for all of {scope}"
        assert len(reason.split()) > 8, f"{rule} at {scope} is acknowledged without saying why"
