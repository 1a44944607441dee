"""Where plans and compiled kernels are kept across processes and runs."""

import os
from pathlib import Path

FOLDER_VARIABLE = "HYBRIDJOBS_CACHE_FOLDER"


def cache_folder() -> Path | None:
    """$HYBRIDJOBS_CACHE_FOLDER, else `hybridjobs` below the user's cache folder; None when set but empty."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen is not None:
        return Path(chosen) if chosen else None
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        cache = Path(base) if base else Path.home() / ".cache"
    except RuntimeError:  # no home folder: a container's nameless user
        return None
    return cache / "hybridjobs"
