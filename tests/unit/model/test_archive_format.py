import gzip
import io
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridjobs.model.archive_format import stored_gzip_file, tar_file

names = st.text(st.sampled_from("abé -_."), min_size=1, max_size=30).filter(lambda name: name.strip(". ") == name)
paths = st.lists(names, min_size=1, max_size=6).map("/".join)


@settings(deadline=None)
@given(files=st.dictionaries(paths, st.binary(max_size=1100), max_size=5))
def test_python_reads_back_what_was_written(files: dict[str, bytes]) -> None:
    archive = tar_file(files.items())

    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:", encoding="utf-8") as tar:
        members = tar.getmembers()
        contents = [stream.read() for member in members if (stream := tar.extractfile(member)) is not None]

    assert [member.name for member in members] == list(files)
    assert contents == list(files.values())
    assert {(each.mode, each.uid, each.gid, each.mtime, each.uname, each.gname) for each in members} <= {
        (0o644, 0, 0, 0, "", "")
    }


@pytest.mark.skipif(
    "GNU tar" not in subprocess.run(["tar", "--version"], capture_output=True, text=True, check=False).stdout
    if shutil.which("tar")
    else True,
    reason="GNU tar, the writer to compare with, is not installed",
)
def test_bytes_are_those_of_gnu_tar(tmp_path: Path) -> None:
    files = {"cut_source/cut.py": b"x", "cut_source/data/graph.txt": b"0 1\n" * 500}
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)

    fixed = ["--format=ustar", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "--mode=0644"]
    written = subprocess.run(["tar", *fixed, "-cf", "-", *files], cwd=tmp_path, capture_output=True, check=True).stdout

    assert tar_file(files.items()) == written


@pytest.mark.parametrize("folders", [100, 154, 155])
def test_long_paths_are_split_as_readers_expect(folders: int) -> None:
    path = "d" * folders + "/" + "f" * 100

    with tarfile.open(fileobj=io.BytesIO(tar_file([(path, b"")])), mode="r:") as tar:
        assert tar.getnames() == [path]


@pytest.mark.parametrize("path", ["f" * 101, "d" * 156 + "/" + "f" * 100, "d/" + "f" * 101, "broken\udc80"])
def test_paths_that_do_not_fit_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"split|surrogates"):
        tar_file([(path, b"")])


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 200_000])
def test_any_size_reads_back_from_gzip(size: int) -> None:
    data = bytes(number % 251 for number in range(size))

    assert gzip.decompress(stored_gzip_file(data)) == data
