"""Any file of numbers and a two-valued label can be trained on, and what can't says where and why."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qml_source.data import DataError, read_channel, read_features, read_samples, split
from tests.jobs.qml.job_run import SONAR


def write(folder: Path, text: str | bytes) -> Path:
    file = folder / "samples.csv"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def test_sonar_file_is_the_published_one_with_its_licence_beside_it() -> None:
    assert hashlib.sha256(SONAR.read_bytes()).hexdigest().startswith("e90434cdbf00fcf9")
    assert "CC BY 4.0" in (SONAR.parent / "sonar.all-data.LICENSE.md").read_text()
    samples = read_samples(SONAR)
    assert samples.features.shape == (208, 60)
    assert samples.labels == ("M", "R")
    assert [(samples.targets == sign).sum() for sign in (1, -1)] == [111, 97]


def test_labels_may_be_any_two_texts_and_spaces_do_not_matter(tmp_path: Path) -> None:
    samples = read_samples(write(tmp_path, "\ufeff0.5, 1e-3 ,yes\n\n -2,3, no\n"))
    assert samples.labels == ("no", "yes")
    assert samples.targets.tolist() == [-1, 1]
    assert samples.features.tolist() == [[0.5, 0.001], [-2, 3]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2,A\n3,B\n", "samples.csv, line 2: 2 fields, and line 1 has 3. Give every line the same numbers"),
        ("1,2,A\n\n3,4,5,B\n", "samples.csv, line 3: 4 fields, and line 1 has 3"),
        (
            "1,x,A\n",
            "line 1, field 2: 'x' is not a number. Write a number such as 0.25. If this line names the columns",
        ),
        ("1,2,A\n1,two,B\n", "line 2, field 2: 'two' is not a number"),
        ("1,,A\n", "line 1, field 2: the number is missing"),
        ("1,nan,A\n", "line 1, field 2: 'nan' is not finite"),
        ("1,inf,A\n", "'inf' is not finite"),
        ("1,2,A\n3,4,\n", "line 2: the label is missing, the last field is empty"),
        (
            "1,2,A\n3,4,B\n5,6,C\n",
            "line 3: 'C' is a third label, beside 'A' (line 1) and 'B' (line 2). Keep two labels",
        ),
        ("1,2,A\n3,4,A\n", "every sample has the label 'A'. Give samples of two labels"),
        ("", "there are no samples"),
        ("hello\n", "line 1: 'hello' is a single field"),
        (b"1,2,\xff\n", "not UTF-8 text"),
        ('1,"2,A\n', "line 1: unexpected end of data. Separate the fields by commas"),
    ],
)
def test_unusable_data_is_refused_with_its_line(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(DataError) as error:
        read_samples(write(tmp_path, text))
    assert message in str(error.value)


def test_channel_must_hold_one_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no file. Give it one file of samples"):
        read_channel(tmp_path / "input-data")
    write(tmp_path, "1,A\n2,B\n")
    assert len(read_channel(tmp_path)) == 2
    (tmp_path / "second.csv").write_text("1,A\n")
    with pytest.raises(DataError, match=r"samples.csv, second.csv"):
        read_channel(tmp_path)


def test_samples_to_predict_need_no_label(tmp_path: Path) -> None:
    assert read_features(write(tmp_path, "1,2,A\n3,4\n"), 2).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(DataError, match=r"line 2: 1 fields. The model takes 2 numbers"):
        read_features(write(tmp_path, "1,2\n3\n"), 2)
    with pytest.raises(DataError, match="there are no samples"):
        read_features(write(tmp_path, "\n"), 2)


@given(seed=st.integers(0, 2**32 - 1), ndata=st.integers(1, 150), held_out=st.floats(0, 0.27))
def test_no_sample_is_trained_on_and_measured_on(seed: int, ndata: int, held_out: float) -> None:
    samples = read_samples(SONAR)
    parts = split(samples, seed=seed, ndata=ndata, held_out=held_out)
    assert len(parts.training) == ndata
    assert len(parts.held_out) == round(208 * held_out)
    rows = [row.tobytes() for part in (parts.training, parts.held_out) for row in part.features]
    assert len(set(rows)) == len(rows)


def test_same_seed_trains_on_the_samples_of_the_published_example() -> None:
    samples = read_samples(SONAR)
    np.random.seed(42)
    rows = np.random.permutation(208)[:64]
    assert np.array_equal(split(samples, seed=42, ndata=64, held_out=0.2).training.features, samples.features[rows])


def test_more_samples_than_are_left_are_refused() -> None:
    samples = read_samples(SONAR)
    assert len(split(samples, seed=0, ndata=None, held_out=0.2).training) == 166
    with pytest.raises(DataError, match=r"ndata = 208: of 208 samples 42 are held out .* and 166 are left"):
        split(samples, seed=0, ndata=208, held_out=0.2)
