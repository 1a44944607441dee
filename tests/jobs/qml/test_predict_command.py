"""`hybridjobs predict`: from a job's name to labels, through the stage's published contract."""

import io
import json
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from hybridjobs import cli
from hybridjobs.deployment import Deployment, DeploymentError
from hybridjobs.prediction import PredictionError, predict
from tests.jobs.qml.job_run import NEEDS_TORCH, SONAR, SOURCE

torch = pytest.importorskip("torch", reason=NEEDS_TORCH)

from qml_source.model import DressedCircuit, seeded_model  # noqa: E402 - needs torch

pytestmark = pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens")
BUCKET = "amazon-braket-hybrid-jobs-dev"
PARAMETERS = {"ledger-table": "ledger", "job-bucket": BUCKET, "jobs/qml-sonar": "qml-sonar-0000000002"}
STATES = {
    "qml-sonar-0000000001": ("COMPLETED", None),
    "qml-sonar-0000000002": ("COMPLETED", None),
    "qml-dp-0000000003": ("STARTED", None),
    "qml-dp-0000000004": ("FAILED", "RankFailedError: rank 1 of 2: ValueError: bad"),
    "qaoa-0000000005": ("COMPLETED", None),
    "qml-gone-0000000006": ("COMPLETED", None),
}


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as bundle:
        for header, content in members:
            header.size = len(content)
            bundle.addfile(header, io.BytesIO(content))
    return raw.getvalue()


def saved(model: DressedCircuit) -> bytes:
    file = io.BytesIO()
    torch.save(model.document(), file)
    return file.getvalue()


def put(job_name: str, content: bytes) -> None:
    boto3.client("s3").put_object(Bucket=BUCKET, Key=f"jobs/{job_name}/data/output/model.tar.gz", Body=content)


@pytest.fixture(scope="module")
def model() -> DressedCircuit:
    return seeded_model(3, features=60, nwires=4, labels=("M", "R"))


@pytest.fixture(scope="module", autouse=True)
def stage(model: DressedCircuit) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        for name, value in PARAMETERS.items():
            boto3.client("ssm").put_parameter(Name=f"/hybrid-jobs/dev/{name}", Value=value, Type="String")
        keys = [("kind", "HASH"), ("name", "RANGE")]
        table = boto3.resource("dynamodb").create_table(
            TableName="ledger",
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
        )
        for name, (state, reason) in STATES.items():
            table.put_item(Item={"kind": "launch", "name": name, "state": state, "reason": reason})
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        results = (tarfile.TarInfo("results.json"), b"{}")
        put("qml-sonar-0000000002", archive(results, (tarfile.TarInfo("./model.pt"), saved(model))))
        put("qaoa-0000000005", archive(results))
        yield


@pytest.fixture(scope="module")
def deployment(stage: None) -> Deployment:
    return Deployment.connect("dev")


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    file = tmp_path / "new.csv"
    file.write_text("".join(SONAR.read_text().splitlines(keepends=True)[95:100]))
    return file


def command(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int | str | None:
    monkeypatch.setattr(sys, "argv", ["hybridjobs", "predict", "--stage", "dev", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


def test_labels_and_outputs_are_the_models(
    model: DressedCircuit, samples: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, "--job", "qml-sonar", "--data", samples, "--output", "json") in (0, None)
    predictions = json.loads(capsys.readouterr().out)["predictions"]
    rows = [list(map(float, line.split(",")[:-1])) for line in samples.read_text().splitlines()]
    labels, outputs = model.classify(torch.tensor(rows, dtype=torch.float64))
    assert [each["label"] for each in predictions] == labels
    assert [each["output"] for each in predictions] == pytest.approx(outputs.tolist(), abs=1e-12)


def test_table_has_a_line_for_each_sample(
    samples: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    device = "local:pennylane/lightning.qubit"
    arguments = ("--job", "qml-sonar-0000000002", "--data", samples, "--device", device)
    assert command(monkeypatch, *arguments) in (0, None)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert [line.split("│")[1].strip() for line in lines] == ["1", "2", "3", "4", "5"]


def test_refusals_name_the_remedy_and_end_the_command(
    samples: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    samples.write_text("1,2,3\n")
    assert command(monkeypatch, "--job", "qml-sonar", "--data", samples) == 1
    assert "new.csv, line 1: 3 fields. The model takes 60 numbers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ("qml-sonr", "stage 'dev' has no job 'qml-sonr'. Did you mean 'qml-sonar'"),
        ("x", "hybridjobs status lists the jobs"),
        ("qml-dp-0000000003", "is STARTED and has no model yet. Wait"),
        ("qml-dp-0000000004", "ended FAILED and left no model: RankFailedError: rank 1 of 2: ValueError: bad"),
        ("qaoa-0000000005", "saved no model.pt. Name a job that trains a model"),
    ],
)
def test_job_without_a_model_is_refused(deployment: Deployment, samples: Path, job: str, message: str) -> None:
    with pytest.raises(PredictionError) as refused:
        predict(deployment, job, samples, SOURCE.parent)
    assert message in str(refused.value)


def test_results_that_are_gone_are_an_error(deployment: Deployment, samples: Path) -> None:
    with pytest.raises(DeploymentError, match=r"model\.tar\.gz: .*Check that the object is still there"):
        predict(deployment, "qml-gone-0000000006", samples, SOURCE.parent)


def link(target: str) -> tarfile.TarInfo:
    header = tarfile.TarInfo("model.pt")
    header.type, header.linkname = tarfile.SYMTYPE, target
    return header


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda: b"no archive", "can't be unpacked"),
        (lambda: archive((tarfile.TarInfo("model.pt"), bytes(5000)))[:40], "can't be unpacked"),
        (lambda: archive((link("/etc/passwd"), b"")), "saved no model.pt"),
        (lambda: archive((tarfile.TarInfo("../model.pt"), b"x")), "saved no model.pt"),
        (lambda: archive((tarfile.TarInfo("model.pt"), b"x")), "not a model of this job"),
    ],
    ids=["no-archive", "cut-short", "link", "outside", "no-model"],
)
def test_archive_that_holds_no_model_is_refused(
    deployment: Deployment, samples: Path, content: Callable[[], bytes], message: str
) -> None:
    put("qml-sonar-0000000001", content())
    with pytest.raises(PredictionError, match=message):
        predict(deployment, "qml-sonar-0000000001", samples, SOURCE.parent)


@pytest.mark.parametrize(
    ("device", "data", "message"),
    [
        ("local:pennylane/lightning.qbit", SONAR, "Did you mean local:pennylane/lightning.qubit"),
        (None, SONAR.parent, "Is a directory. Name a file"),
        (None, SONAR.with_name("none.csv"), "No such file or directory. Name a file"),
    ],
)
def test_unusable_device_or_data_is_refused(
    deployment: Deployment, device: str | None, data: Path, message: str
) -> None:
    with pytest.raises(PredictionError, match=message):
        predict(deployment, "qml-sonar", data, SOURCE.parent, device)


def test_missing_pytorch_is_named_with_its_remedy(
    deployment: Deployment, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "qml_source.predict", None)
    with pytest.raises(PredictionError, match=r"is not installed in .*requirements/torch.txt"):
        predict(deployment, "qml-sonar", samples, SOURCE.parent)
    assert sys.path[0] != str(SOURCE.parent)
