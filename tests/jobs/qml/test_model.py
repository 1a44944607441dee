"""A trained model can be loaded by three lines, and predicts."""

import json
import re
from pathlib import Path

import pytest

from qml_source.data import DataError
from tests.jobs.qml.conftest import RunSingle
from tests.jobs.qml.job_run import LIGHTNING, NEEDS_TORCH, SONAR, SOURCE, Host

torch = pytest.importorskip("torch", reason=NEEDS_TORCH)

from qml_source.model import DressedCircuit, ModelError, load_model, seeded_model  # noqa: E402 - needs torch
from qml_source.predict import predict  # noqa: E402

DOCUMENT = SOURCE.parents[1] / "docs" / "qml.md"


def test_documented_lines_load_the_model(run_single: RunSingle, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    run_single(ndata="16")
    snippet = re.search(r"```python\n(.*?torch\.load.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert snippet is not None
    names: dict[str, object] = {}
    monkeypatch.chdir(host.results)
    exec(snippet[1], names)
    model = names["model"]
    assert isinstance(model, DressedCircuit)
    loaded = load_model(host.results / "model.pt")
    features = torch.rand(3, 60, dtype=torch.float64)
    assert torch.equal(model(features), loaded(features))


def test_saved_names_are_the_models_own(run_single: RunSingle, host: Host) -> None:
    run_single(ndata="16")
    saved = torch.load(host.results / "model.pt", weights_only=True)
    assert set(saved["state_dict"]) == set(DressedCircuit(60, 4).state_dict())
    assert saved["architecture"] == {"features": 60, "nwires": 4, "labels": ["M", "R"], "precision": "double"}


@pytest.mark.parametrize("scaling", ["none", "standard"])
def test_predictions_on_the_held_out_samples_have_the_reported_accuracy(
    run_single: RunSingle, host: Host, tmp_path: Path, scaling: str
) -> None:
    result = run_single(ndata="40", epochs="3", scaling=scaling, device=LIGHTNING)
    from qml_source.data import read_samples, split

    held_out = split(read_samples(SONAR), seed=42, ndata=40, held_out=0.2).held_out
    file = tmp_path / "new.csv"
    file.write_text("".join(",".join(map(repr, row)) + "\n" for row in held_out.features.tolist()))
    predicted = predict(host.results / "model.pt", file)
    actual = ["M" if target > 0 else "R" for target in held_out.targets]
    share = sum(each["label"] == label for each, label in zip(predicted, actual, strict=True)) / len(actual)
    assert share == pytest.approx(result["held_out_accuracy"][-1])
    json.dumps(predicted)


@pytest.mark.parametrize("precision", ["double", "single"])
def test_model_of_more_qubits_than_a_state_holds_is_evaluated_by_contraction(tmp_path: Path, precision: str) -> None:
    pytest.importorskip("numba", reason="numba is not installed in this environment, and the contraction runs on it")
    model = seeded_model(1, features=60, nwires=26, labels=("M", "R"), precision=precision)
    torch.save(model.document(), tmp_path / "model.pt")
    (tmp_path / "two.csv").write_text("".join(SONAR.read_text().splitlines(keepends=True)[:2]))
    first, second = predict(tmp_path / "model.pt", tmp_path / "two.csv")
    assert {first["label"], second["label"]} <= {"M", "R"}
    assert first["output"] != second["output"]
    assert all(abs(each["output"]) < 2 for each in (first, second))


def test_damaged_or_missing_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"none.pt: there is no such file. Give the model.pt"):
        load_model(tmp_path / "none.pt")
    file = tmp_path / "model.pt"
    file.write_bytes(b"no model")
    with pytest.raises(ModelError, match=r"model.pt: not a model of this job"):
        load_model(file)
    torch.save({"weights": torch.ones(2)}, file)
    with pytest.raises(ModelError, match="KeyError"):
        load_model(file)


def test_data_of_another_width_is_refused(run_single: RunSingle, host: Host, tmp_path: Path) -> None:
    run_single(ndata="16", epochs="1")
    file = tmp_path / "new.csv"
    file.write_text("1,2,3\n")
    with pytest.raises(DataError, match=r"3 fields. The model takes 60 numbers"):
        predict(host.results / "model.pt", file)
