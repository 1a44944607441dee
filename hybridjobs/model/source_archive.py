"""The archive of a job's source, with the same bytes on every machine."""

import builtins
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hybridjobs.model.archive_format import stored_gzip_file, tar_file
from hybridjobs.model.errors import SpecError
from hybridjobs.model.files import folder_files

LARGEST_SOURCE_BYTES: Final = 64 * 1024 * 1024

_LEFT_OUT_AT_THE_TOP: Final = frozenset({"jobs.toml", "inputs", "tests"})


@dataclass(frozen=True)
class SourceArchive:
    """A gzipped tar file, the SHA-256 of its bytes, and the sorted paths of the files in it."""

    bytes: builtins.bytes = field(repr=False)
    sha256: str
    files: tuple[str, ...]


def build_source_archive(source_folder: Path, libraries: Sequence[Path] = ()) -> SourceArchive:
    """Pack a source folder, and beside it the folders of the libraries it takes along, under their own names.

    The bytes depend on the names and contents of the files alone: times, owners, modes (every file gets 0644) and
    listing order are fixed, and the data are stored without compression, whose outcome differs between builds of zlib.

    Raises SpecError as source_files does, for files of more than LARGEST_SOURCE_BYTES in all, and for paths that do
    not fit into a tar header.
    """
    members = source_files(source_folder, libraries)
    _refuse_too_large(source_folder, members)
    try:
        tar = tar_file((path, location.read_bytes()) for path, location in members.items())
    except ValueError as error:
        raise SpecError(
            f"a path does not fit into a source archive: {error}",
            file=str(source_folder),
            remedy="Give files and folders shorter names in UTF-8",
        ) from error
    archive = stored_gzip_file(tar)
    return SourceArchive(bytes=archive, sha256=hashlib.sha256(archive).hexdigest(), files=tuple(members))


def source_files(source_folder: Path, libraries: Sequence[Path] = ()) -> Mapping[str, Path]:
    """List what an archive holds: paths in it, which begin with the name of their folder, and where the files lie.

    Left out are compiled Python files, hidden files and folders and, at the top of each folder, `jobs.toml`, `inputs/`
    (sent as input channels) and `tests/`.

    Raises SpecError for a missing folder, for two folders of the same name, and for links as files.folder_files does.
    """
    members: dict[str, Path] = {}
    names: set[str] = set()
    for folder in (source_folder, *libraries):
        name = folder.resolve().name
        if not folder.is_dir():
            raise SpecError("there is no such folder", file=str(folder), remedy="Create it, or correct its name")
        if name in names:
            raise SpecError(
                "two folders of this name cannot stand side by side in an archive",
                file=str(folder),
                remedy="Name each library once, and never the source itself",
            )
        names.add(name)
        for path, location in folder_files(folder, skip=_left_out):
            members[f"{name}/{path}"] = location
    return {path: members[path] for path in sorted(members, key=lambda path: path.encode())}


def _left_out(parts: tuple[str, ...]) -> bool:
    name = parts[-1]
    if name.startswith(".") or name == "__pycache__" or name.endswith((".pyc", ".pyo")):
        return True
    return len(parts) == 1 and name in _LEFT_OUT_AT_THE_TOP


def _refuse_too_large(source_folder: Path, members: Mapping[str, Path]) -> None:
    sizes = {path: location.stat().st_size for path, location in members.items()}
    total = sum(sizes.values())
    if total <= LARGEST_SOURCE_BYTES:
        return
    largest = sorted(sizes, key=lambda path: sizes[path], reverse=True)[:3]
    listed = ", ".join(f"{path} ({sizes[path] / 2**20:.1f} MiB)" for path in largest)
    raise SpecError(
        f"a source may have {LARGEST_SOURCE_BYTES / 2**20:g} MiB, and this has {total / 2**20:.1f} MiB",
        file=str(source_folder),
        remedy=f"Move data into inputs/ and name it as an input channel; the largest files are {listed}",
    )
