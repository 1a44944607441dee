"""Custom resources that launch once, fail fast, one after another, and only while what they need is there."""

import hashlib
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hybridjobs.model.canonical import canonical_json, spec_hash
from hybridjobs.model.errors import SpecError
from hybridjobs.model.stage import load_stage
from hybridjobs.schemas import SCHEMA_FILES
from tests.infra.synthesised import Synthesise, Synthesised, flat, many

JOB = "Custom::BraketHybridJob"
LOCAL = load_stage(Path(__file__).resolve().parents[2] / "stages", "local")
LAUNCHED = list(LOCAL.launch)


def test_every_custom_resource_fails_fast(local: Synthesised, kept: Synthesised, empty: Synthesised) -> None:
    # CloudFormation's own default is an hour, for the create and again for the rollback.
    timeouts = {
        each["Type"]: each["Properties"].get("ServiceTimeout")
        for stage in (local, kept, empty)
        for _, _, each in stage.everything()
        if each["Type"].startswith(("Custom::", "AWS::CloudFormation::CustomResource"))
    }
    assert timeouts == {JOB: "300", "Custom::HybridJobRecords": "300", "Custom::S3AutoDeleteObjects": "900"}


def test_the_launch_never_waits_for_the_job(local: Synthesised) -> None:
    assert not local.resources("Jobs", "AWS::StepFunctions::StateMachine")


def test_the_launch_document_travels_as_one_canonical_string(local: Synthesised) -> None:
    jobs = local.resources("Jobs", JOB)
    assert len(jobs) == len(LAUNCHED)
    for job in jobs.values():
        properties = job["Properties"]
        document = json.loads(properties["Spec"])
        assert properties["Spec"] == canonical_json(document)
        assert properties["SpecHash"] == spec_hash(document)
        assert set(properties["InputFiles"]) == {
            f"{channel}/{file['path']}" for channel, files in document["inputs"].items() for file in files
        }
        assert (properties["SpecVersion"], properties["Run"]) == ("1", "1")
        price = json.loads(properties["Price"])
        known = document["instance"]["type"] == "ml.m5.2xlarge"
        assert price["usd_per_minute"] == pytest.approx(0.00768) if known else price is None
        assert "ImageUri" not in properties


def test_jobs_are_launched_one_after_another_in_the_order_of_the_stage(local: Synthesised) -> None:
    # Many at once exhaust the concurrency of a small account.
    jobs = local.resources("Jobs", JOB)
    names = [json.loads(each["Properties"]["Spec"])["name"] for each in jobs.values()]
    assert names == LAUNCHED
    for first, second in pairwise(jobs):
        assert first in jobs[second]["DependsOn"]
        assert second not in jobs[first]["DependsOn"]


def test_a_job_exists_only_while_its_role_launcher_and_collector_do(local: Synthesised) -> None:
    resources: dict[str, Any] = dict(local.documents["Jobs"]["Resources"])
    needed = {
        name
        for name, each in resources.items()
        if each["Type"] in {"AWS::IAM::Policy", "AWS::Lambda::Function", "AWS::Lambda::Permission", "AWS::Events::Rule"}
    }
    for job in local.resources("Jobs", JOB).values():
        assert needed <= set(many(job["DependsOn"]))


def test_the_records_stand_between_the_jobs_and_the_collector(local: Synthesised) -> None:
    # Deleted after the jobs and before the collector, it sees to it that cancelled jobs leave their records.
    ((records, resource),) = local.resources("Jobs", "Custom::HybridJobRecords").items()
    resources: dict[str, Any] = dict(local.documents["Jobs"]["Resources"])
    collecting = {
        name
        for name, each in resources.items()
        if name.startswith("Collector") and each["Type"] in {"AWS::Events::Rule", "AWS::Lambda::Function"}
    }
    assert len(collecting) == 4
    assert collecting <= set(resource["DependsOn"])
    for job in local.resources("Jobs", JOB).values():
        assert records in job["DependsOn"]


def test_the_schemas_of_the_published_documents_are_deployed_with_their_hashes(local: Synthesised) -> None:
    properties = local.the("Jobs", "Custom::HybridJobRecords")
    assert properties["SchemaHashes"] == {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in SCHEMA_FILES
    }
    assert properties["Schemas"].keys() == {"record-1.json", "benchmark-summary-1.json"}


def test_functions_are_in_no_vpc_and_reserve_no_concurrency(local: Synthesised, empty: Synthesised) -> None:
    functions = [
        each["Properties"]
        for stage in (local, empty)
        for _, _, each in stage.everything()
        if each["Type"] == "AWS::Lambda::Function"
    ]
    assert len(functions) >= 8
    for function in functions:
        assert "ReservedConcurrentExecutions" not in function
        assert "VpcConfig" not in function


def test_every_function_of_the_stack_has_its_own_log_group_that_forgets(local: Synthesised) -> None:
    groups = local.resources("Jobs", "AWS::Logs::LogGroup")
    assert {each["Properties"]["RetentionInDays"] for each in groups.values()} == {30}
    used = [
        each["Properties"]["LoggingConfig"]["LogGroup"]["Ref"]
        for each in local.resources("Jobs", "AWS::Lambda::Function").values()
    ]
    assert sorted(used) == sorted(groups)


def test_functions_are_told_the_same_names(local: Synthesised) -> None:
    environments = [
        each["Properties"]["Environment"]["Variables"]
        for each in local.resources("Jobs", "AWS::Lambda::Function").values()
        if each["Properties"]["Runtime"].startswith("python")
    ]
    assert len(environments) == 3
    assert environments[0] == environments[1] == environments[2]
    assert {
        name: flat(value) for name, value in environments[0].items() if name not in {"JOB_ROLE_ARN", "LEDGER_TABLE"}
    } == {
        "STAGE": "local",
        "JOB_BUCKET": "amazon-braket-hybrid-jobs-local-<AWS::AccountId>-<AWS::Region>",
        "MAX_CONCURRENT_JOBS": "3",
        "MAX_SPEND_USD": str(LOCAL.max_spend_usd),
        "ALLOW_UNKNOWN_PRICE": str(LOCAL.allow_unknown_price).lower(),
        "CANCEL_ORPHANS": "false",
        "REPOSITORY_NAME": "amazon-braket-hybrid-jobs-local",
    }


def test_the_run_time_code_is_one_asset_without_leftovers(local: Synthesised) -> None:
    keys = {
        each["Properties"]["Code"]["S3Key"]
        for each in local.resources("Jobs", "AWS::Lambda::Function").values()
        if each["Properties"]["Runtime"].startswith("python")
    }
    (key,) = keys
    folder = local.folder / f"asset.{key.rpartition('/')[2].removesuffix('.zip')}"
    assert (folder / "launch_job").is_dir()
    assert not [path for path in folder.rglob("*") if path.name == "__pycache__" or path.suffix == ".pyc"]


def test_raising_the_run_changes_nothing_but_the_run(synthesise: Synthesise, local: Synthesised) -> None:
    again = synthesise(
        "again",
        """
launch = ["qaoa-18-cpu"]
run = 2
removal = "destroy"
max_spend_usd = 1.0
""",
    )
    (job,) = again.resources("Jobs", JOB).values()
    before = next(iter(local.resources("Jobs", JOB).values()))
    changed = {key for key, value in job["Properties"].items() if value != before["Properties"][key]}
    # The asset bucket's name is a token here, since this stage fits any account.
    assert changed == {"Run", "SourceArchive", "InputFiles"}
    assert job["Properties"]["Run"] == "2"


def test_a_job_on_quantum_hardware_is_refused(synthesise: Synthesise) -> None:
    with pytest.raises(SpecError, match=r"jobs\.toml: jobs\.qaoa-18-cpu\.device = .*qpu.*: this is quantum hardware"):
        synthesise(
            "hardware",
            """
launch = ["qaoa-18-cpu"]
removal = "destroy"
max_spend_usd = 1.0
allow_unknown_price = true
overrides.qaoa-18-cpu.device = "arn:aws:braket:us-east-1::device/qpu/ionq/Aria-1"
""",
        )


@pytest.mark.parametrize(("number", "accepted"), [(300, True), (500, False)])
def test_as_many_input_files_as_the_event_of_a_custom_resource_can_name(
    synthesise: Synthesise, project: Path, number: int, accepted: bool
) -> None:
    folder = project / "job_sources" / "qaoa_source" / "inputs" / f"many-{number}"
    folder.mkdir()
    for file in range(number):
        (folder / f"{file}.adjlist").write_text(f"{file}\n")
    stage = f"""
launch = ["qaoa-18-cpu"]
removal = "destroy"
max_spend_usd = 1.0
overrides.qaoa-18-cpu.inputs.input-graph = "inputs/many-{number}"
"""
    if not accepted:
        with pytest.raises(SpecError, match=r"jobs\.qaoa-18-cpu\.inputs = .*500 input files .* one archive"):
            synthesise("many", stage)
        return
    made = synthesise("many", stage)
    (job,) = made.resources("Jobs", JOB).values()
    assert len(job["Properties"]["InputFiles"]) == number
    # A role's own policies may have 10240 characters in all, however many files its jobs bring.
    for policy in made.resources("Jobs", "AWS::IAM::Policy").values():
        assert len(json.dumps(policy["Properties"]["PolicyDocument"], separators=(",", ":"))) < 10_240


def test_a_job_may_have_the_name_of_a_part_of_the_stack(synthesise: Synthesise, project: Path) -> None:
    jobs = project / "job_sources" / "qaoa_source" / "jobs.toml"
    before = jobs.read_text()
    jobs.write_text(before.replace("[jobs.qaoa-24-cpu]", "[jobs.Launcher]"))
    try:
        stage = synthesise("names", 'launch = ["Launcher"]\nremoval = "destroy"\nmax_spend_usd = 1.0\n')
    finally:
        jobs.write_text(before)
    assert len(stage.resources("Jobs", JOB)) == 1
