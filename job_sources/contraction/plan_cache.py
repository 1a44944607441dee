"""Keep plans on disk, so that the same circuit is planned once across iterations, processes and runs.

A plan's file is named by the SHA-256 of everything that the plan depends on: the canonical structure and the version
of the planner. Files are written beside their place and renamed into it: readers see a whole file or none, and of two
writers of one plan the second replaces the first by the same plan. A file that can't be read is planned again.
"""

import hashlib
import json
import logging
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from contraction.cache_folder import cache_folder
from contraction.plan import LeafLayout, Plan

# Raise it with any change of networks, orders, steps or kernels that makes an old plan wrong or slow.
PLANNER_VERSION = 1

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class StoredPlan:
    """A plan with the arrays and the JSON values that its user keeps beside it."""

    plan: Plan
    arrays: Mapping[str, npt.NDArray[Any]]
    values: Mapping[str, Any]


_Plan = TypeVar("_Plan", StoredPlan, StoredPlan | None)


def default_folder() -> Path | None:
    """Folder for plans below the cache folder (see cache_folder); None where nothing is to be kept."""
    folder = cache_folder()
    return None if folder is None else folder / "contraction-plans"


def plan_key(structure: object) -> str:
    """Name of a plan: SHA-256 of the planner's version and of a structure made of JSON values."""
    document = {"planner": PLANNER_VERSION, "structure": structure}
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def load_or_make(folder: Path | None, key: str, make: Callable[[], _Plan]) -> StoredPlan | _Plan:
    """Read a plan, or make it and keep it.

    Args:
        folder: where plans lie; None keeps nothing.
        key: from plan_key.
        make: finds the plan, or None where there is none, which isn't kept.
    """
    if folder is None:
        return make()
    path = folder / f"{key}.npz"
    stored = _read(path)
    if stored is not None:
        return stored
    made = make()
    if made is not None:
        _write(path, made)
    return made


def _read(path: Path) -> StoredPlan | None:
    try:
        with np.load(path, allow_pickle=False) as file:
            header = json.loads(file["header"].tobytes().decode())
            arrays = {name[6:]: file[name] for name in file.files if name.startswith("extra_")}
            plan = Plan(
                steps=file["steps"],
                inputs=file["inputs"],
                groups=file["groups"],
                roots=file["roots"],
                layouts=tuple(
                    LeafLayout(table, tuple(axes), bool(batched), bits)
                    for table, axes, batched, bits in header["layouts"]
                ),
                leaf_entries=(header["leaf_entries"][0], header["leaf_entries"][1]),
                buffer_entries=(header["buffer_entries"][0], header["buffer_entries"][1]),
                operations=(header["operations"][0], header["operations"][1]),
                width=header["width"],
            )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        _LOGGER.warning("plan %s can't be read (%s): it is made again", path, error)
        return None
    return StoredPlan(plan, arrays, header["values"])


def _write(path: Path, stored: StoredPlan) -> None:
    plan = stored.plan
    header = {
        "layouts": [[layout.table, layout.axes, layout.batched, layout.stored_bits] for layout in plan.layouts],
        "leaf_entries": plan.leaf_entries,
        "buffer_entries": plan.buffer_entries,
        "operations": plan.operations,
        "width": plan.width,
        "values": stored.values,
    }
    arrays: dict[str, Any] = {
        "header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8),
        "steps": plan.steps,
        "inputs": plan.inputs,
        "groups": plan.groups,
        "roots": plan.roots,
        **{f"extra_{name}": array for name, array in stored.arrays.items()},
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.stem, suffix=".tmp", delete=False) as file:
            temporary = Path(file.name)
            try:
                np.savez_compressed(file, **arrays)
                file.close()
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
    except OSError as error:
        # A read-only or full disk costs the next run its search, not this run its result.
        _LOGGER.warning("plan %s can't be kept: %s", path, error)
