"""The entry point of a job: a Python module or function, or in an image of one's own any program."""

import re
from typing import Final

from hybridjobs.model.validation import refuse

_PYTHON: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*(:[^\W\d]\w*)?")
_PROGRAM: Final = re.compile(r"(?!\.)[\w.-]+(/(?!\.)[\w.-]+)*")
_LANGUAGES: Final = (".jl", ".sh")
_REMEDY: Final = (
    'Write "package.module" or "package.module:function", beginning with the name of the source folder; in an image '
    'of your own also the path of a program, such as "package/main.jl"'
)


def is_program(entry_point: str) -> bool:
    """Whether this names a file that is no Python module: one ending in .jl or .sh, or the path of an executable.

    container_assets/entrypoint starts such files; Braket's own images import what they are given, and can't.
    """
    return entry_point.endswith(_LANGUAGES) or "/" in entry_point


def module_named_by(path: str) -> str:
    """Return the dotted name that is probably meant where a module is given as the path of a file."""
    dotted = re.sub(r"\.py(?=$|:)", "", path).strip("./\\")
    dotted = re.sub(r"[/\\]+", ".", dotted)
    return dotted if "." in dotted.partition(":")[0] else f"<source folder>.{dotted}"


def checked_entry_point(entry_point: str) -> str:
    """Return `entry_point` when it can be one; PydanticCustomError, from validation.refuse, with what to write else."""
    if entry_point.startswith(("s3://", "https://")) or entry_point.endswith(("/", "\\")):
        raise refuse(
            "this is a folder or an address, while an entry point is a module of the source folder, the one that holds "
            "jobs.toml",
            _REMEDY,
        )
    if entry_point.endswith(".py") or ".py:" in entry_point or "\\" in entry_point:
        raise refuse(
            "this is a file's path, while Braket imports the entry point by its module name",
            f'Write "{module_named_by(entry_point)}"',
        )
    if is_program(entry_point):
        if not _PROGRAM.fullmatch(entry_point):
            raise refuse(
                "this is not the path of a file in the source archive",
                'Write its path from the source folder\'s name on, of letters, digits and "_", "-", ".", such as '
                '"package/main.jl"',
            )
    elif not _PYTHON.fullmatch(entry_point):
        raise refuse("this is not the dotted name of a module", _REMEDY)
    return entry_point
