"""The files of a job's input channels."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hybridjobs.model.errors import SpecError
from hybridjobs.model.files import folder_files


@dataclass(frozen=True)
class InputFile:
    """A file of an input channel: `path` below the channel's folder, the SHA-256 of its content, and where it lies."""

    path: str
    sha256: str
    file: Path


def input_files(source_folder: Path, inputs: Mapping[str, str]) -> Mapping[str, tuple[InputFile, ...]]:
    """Read the files of each channel of `inputs`, which maps channels to files or folders below `source_folder`.

    A channel that names a file holds it under its own name; one that names a folder holds what is below it, without
    hidden files. The files of a channel are sorted by path.

    Raises SpecError, with the key `inputs.<channel>`, for a path that is missing, cannot be read, leaves the source
    folder or holds no file.
    """
    return {channel: _channel_files(source_folder, channel, path) for channel, path in inputs.items()}


def _channel_files(source_folder: Path, channel: str, path: str) -> tuple[InputFile, ...]:
    key = f"inputs.{channel}"
    try:
        return _readable_files(source_folder, key, path)
    except OSError as error:
        raise SpecError(
            f"{error.filename or path} cannot be read: {error.strerror}",
            key=key,
            value=path,
            remedy="Name a file or folder that you may read",
        ) from error


def _readable_files(source_folder: Path, key: str, path: str) -> tuple[InputFile, ...]:
    location = source_folder / path
    if not location.exists():
        raise SpecError(
            f"there is no such file or folder below {source_folder}",
            key=key,
            value=path,
            remedy="Create it, or correct the path",
        )
    if not location.resolve().is_relative_to(source_folder.resolve()):
        raise SpecError(
            "this link leaves the source folder", key=key, value=path, remedy="Copy what it points to into the folder"
        )
    if location.is_file():
        return (InputFile(path=location.name, sha256=_sha256(location), file=location.resolve()),)
    try:
        listed = folder_files(location, skip=lambda parts: parts[-1].startswith("."), within=source_folder)
    except SpecError as error:
        raise SpecError(f"{error.file}: {error.problem}", key=key, value=path, remedy=error.remedy) from error
    if not listed:
        raise SpecError("this folder holds no files", key=key, value=path, remedy="Put the input into it")
    return tuple(InputFile(path=relative, sha256=_sha256(file), file=file) for relative, file in listed)


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
