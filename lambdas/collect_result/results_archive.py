"""Takes results.json out of a job's model.tar.gz, without unpacking anything else."""

from __future__ import annotations

import json
import math
import posixpath
import tarfile
import zlib
from dataclasses import dataclass
from typing import IO, Any

MAX_RESULTS_BYTES = 16 * 1024 * 1024
# Members before results.json are decompressed to be skipped; an archive may hold checkpoints and models, not this much.
MAX_SKIPPED_BYTES = 20 * 1024**3


@dataclass(frozen=True)
class Results:
    """A job's own results: the dictionary that it saved, or why there is none."""

    data: dict[str, Any] | None
    problem: str | None = None


def read_results(archive: IO[bytes]) -> Results:
    """Read the dictionary that a job saved with `save_job_result`.

    Args:
        archive: The stream of model.tar.gz.

    Returns:
        The `dataDictionary`, with null for NaN and infinities; pickled results are never loaded.
    """
    try:
        document = json.loads(_member(archive), parse_constant=lambda _: None, parse_float=_finite)
        # What can't be written again must not keep the record from being written.
        json.dumps(document, indent=2, allow_nan=False)
    except (tarfile.TarError, zlib.error, EOFError) as error:
        return Results(None, f"model.tar.gz can't be read: {error}")
    except _UnusableError as error:
        return Results(None, str(error))
    except (ValueError, RecursionError) as error:
        return Results(None, f"results.json is not JSON: {error}")
    if not isinstance(document, dict) or not isinstance(document.get("dataDictionary"), dict):
        return Results(None, "results.json has no dataDictionary")
    if document.get("dataFormat", "plaintext") != "plaintext":
        return Results(
            None, f"results.json is {document['dataFormat']}, which is never loaded: save the results as plain text"
        )
    return Results(document["dataDictionary"])


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


class _UnusableError(Exception):
    pass


def _member(archive: IO[bytes]) -> bytes:
    skipped = 0
    with tarfile.open(fileobj=archive, mode="r|gz") as members:
        for member in members:
            if member.isfile() and posixpath.normpath(member.name) == "results.json":
                if member.size > MAX_RESULTS_BYTES:
                    raise _UnusableError(
                        f"results.json has {member.size} bytes, more than the {MAX_RESULTS_BYTES} that a record takes: "
                        "save large results as files of their own"
                    )
                stream = members.extractfile(member)
                return stream.read() if stream else b""
            skipped += member.size
            if skipped > MAX_SKIPPED_BYTES:
                raise _UnusableError(f"results.json does not come within the first {MAX_SKIPPED_BYTES} bytes")
    raise _UnusableError("model.tar.gz has no results.json: the job never called save_job_result")
