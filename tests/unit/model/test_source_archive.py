import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridjobs.model import source_archive
from hybridjobs.model.errors import SpecError
from hybridjobs.model.source_archive import build_source_archive

FILES = {
    "__init__.py": b"",
    "cut.py": b"def main():\n    pass\n",
    "requirements.txt": b"networkx\n",
    "README.md": b"# Cut\n",
    "data/graph.txt": b"0 1\n",
    "data/tests/kept.txt": b"only the top folder's tests are left out\n",
}


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    for path, content in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return folder


def contents(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        found = {}
        for member in tar.getmembers():
            stream = tar.extractfile(member)
            assert stream is not None
            found[member.name] = stream.read()
        return found


def test_holds_the_folder_under_its_own_name(tmp_path: Path) -> None:
    archive = build_source_archive(write(tmp_path / "cut_source", FILES))

    assert contents(archive.bytes) == {f"cut_source/{path}": content for path, content in FILES.items()}
    assert archive.files == tuple(sorted(f"cut_source/{path}" for path in FILES))
    assert archive.sha256 == hashlib.sha256(archive.bytes).hexdigest()


def test_leaves_out_what_does_not_belong_to_the_job(tmp_path: Path) -> None:
    folder = write(tmp_path / "cut_source", FILES)
    write(
        folder,
        {
            "jobs.toml": b"",
            "inputs/graph": b"",
            "tests/test_cut.py": b"",
            ".env": b"",
            ".git/config": b"",
            "__pycache__/cut.cpython-311.pyc": b"",
            "data/old.pyc": b"",
            "data/.DS_Store": b"",
        },
    )

    assert build_source_archive(folder).files == tuple(sorted(f"cut_source/{path}" for path in FILES))


def test_takes_libraries_along_beside_the_source(tmp_path: Path) -> None:
    source = write(tmp_path / "cut_source", {"cut.py": b""})
    library = write(tmp_path / "contraction", {"__init__.py": b"", "tests/test_it.py": b""})

    assert build_source_archive(source, [library]).files == ("contraction/__init__.py", "cut_source/cut.py")


def test_bytes_depend_neither_on_times_nor_modes_nor_owners_nor_order(tmp_path: Path) -> None:
    first = write(tmp_path / "first" / "cut_source", FILES)
    reversed_files = dict(reversed(FILES.items()))
    previous = os.umask(0o077)
    try:
        second = write(tmp_path / "second" / "cut_source", reversed_files)
    finally:
        os.umask(previous)
    for number, file in enumerate(sorted(second.rglob("*"))):
        os.utime(file, (number * 1000, number * 1000))
        file.chmod(0o755 if file.is_dir() else 0o700)

    assert build_source_archive(first).bytes == build_source_archive(second).bytes


def test_bytes_are_the_same_in_a_process_with_other_settings(tmp_path: Path) -> None:
    folder = write(tmp_path / "cut_source", FILES)
    program = (
        "import sys, pathlib; from hybridjobs.model.source_archive import build_source_archive; "
        "print(build_source_archive(pathlib.Path(sys.argv[1])).sha256)"
    )
    environment = {**os.environ, "TZ": "Pacific/Auckland", "LC_ALL": "C", "PYTHONHASHSEED": "7"}

    completed = subprocess.run(
        [sys.executable, "-c", program, folder.name],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(Path(source_archive.__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )

    assert completed.stdout.strip() == build_source_archive(folder).sha256


def test_bytes_are_the_same_on_every_machine(tmp_path: Path) -> None:
    # Recorded once: another value on another Python, zlib or system would launch every job again.
    archive = build_source_archive(write(tmp_path / "cut_source", FILES))

    assert archive.sha256 == "c5c08ba138e44a1b0cb719e4f12303525a0bf4a7b02a5a30ff6d42eeb2dc7435"


def test_other_tools_read_it(tmp_path: Path) -> None:
    archive = build_source_archive(write(tmp_path / "cut_source", FILES))
    file = tmp_path / "source.tar.gz"
    file.write_bytes(archive.bytes)

    shutil.unpack_archive(file, tmp_path / "extracted", filter="data")
    listed = subprocess.run(["tar", "-tzf", file], capture_output=True, text=True, check=True).stdout.splitlines()

    assert (tmp_path / "extracted" / "cut_source" / "cut.py").read_bytes() == FILES["cut.py"]
    assert tuple(listed) == archive.files


file_names = st.text(st.sampled_from("abcdé_ -1"), min_size=1, max_size=8).filter(lambda name: name.strip(" ") == name)
file_paths = st.lists(file_names, min_size=1, max_size=3).map(lambda parts: "/".join(parts) + ".txt")


@settings(deadline=None, max_examples=50)
@given(files=st.dictionaries(file_paths, st.binary(max_size=64), min_size=1, max_size=6), data=st.data())
def test_two_folders_have_the_same_archive_exactly_when_their_files_are_the_same(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(list(files)))
    changed = data.draw(st.sampled_from(list(files)))
    root = tmp_path_factory.mktemp("archive")
    first = write(root / "first" / "cut_source", files)
    second = write(root / "second" / "cut_source", {path: files[path] for path in order})
    third = write(root / "third" / "cut_source", {**files, changed: files[changed] + b"!"})

    archive = build_source_archive(first)

    assert contents(archive.bytes) == {f"cut_source/{path}": content for path, content in files.items()}
    assert build_source_archive(second).bytes == archive.bytes
    assert build_source_archive(third).sha256 != archive.sha256
    shutil.rmtree(root)


def test_a_link_inside_the_folder_is_taken_as_the_file_it_points_to(tmp_path: Path) -> None:
    folder = write(tmp_path / "cut_source", {"data/graph.txt": b"0 1\n"})
    (folder / "graph.txt").symlink_to("data/graph.txt")
    (folder / "copy").symlink_to("data")

    assert contents(build_source_archive(folder).bytes) == {
        f"cut_source/{path}": b"0 1\n" for path in ("copy/graph.txt", "data/graph.txt", "graph.txt")
    }


def test_links_that_leave_the_folder_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "cut_source", {"cut.py": b""})
    secret = write(tmp_path / "home", {"credentials": b"secret"})
    for number, target in enumerate((secret / "credentials", secret, PurePosixPath("../home/credentials"))):
        link = folder / f"link{number}"
        link.symlink_to(target)
        with pytest.raises(SpecError, match="leaves the folder cut_source") as caught:
            build_source_archive(folder)
        assert caught.value.file == str(folder / f"link{number}")
        link.unlink()


@pytest.mark.parametrize(
    ("name", "target", "said"),
    [
        ("gone", "nothing", "leads nowhere"),
        ("again", ".", "leads back"),
        ("environment", ".env", "left out on purpose"),
    ],
)
def test_other_links_that_mislead_are_refused(tmp_path: Path, name: str, target: str, said: str) -> None:
    folder = write(tmp_path / "cut_source", {"cut.py": b"", ".env": b"TOKEN=1"})
    (folder / name).symlink_to(target)

    with pytest.raises(SpecError, match=said):
        build_source_archive(folder)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "cut_source", {"cut.py": b""})
    os.mkfifo(folder / "pipe")

    with pytest.raises(SpecError, match="neither a file nor a folder"):
        build_source_archive(folder)


def test_a_source_that_is_too_large_is_refused_with_its_largest_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_archive, "LARGEST_SOURCE_BYTES", 1000)
    folder = write(tmp_path / "cut_source", {"cut.py": b"", "weights.bin": bytes(2000)})

    with pytest.raises(SpecError, match=r"name it as an input channel; the largest files are cut_source/weights\.bin"):
        build_source_archive(folder)


def test_a_path_that_a_tar_header_cannot_hold_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "cut_source", {"/".join(["d" * 60] * 5) + "/file.py": b""})

    with pytest.raises(SpecError, match="shorter names"):
        build_source_archive(folder)


def test_two_folders_of_one_name_are_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "cut_source", {"cut.py": b""})

    with pytest.raises(SpecError, match="cannot stand side by side"):
        build_source_archive(source, [source])


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no such folder"):
        build_source_archive(tmp_path / "cut_source")
