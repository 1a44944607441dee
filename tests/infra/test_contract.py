"""What other teams and the data itself hang on. A failure here names who a change would break."""

import json
from pathlib import Path

from stacks import contract
from tests.infra.synthesised import STACKS, Synthesised

# CloudFormation knows a resource by this id alone: another id is another, empty resource, and the old one is deleted
# with its data, or kept and forgotten where the stage retains.
STATEFUL = {
    "JobImagesRepositoryFAFC4B77": "AWS::ECR::Repository",
    "JobDataAccessLogs921F38C8": "AWS::S3::Bucket",
    "JobDataBucket6FE43344": "AWS::S3::Bucket",
    "LedgerTable9343E4AA": "AWS::DynamoDB::Table",
}
# A job's name is made from this id: another one launches every job again, and bills it again.
LAUNCHES = {
    "HybridJobsqaoa18contractionLaunchEFB9E120": "Custom::BraketHybridJob",
    "HybridJobsqaoa18cpuLaunch938831C4": "Custom::BraketHybridJob",
    "HybridJobsqaoa18cpuautoLaunchADD3A4DD": "Custom::BraketHybridJob",
    "HybridJobsqaoa18parametershiftLaunch8D40A6FA": "Custom::BraketHybridJob",
    "HybridJobsqaoa18gpuLaunch45A58467": "Custom::BraketHybridJob",
    "HybridJobsqaoa24gpuLaunchF2F46F63": "Custom::BraketHybridJob",
    "HybridJobsqaoa200contractionLaunch68564ADF": "Custom::BraketHybridJob",
    "HybridJobsqaoa24contractionLaunch13FF2A7D": "Custom::BraketHybridJob",
    "HybridJobsqaoa24cpuautoLaunchC5740005": "Custom::BraketHybridJob",
}
# Read by other teams' deployments and scripts.
OUTPUTS = {
    "Registry": {"RepositoryArn", "RepositoryUri"},
    "Storage": {"JobBucketName", "LedgerTableName", "RecordsPrefix"},
    "Jobs": {
        "ContractVersion",
        "JobRoleArn",
        "JobQaoa18CpuName",
        "JobQaoa18ContractionName",
        "JobQaoa18CpuAutoName",
        "JobQaoa18ParameterShiftName",
        "JobQaoa18GpuName",
        "JobQaoa24GpuName",
        "JobQaoa200ContractionName",
        "JobQaoa24ContractionName",
        "JobQaoa24CpuAutoName",
    },
}
PARAMETERS = {
    "contract-version",
    "job-bucket",
    "job-role-arn",
    "jobs/qaoa-18-cpu",
    "jobs/qaoa-18-contraction",
    "jobs/qaoa-18-cpu-auto",
    "jobs/qaoa-18-parameter-shift",
    "jobs/qaoa-18-gpu",
    "jobs/qaoa-24-gpu",
    "jobs/qaoa-200-contraction",
    "jobs/qaoa-24-contraction",
    "jobs/qaoa-24-cpu-auto",
    "ledger-table",
    "records-prefix",
    "repository-arn",
    "repository-uri",
}


def test_what_holds_data_keeps_its_logical_id(local: Synthesised) -> None:
    kinds = set(STATEFUL.values())
    found = {name: each["Type"] for _, name, each in local.everything() if each["Type"] in kinds}
    assert found == STATEFUL, "data would be left behind: keep the ids, or move the resources with cdk refactor"


def test_jobs_keep_their_logical_ids(local: Synthesised) -> None:
    found = {name: each["Type"] for _, name, each in local.everything() if each["Type"] == "Custom::BraketHybridJob"}
    assert found == LAUNCHES, "every job would be launched and billed again: keep the construct ids"


def test_outputs_keep_their_names(local: Synthesised) -> None:
    outputs = {stack: set(local.documents[stack].get("Outputs", {})) for stack in STACKS}
    assert outputs == OUTPUTS, "consumers read these outputs: add new ones, or raise the contract version"


def test_parameters_keep_their_names(local: Synthesised) -> None:
    names = {
        each["Properties"]["Name"].removeprefix("/hybrid-jobs/local/")
        for _, _, each in local.everything()
        if each["Type"] == "AWS::SSM::Parameter"
    }
    assert names == PARAMETERS, "consumers read these parameters: add new ones, or raise the contract version"


def test_every_value_is_published_as_parameter_and_output_and_described(local: Synthesised) -> None:
    for stack in STACKS:
        outputs = local.documents[stack]["Outputs"]
        parameters = local.resources(stack, "AWS::SSM::Parameter").values()
        assert {str(each["Value"]) for each in outputs.values()} == {
            str(each["Properties"]["Value"]) for each in parameters
        }
        assert all(each["Description"] for each in outputs.values())


def test_nothing_is_exported_and_nothing_imported(local: Synthesised, kept: Synthesised) -> None:
    # An export holds its stack back for as long as another one uses it.
    for stage in (local, kept):
        for stack in STACKS:
            text = (stage.folder / f"{stack}.template.json").read_text()
            for intrinsic in ("Fn::ImportValue", "Fn::GetStackOutput", '"Export"'):
                assert intrinsic not in text


def test_stacks_are_named_after_the_stage(local: Synthesised) -> None:
    manifest = (local.folder / "manifest.json").read_text()
    for stack in STACKS:
        assert f'"stackName": "HybridJobs-local-{stack}"' in manifest


def test_no_stage_name_is_in_a_logical_id(kept: Synthesised) -> None:
    assert not [name for _, name, _ in kept.everything() if "kept" in name.lower()]


def test_the_published_schema_is_the_contract() -> None:
    published = Path(__file__).resolve().parents[2] / "docs" / "contract.schema.json"
    assert json.loads(published.read_text()) == contract.json_schema(), (
        "write json_schema() of stacks/contract.py to docs/contract.schema.json; what was there must stay, or the "
        "contract version rises"
    )


def test_the_documented_table_is_the_contract(local: Synthesised) -> None:
    table = (Path(__file__).resolve().parents[2] / "docs" / "contract.md").read_text()
    for value in (*contract.VALUES, contract.job_name_value("<job>")):
        output = "Job<Job>Name" if value.parameter == "jobs/<job>" else value.output
        assert f"| `{value.parameter}` | `{output}` |" in table
