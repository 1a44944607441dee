import hashlib
import os
from pathlib import Path

import pytest

from hybridjobs.model.errors import SpecError
from hybridjobs.model.inputs import input_files


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "cut_source"
    (folder / "inputs" / "graphs" / "small").mkdir(parents=True)
    (folder / "inputs" / "graph.adjlist").write_text("0 1\n")
    (folder / "inputs" / "graphs" / "b.adjlist").write_text("b")
    (folder / "inputs" / "graphs" / "small" / "a.adjlist").write_text("a")
    (folder / "inputs" / "graphs" / ".DS_Store").write_text("x")
    (folder / "inputs" / "empty").mkdir()
    return folder


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_file_becomes_a_channel_with_that_file(source: Path) -> None:
    (graph,) = input_files(source, {"input-graph": "inputs/graph.adjlist"})["input-graph"]

    assert (graph.path, graph.sha256) == ("graph.adjlist", sha256("0 1\n"))
    assert graph.file.read_text() == "0 1\n"


def test_a_folder_becomes_a_channel_with_its_files(source: Path) -> None:
    files = input_files(source, {"graphs": "inputs/graphs"})["graphs"]

    assert [(each.path, each.sha256) for each in files] == [
        ("b.adjlist", sha256("b")),
        ("small/a.adjlist", sha256("a")),
    ]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("inputs/graph.adjlst", "no such file or folder"),
        ("inputs/empty", "holds no files"),
        ("inputs/" + "long" * 1250, "cannot be read: File name too long"),
    ],
)
def test_channels_without_files_are_refused(source: Path, path: str, said: str) -> None:
    with pytest.raises(SpecError, match=said) as caught:
        input_files(source, {"graph": path})

    assert (caught.value.key, caught.value.value) == ("inputs.graph", path)


def test_a_name_in_another_encoding_is_refused(source: Path) -> None:
    (source / "inputs" / "graphs" / os.fsdecode(b"gr\xe4ph.adjlist")).touch()

    with pytest.raises(SpecError, match=r"the name b'gr\\xe4ph.adjlist' in it is not UTF-8\. Rename") as caught:
        input_files(source, {"graphs": "inputs/graphs"})

    assert caught.value.key == "inputs.graphs"
    str(caught.value).encode()


def test_links_that_leave_the_source_folder_are_refused(source: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (source / "inputs" / "link").symlink_to(tmp_path / "secret")
    (source / "inputs" / "graphs" / "link").symlink_to(tmp_path / "secret")

    for path in ("inputs/link", "inputs/graphs"):
        with pytest.raises(SpecError, match="leaves the"):
            input_files(source, {"graph": path})


def test_links_within_the_source_folder_are_followed(source: Path) -> None:
    (source / "inputs" / "graphs" / "link").symlink_to(source / "inputs" / "graph.adjlist")

    files = input_files(source, {"graphs": "inputs/graphs"})["graphs"]

    assert {each.path: each.sha256 for each in files}["link"] == sha256("0 1\n")
