"""Lists the files of a folder in one order on every machine, without following links out of it."""

import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from hybridjobs.model.errors import SpecError

Skip = Callable[[tuple[str, ...]], bool]


def folder_files(folder: Path, *, skip: Skip, within: Path | None = None) -> list[tuple[str, Path]]:
    """List the regular files below `folder` as pairs of path relative to it ("/" between parts) and location.

    `skip` gets the parts of a relative path and tells whether to leave out that file or folder. A symbolic link counts
    as what it points to. The list is sorted by the UTF-8 bytes of the paths.

    Raises SpecError for a link that is broken, circular, points to something skipped or out of `within` (by default
    `folder`), for what is neither file nor folder, and for a name that is not UTF-8.
    """
    root = folder.resolve()
    boundary = (within or folder).resolve()
    found = list(_walk(root, (), skip=skip, root=root, boundary=boundary, open_folders=(root,)))
    return sorted(found, key=lambda pair: pair[0].encode())


def _walk(
    location: Path, parts: tuple[str, ...], *, skip: Skip, root: Path, boundary: Path, open_folders: tuple[Path, ...]
) -> Iterator[tuple[str, Path]]:
    for child in location.iterdir():
        child_parts = (*parts, child.name)
        if skip(child_parts):
            continue
        _refuse_other_encodings(child)
        target = _target(child, skip=skip, root=root, boundary=boundary) if child.is_symlink() else child
        mode = target.stat().st_mode
        if stat.S_ISREG(mode):
            yield "/".join(child_parts), target
        elif stat.S_ISDIR(mode):
            if target in open_folders:
                raise SpecError(
                    "this link leads back to a folder that contains it", file=str(child), remedy="Remove it"
                )
            yield from _walk(
                target, child_parts, skip=skip, root=root, boundary=boundary, open_folders=(*open_folders, target)
            )
        else:
            raise SpecError("this is neither a file nor a folder", file=str(child), remedy="Remove it")


def _refuse_other_encodings(child: Path) -> None:
    # Templates, S3 keys and archives hold names in UTF-8; the file system takes any bytes.
    try:
        child.name.encode()
    except UnicodeEncodeError as error:
        name = child.name.encode("utf-8", "surrogateescape")
        raise SpecError(
            f"the name {name!a} in it is not UTF-8",
            file=str(child.parent),
            remedy="Rename the file or folder",
        ) from error


def _target(link: Path, *, skip: Skip, root: Path, boundary: Path) -> Path:
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise SpecError("this link leads nowhere", file=str(link), remedy="Remove or correct it") from error
    if not target.is_relative_to(boundary):
        raise SpecError(
            f"this link leaves the folder {boundary.name} and would take files along from outside it",
            file=str(link),
            remedy="Copy what it points to into the folder",
        )
    if target.is_relative_to(root):
        inside = target.relative_to(root).parts
        if any(skip(inside[: length + 1]) for length in range(len(inside))):
            raise SpecError(
                "this link leads to something that is left out on purpose",
                file=str(link),
                remedy="Copy what it points to under another name",
            )
    return target
