"""Checkpoints: restored when a job starts, copied to S3 while it runs and once more when it ends."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hybridjobs.local.runners.storage import (
    S3Location,
    fetch_all,
    list_objects,
    planned_fetches,
    regular_files,
)

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_SNAPSHOT_BYTES = 64 << 20


class CheckpointFolder:
    """One host's checkpoint folder and its place in S3. Objects are never deleted, as the service deletes none."""

    def __init__(self, s3: "S3Client", location: S3Location, folder: Path) -> None:
        self._s3 = s3
        self._location = S3Location(location.bucket, f"{location.key.rstrip('/')}/".lstrip("/"))
        self._folder = folder
        self._known: dict[str, tuple[int, int]] = {}

    def restore(self, keep_going: Callable[[], bool]) -> int:
        """Download what earlier jobs left; returns the number of files."""
        self._folder.mkdir(parents=True, exist_ok=True)
        objects = [(key, size) for key, size in list_objects(self._s3, self._location) if not key.endswith("/")]
        if objects:
            fetches = planned_fetches(self._location, objects)
            fetch_all(self._s3, self._location.bucket, fetches, self._folder, keep_going)
        for file in regular_files(self._folder):
            self._known[self._name(file)] = self._state(file)
        return len(objects)

    def store_changed(self, *, final: bool) -> int:
        """Upload the files that are new or changed since they were last stored; returns their number.

        While the job runs, a file that is empty or changes as it is read is left for the next time: it is being
        written. The final round takes everything.
        """
        stored = 0
        for file in regular_files(self._folder):
            name = self._name(file)
            try:
                stored += self._store(name, file, final)
            except FileNotFoundError:  # the job renamed or deleted it meanwhile
                continue
        return stored

    def _store(self, name: str, file: Path, final: bool) -> bool:
        state = self._state(file)
        if self._known.get(name) == state or (not final and state[0] == 0):
            return False
        key = self._location.child(name).key
        if state[0] <= _SNAPSHOT_BYTES:
            content = file.read_bytes()
            if not final and self._state(file) != state:
                return False
            self._s3.put_object(Bucket=self._location.bucket, Key=key, Body=content)
        else:
            self._s3.upload_file(str(file), self._location.bucket, key)
        self._known[name] = state
        return True

    def _name(self, file: Path) -> str:
        return file.relative_to(self._folder).as_posix()

    @staticmethod
    def _state(file: Path) -> tuple[int, int]:
        status = file.stat()
        return status.st_size, status.st_mtime_ns
