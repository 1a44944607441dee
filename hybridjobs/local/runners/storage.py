"""What a runner moves between S3 and a job's folders: input channels, checkpoints' first copy, the result archive."""

import gzip
import re
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from hybridjobs.local.runners.failures import ClientFaultError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_S3_URI = re.compile(r"[sS]3://([^/]+)/?(.*)", re.DOTALL)
_OBJECT_URL = re.compile(r"https://([^./]+)\.[sS]3\.[^/]+/?(.*)", re.DOTALL)


@dataclass(frozen=True)
class S3Location:
    """A bucket and a key or key prefix in it."""

    bucket: str
    key: str

    @classmethod
    def parse(cls, uri: str) -> "S3Location":
        """Read an s3:// URI or an https object URL; raises ClientFaultError for anything else."""
        match = _S3_URI.fullmatch(uri) or _OBJECT_URL.fullmatch(uri)
        if match is None:
            raise ClientFaultError(f"'{uri}' is not an S3 location. Write s3://BUCKET/KEY")
        return cls(*match.groups())

    def child(self, name: str) -> "S3Location":
        """Return the location of `name` below this one."""
        return S3Location(self.bucket, f"{self.key.rstrip('/')}/{name}".lstrip("/"))

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


@dataclass(frozen=True)
class Fetch:
    """One object to download: its key, its size in bytes and where it goes, relative to the target folder."""

    key: str
    size: int
    path: PurePosixPath


def relative_path(key: str, top: str) -> PurePosixPath:
    """Return where an object goes below its folder; raises ClientFaultError for a key that would escape."""
    rest = key.removeprefix(top)
    parts = rest.split("/")
    if "\0" in rest or "\\" in rest or any(part in ("", ".", "..") for part in parts):
        raise ClientFaultError(f"object key '{key}' can't be stored as a file below its folder. Rename the object")
    return PurePosixPath(*parts)


def planned_fetches(location: S3Location, objects: Sequence[tuple[str, int]]) -> list[Fetch]:
    """Decide where the objects under a prefix go.

    `objects` are (key, bytes) of every object whose key begins with the prefix. A prefix that names a folder gives the
    paths below it; any other prefix gives paths below its parent, so that a single file keeps its base name.
    Raises ClientFaultError when nothing is there, a key would escape, or one object's path is a folder of another's.
    """
    prefix = location.key
    files = [(key, size) for key, size in objects if not key.endswith("/")]
    if not files:
        raise ClientFaultError(f"no object found under {location}. Upload the data, or correct the location")
    if prefix and not prefix.endswith("/") and all(key.startswith(f"{prefix}/") for key, _ in files):
        prefix += "/"
    top = prefix[: prefix.rfind("/") + 1]
    fetches = [Fetch(key, size, relative_path(key, top)) for key, size in files]
    paths = {fetch.path for fetch in fetches}
    for fetch in fetches:
        blocking = next((parent for parent in fetch.path.parents if parent in paths), None)
        if blocking is not None:
            raise ClientFaultError(f"object key '{fetch.key}' lies below another object, '{blocking}'. Rename one")
    return fetches


def list_objects(s3: "S3Client", location: S3Location) -> list[tuple[str, int]]:
    """Return (key, bytes) of every object whose key begins with the location's key."""
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=location.bucket, Prefix=location.key)
    return [(item["Key"], item["Size"]) for page in pages for item in page.get("Contents", [])]


def fetch_all(
    s3: "S3Client", bucket: str, fetches: Sequence[Fetch], folder: Path, keep_going: Callable[[], bool]
) -> None:
    """Download the planned objects into `folder`, ending early when `keep_going` says so."""
    for fetch in fetches:
        if not keep_going():
            return
        target = folder / fetch.path
        target.parent.mkdir(parents=True, exist_ok=True)
        s3.download_file(bucket, fetch.key, str(target))


def regular_files(folder: Path) -> Iterator[Path]:
    """Yield the regular files below a folder in a fixed order, following no link."""
    try:
        entries = sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        if entry.is_symlink():
            continue
        if entry.is_dir():
            yield from regular_files(entry)
        elif entry.is_file():
            yield entry


def used_bytes(folder: Path) -> int:
    """Return how much disk the regular files below a folder take; files that vanish meanwhile count nothing."""
    total = 0
    for file in regular_files(folder):
        try:
            total += file.lstat().st_blocks * 512
        except FileNotFoundError:
            continue
    return total


def write_archive(folders: Sequence[Path], archive: Path) -> list[str]:
    """Write the files below `folders` into one tar.gz whose bytes depend only on their paths and contents.

    The first folder that holds a path wins. Returns the paths of other folders that lost to it.
    """
    chosen: dict[str, Path] = {}
    lost: list[str] = []
    for folder in folders:
        for file in regular_files(folder):
            name = file.relative_to(folder).as_posix()
            if name in chosen:
                lost.append(str(file))
            else:
                chosen[name] = file
    with (
        archive.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=6, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as bundle,
    ):
        for name in sorted(chosen):
            file = chosen[name]
            header = tarfile.TarInfo(name)
            status = file.stat()
            header.size = status.st_size
            header.mode = 0o755 if status.st_mode & 0o100 else 0o644
            with file.open("rb") as content:
                bundle.addfile(header, content)
    return lost


def upload_archive(s3: "S3Client", archive: Path, location: S3Location, kms_key_id: str | None) -> None:
    """Store the result archive, encrypted with the job's key where it names one."""
    extra: dict[str, Any] = {"ContentType": "application/gzip"}
    if kms_key_id:
        extra |= {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": kms_key_id}
    s3.upload_file(str(archive), location.bucket, location.key, ExtraArgs=extra)
