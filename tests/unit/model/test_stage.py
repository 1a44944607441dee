import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from hybridjobs.model.catalogue import CatalogueEntry, load_catalogue
from hybridjobs.model.errors import SpecError
from hybridjobs.model.stage import StageSettings, load_stage, selected_jobs

WriteSource = Callable[..., Path]
WriteStage = Callable[..., StageSettings]

STAGES = Path(__file__).parents[3] / "stages"

JOBS = """\
[jobs.cut-18]
entry_point = "cut_source.cut"
device = "local:pennylane/lightning.qubit"
instance.type = "ml.m5.2xlarge"
limits.max_runtime_seconds = 600
hyperparameters = { p = 2, seed = 1967 }
benchmark = "cut"
baseline = true

[jobs.cut-24]
entry_point = "cut_source.cut"
device = "local:pennylane/lightning.qubit"
instance.type = "ml.m5.2xlarge"
limits.max_runtime_seconds = 3600
benchmark = "cut"
"""


@pytest.fixture
def catalogue(write_source: WriteSource) -> Mapping[str, CatalogueEntry]:
    return load_catalogue(write_source("cut_source", JOBS))


@pytest.fixture
def write_stage(tmp_path: Path) -> WriteStage:
    def write(launch: str = '["cut-18"]', more: str = "", name: str = "dev") -> StageSettings:
        (tmp_path / "stages").mkdir(exist_ok=True)
        text = f'launch = {launch}\nremoval = "destroy"\nmax_spend_usd = 5\n{more}'
        (tmp_path / "stages" / f"{name}.toml").write_text(text)
        return load_stage(tmp_path / "stages", name)

    return write


@pytest.mark.parametrize("name", ["containers", "dev", "local", "prod", "training"])
def test_the_stages_of_the_project_are_valid(name: str) -> None:
    assert load_stage(STAGES, name).name == name


def test_what_the_stages_of_the_project_promise() -> None:
    local, dev, prod = (load_stage(STAGES, name) for name in ("local", "dev", "prod"))

    assert {"qaoa-18-cpu", "qaoa-18-parameter-shift"} <= set(local.launch)
    assert dev.launch == prod.launch == ()
    assert prod.removal == "retain"
    assert (prod.account, dev.account) == (None, None)


def test_defaults(write_stage: WriteStage) -> None:
    stage = write_stage()

    assert (stage.run, stage.account, stage.region, stage.max_concurrent_jobs) == (1, None, None, 3)
    assert (stage.allow_unknown_price, stage.pull_principals, stage.retain_records_days) == (False, (), None)
    assert stage.max_spend_usd == 5.0
    assert (stage.managed_job_policy, stage.quantum_hardware, stage.service_linked_role) == (False, False, False)
    assert (stage.permissions_boundary, stage.encryption_key, stage.alarm_topic) == (None, None, False)


def test_an_unknown_stage_is_answered_with_the_closest_one() -> None:
    with pytest.raises(SpecError, match=re.escape('Did you mean "prod"?')):
        load_stage(STAGES, "prd")


@pytest.mark.parametrize(
    ("more", "key", "said"),
    [
        ("runs = 2", "runs", 'Did you mean "run"?'),
        ("run = 0", "run", "1 or more"),
        ('account = "1234"', "account", "twelve digits"),
        ("account = 111122223333", "account", "this must be a string"),
        ('region = "us-east-2"', "region", "Choose one of us-east-1, us-west-1, us-west-2, eu-west-2, eu-north-1"),
        ('pull_principals = ["*"]', "pull_principals.0", "a wildcard"),
        ('pull_principals = ["arn:aws:iam::111122223333:role/*"]', "pull_principals.0", "a wildcard"),
        ('pull_principals = ["111122223333"]', "pull_principals.0", "not the ARN"),
        ("max_concurrent_jobs = 0", "max_concurrent_jobs", "1 or more"),
        ("retain_records_days = 0", "retain_records_days", "1 to 36500 days"),
        ("retain_records_days = 36501", "retain_records_days", "1 to 36500 days"),
        ("managed_job_policy = 1", "managed_job_policy", "true or false"),
        ('quantum_hardware = "yes"', "quantum_hardware", "true or false"),
        ('permissions_boundary = "Boundary"', "permissions_boundary", "arn:aws:iam::111122223333:policy/<name>"),
        ('encryption_key = "alias/jobs"', "encryption_key", "arn:aws:kms:<region>:111122223333:key/<key id>"),
        ('alarm_topic = "operators"', "alarm_topic", "or true"),
        ("alarm_topic = 1", "alarm_topic", "or true"),
        ('name = "other"', "name", "The name of the file is the name of the stage"),
        ("overrides = 3", "overrides", "this must be a table"),
    ],
)
def test_wrong_settings_are_answered_with_key_and_remedy(
    write_stage: WriteStage, more: str, key: str, said: str
) -> None:
    with pytest.raises(SpecError, match=re.escape(said)) as caught:
        write_stage(more=more)

    assert caught.value.key == key
    assert str(caught.value.file).endswith("stages/dev.toml")


@pytest.mark.parametrize("amount", ["-1", "inf", "nan", '"5"'])
def test_a_limit_on_spending_is_a_finite_amount(tmp_path: Path, amount: str) -> None:
    (tmp_path / "dev.toml").write_text(f'launch = []\nremoval = "destroy"\nmax_spend_usd = {amount}\n')

    with pytest.raises(SpecError, match="max_spend_usd"):
        load_stage(tmp_path, "dev")


def test_what_must_be_decided_is_required(tmp_path: Path) -> None:
    (tmp_path / "dev.toml").write_text("")

    with pytest.raises(SpecError) as caught:
        load_stage(tmp_path, "dev")

    assert {problem.key for problem in caught.value.problems} == {"launch", "removal", "max_spend_usd"}


@pytest.mark.parametrize("name", ["Dev", "dev_1", "a-long-stage-name", "1st"])
def test_names_that_no_bucket_can_have_are_refused(write_stage: WriteStage, name: str) -> None:
    with pytest.raises(SpecError, match="part of bucket names"):
        write_stage(name=name)


def test_selects_the_launched_jobs_in_the_order_of_the_stage(
    write_stage: WriteStage, catalogue: Mapping[str, CatalogueEntry]
) -> None:
    selected = selected_jobs(write_stage('["cut-24", "cut-18"]'), catalogue)

    assert [entry.spec.name for entry in selected] == ["cut-24", "cut-18"]
    assert selected[1] == catalogue["cut-18"]


@pytest.mark.parametrize(
    ("key", "arn"),
    [
        ("encryption_key", "arn:aws:kms:us-west-2:111122223333:key/0f1e2d3c-0000-1111-2222-333344445555"),
        ("alarm_topic", "arn:aws:sns:us-west-2:111122223333:operators"),
    ],
)
def test_what_the_stage_uses_is_in_its_region(
    write_stage: WriteStage, catalogue: Mapping[str, CatalogueEntry], key: str, arn: str
) -> None:
    assert selected_jobs(write_stage(more=f'region = "us-west-2"\n{key} = "{arn}"'), catalogue)
    with pytest.raises(SpecError, match=f"{key} = .*us-west-2, and the stage in us-east-1"):
        selected_jobs(write_stage(more=f'region = "us-east-1"\n{key} = "{arn}"'), catalogue)


def test_overrides_of_a_job_that_is_not_launched_are_checked_too(
    write_stage: WriteStage, catalogue: Mapping[str, CatalogueEntry]
) -> None:
    stage = write_stage('["cut-24"]', more="[overrides.cut-18]\ninstance.cuont = 2\n")

    with pytest.raises(SpecError, match=re.escape('Did you mean "count"?')) as caught:
        selected_jobs(stage, catalogue)

    assert caught.value.key == "overrides.cut-18.instance.cuont"


def test_overrides_are_merged_key_by_key(write_stage: WriteStage, catalogue: Mapping[str, CatalogueEntry]) -> None:
    stage = write_stage(
        more="[overrides.cut-18]\ninstance.count = 2\nhyperparameters = { p = 3, exact = true }\ncheckpoints = false\n"
    )

    (entry,) = selected_jobs(stage, catalogue)

    assert (entry.spec.instance.type, entry.spec.instance.count) == ("ml.m5.2xlarge", 2)
    assert entry.spec.hyperparameters == {"p": "3", "seed": "1967", "exact": "true"}
    assert not entry.spec.checkpoints
    assert entry.source_folder == catalogue["cut-18"].source_folder
    assert catalogue["cut-18"].spec.hyperparameters["p"] == "2"


@pytest.mark.parametrize(
    ("override", "key", "said"),
    [
        ('instance.type = "ml.p3.2xlarge"', "instance.type", '"ml.g6.xlarge"'),
        ('instance.type = "ml.g6.xlarge"', "device", "would idle and be billed"),
        ('entry_point = "cut_source.other"', "entry_point", "no such module"),
        ("instance.counts = 2", "instance.counts", 'Did you mean "count"?'),
        ('name = "other"', "name", "The name of the table is the name of the job"),
        ('inputs.graph = "inputs/graph"', "inputs.graph", "no such file or folder"),
    ],
)
def test_an_override_that_breaks_a_job_is_reported_where_it_stands(
    write_stage: WriteStage, catalogue: Mapping[str, CatalogueEntry], override: str, key: str, said: str
) -> None:
    stage = write_stage(more=f"[overrides.cut-18]\n{override}\n")

    with pytest.raises(SpecError, match=re.escape(said)) as caught:
        selected_jobs(stage, catalogue)

    assert (caught.value.file, caught.value.key) == ("stages/dev.toml", f"overrides.cut-18.{key}")


def test_unknown_jobs_are_refused_with_the_closest_name(
    write_stage: WriteStage, catalogue: Mapping[str, CatalogueEntry]
) -> None:
    stage = write_stage('["cut-81"]', more="[overrides.cut-42]\nrun = 2\n")

    with pytest.raises(SpecError) as caught:
        selected_jobs(stage, catalogue)

    assert [(problem.key, problem.value) for problem in caught.value.problems] == [
        ("launch", "cut-81"),
        ("overrides", "cut-42"),
    ]
    assert 'Did you mean "cut-18"?' in str(caught.value)


def test_a_job_launched_twice_is_refused(write_stage: WriteStage) -> None:
    with pytest.raises(SpecError, match="launched twice"):
        write_stage('["cut-18", "cut-18"]')


def test_jobs_that_cannot_run_in_the_region_are_refused(
    write_stage: WriteStage, catalogue: Mapping[str, CatalogueEntry]
) -> None:
    stage = write_stage(
        '["cut-18", "cut-24"]',
        more="""\
region = "us-west-1"
[overrides.cut-18]
device = "local:pennylane/lightning.gpu"
image = "pytorch"
instance.type = "ml.g6.xlarge"
[overrides.cut-24]
image = "111122223333.dkr.ecr.us-east-1.amazonaws.com/amazon-braket-team:1.0"
""",
    )

    with pytest.raises(SpecError) as caught:
        selected_jobs(stage, catalogue)

    assert [problem.key for problem in caught.value.problems] == ["region", "region"]
    assert "cut-18 runs on ml.g6.xlarge" in str(caught.value)
    assert "the image of cut-24 is in us-east-1" in str(caught.value)


REGISTRY = "{}.dkr.ecr.us-east-1.amazonaws.com/amazon-braket-team"
STOCK = f"{REGISTRY.format('292282985366')}:1.0-cpu-py312-ubuntu24.04"


@pytest.mark.parametrize("account", ['account = "111122223333"\n', ""])
@pytest.mark.parametrize(
    ("image", "foreign"),
    [
        (f"{REGISTRY.format('444455556666')}:1.0", True),
        (f"{REGISTRY.format('444455556666')}@sha256:{'0' * 64}", False),
        (f"{REGISTRY.format('111122223333')}:1.0", False),
        (STOCK, False),
        ("asset:julia", False),
    ],
)
def test_an_image_by_a_tag_of_another_account_is_refused_where_the_stage_names_its_account(
    write_stage: WriteStage, catalogue: Mapping[str, CatalogueEntry], account: str, image: str, foreign: bool
) -> None:
    stage = write_stage('["cut-18"]', more=f'{account}[overrides.cut-18]\nimage = "{image}"\n')

    if not account or not foreign:
        assert selected_jobs(stage, catalogue)
        return
    with pytest.raises(SpecError, match=r"a tag of account 444455556666.*`hybridjobs image push`") as caught:
        selected_jobs(stage, catalogue)
    assert (caught.value.file, caught.value.key, caught.value.value) == (
        "stages/dev.toml",
        "overrides.cut-18.image",
        image,
    )


def test_a_foreign_tag_that_no_override_brings_is_shown_where_the_job_is_declared(
    write_stage: WriteStage, catalogue: Mapping[str, CatalogueEntry]
) -> None:
    entry = catalogue["cut-18"]
    image = f"{REGISTRY.format('444455556666')}:1.0"
    declared = {**catalogue, "cut-18": replace(entry, spec=entry.spec.model_copy(update={"image": image}))}

    with pytest.raises(SpecError) as caught:
        selected_jobs(write_stage('["cut-18"]', more='account = "111122223333"\n'), declared)

    assert (caught.value.file, caught.value.key) == (str(entry.file), "jobs.cut-18.image")


def test_a_device_of_another_region_is_refused(
    write_stage: WriteStage, catalogue: Mapping[str, CatalogueEntry]
) -> None:
    more = 'region = "{}"\n[overrides.cut-18]\ndevice = "arn:aws:braket:{}::device/{}"'
    hardware, simulator = "qpu/ionq/Forte-1", "quantum-simulator/amazon/sv1"
    assert selected_jobs(write_stage('["cut-18"]', more=more.format("us-east-1", "us-east-1", hardware)), catalogue)
    assert selected_jobs(write_stage('["cut-18"]', more=more.format("us-east-1", "", simulator)), catalogue)
    for device in (hardware, simulator):
        with pytest.raises(SpecError, match="the device of cut-18 is in us-east-1") as caught:
            selected_jobs(write_stage('["cut-18"]', more=more.format("us-west-2", "us-east-1", device)), catalogue)
        assert (caught.value.key, caught.value.value) == ("region", "us-west-2")


def test_two_baselines_of_one_benchmark_are_refused(
    write_stage: WriteStage, catalogue: Mapping[str, CatalogueEntry]
) -> None:
    stage = write_stage('["cut-18", "cut-24"]', more="[overrides.cut-24]\nbaseline = true\n")

    with pytest.raises(SpecError, match=re.escape("overrides.cut-24.baseline = false")):
        selected_jobs(stage, catalogue)


def test_every_setting_is_documented() -> None:
    table = (STAGES.parent / "docs" / "stages.md").read_text()
    settings = {name for name in StageSettings.model_fields if name not in {"name", "overrides"}}
    assert not [name for name in settings if f"`{name}`" not in table]
