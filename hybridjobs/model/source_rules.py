"""Rules that a job's source folder has to keep, so that the job does not end as soon as it has been paid for."""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from hybridjobs.model.entry_points import is_program
from hybridjobs.model.errors import SpecProblem, closest
from hybridjobs.model.images import StockImage, parse_image
from hybridjobs.model.job_spec import JobSpec

# Installed in Braket's images, which look there before they look into the source archive.
_INSTALLED: Final = frozenset(
    {"boto3", "botocore", "braket", "networkx", "numpy", "pennylane", "sagemaker_training", "scipy", "torch"}
)
_LIGHTNING_GPU: Final = re.compile(r"lightning[-_.]gpu|lightning\[[^]]*gpu", re.IGNORECASE)


def folder_name_problem(folder: Path) -> SpecProblem | None:
    """Tell why a folder of this name cannot be the package of a job or of a library, None when it can."""
    name = folder.resolve().name
    if not name.isidentifier():
        return SpecProblem(
            problem="this folder is the package of its jobs, and its name is not one of a Python package",
            remedy=f"Rename it to {re.sub('[^0-9A-Za-z]+', '_', name)}",
            file=str(folder),
        )
    if name in sys.stdlib_module_names or name in _INSTALLED:
        return SpecProblem(
            problem=f"the job's image has a module {name} already, which would be imported instead of this folder",
            remedy=f"Rename it, for example to {name}_source",
            file=str(folder),
        )
    return None


def broken_source_rules(spec: JobSpec, source_folder: Path, members: Mapping[str, Path]) -> Iterator[SpecProblem]:
    """List the rules that `spec` breaks together with its source; keys are relative to the job's table.

    `members` are the files of the source archive, as source_archive.source_files lists them.
    """
    yield from _entry_point(spec.entry_point, source_folder.resolve().name, members)
    yield from _lightning_gpu_image(spec, source_folder)


def _entry_point(entry_point: str, package: str, members: Mapping[str, Path]) -> Iterator[SpecProblem]:
    find = _program_problem if is_program(entry_point) else _entry_point_problem
    problem = find(entry_point, package, members)
    if problem is not None:
        text, remedy = problem
        yield SpecProblem(problem=text, remedy=remedy, key="entry_point", value=entry_point)


def _entry_point_problem(entry_point: str, package: str, members: Mapping[str, Path]) -> tuple[str, str] | None:
    module, _, function = entry_point.partition(":")
    if module.split(".")[0] != package:
        prefixed = f"{package}.{entry_point}"
        exists = _module_file(prefixed.partition(":")[0], members) is not None
        return (
            f"the archive's top folder is {package}, so the module's name begins with {package}",
            f'Write "{prefixed}"' if exists else f'Write "{package}.<module>"',
        )
    file = _module_file(module, members)
    if file is None:
        return "there is no such module in the source folder", _module_suggestion(module, package, members)
    if function:
        return _function_problem(module, function, file)
    if file.name == "__init__.py" and f"{_path(module)}/__main__.py" not in members:
        return (
            "this is a package without __main__.py, which Python cannot run",
            f"Name one of its modules, or a function as {module}:<function>",
        )
    return None


def _program_problem(path: str, package: str, members: Mapping[str, Path]) -> tuple[str, str] | None:
    if not path.startswith(f"{package}/"):
        written = f"{package}/{path}" if f"{package}/{path}" in members else f"{package}/<file>"
        return f"the archive's top folder is {package}, so the file's path begins with {package}/", f'Write "{written}"'
    if path not in members:
        match = closest(path, [name for name in members if not name.endswith(".py")])
        return (
            "there is no such file in the source folder",
            f'Did you mean "{match}"?' if match else "Put it there, or name a module with dots",
        )
    if path.endswith((".jl", ".sh")):
        return None
    with members[path].open("rb") as file:
        if file.read(4).startswith((b"\x7fELF", b"#!")):
            return None
    return (
        "this file is neither a program for Linux nor begins with a #! line, so nothing can start it",
        "Build it for x86-64 Linux, or write #!/bin/sh or another interpreter into its first line",
    )


def _function_problem(module: str, function: str, file: Path) -> tuple[str, str] | None:
    try:
        names = _top_level_names(ast.parse(file.read_bytes()))
    except (SyntaxError, ValueError):
        # The image may run a newer Python than this machine, and know syntax that is unknown here.
        return None
    if names is None or function in names:
        return None
    match = closest(function, names)
    return (
        f"the module {module} has no {function}",
        f'Did you mean "{module}:{match}"?' if match else f"Define the function {function} in {file.name}",
    )


def _top_level_names(tree: ast.Module) -> set[str] | None:
    """Collect the names that a module binds outside functions and classes, None when a star import hides some."""
    names: set[str] = set()
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
            continue
        if isinstance(node, ast.alias):
            if node.name == "*":
                return None
            names.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        pending.extend(ast.iter_child_nodes(node))
    return names


def _module_file(module: str, members: Mapping[str, Path]) -> Path | None:
    path = _path(module)
    for candidate in (f"{path}.py", f"{path}/__init__.py", f"{path}/__main__.py"):
        if candidate in members:
            return members[candidate]
    return None


def _path(module: str) -> str:
    return module.replace(".", "/")


def _module_suggestion(module: str, package: str, members: Mapping[str, Path]) -> str:
    modules = [
        path.removesuffix(".py").removesuffix("/__main__").replace("/", ".")
        for path in members
        if path.startswith(f"{package}/") and path.endswith(".py") and not path.endswith("/__init__.py")
    ]
    if not modules:
        return f"Create {_path(module)}.py; the folder {package} has no modules yet"
    match = closest(module, modules)
    return f'Did you mean "{match}"?' if match else f"Its modules are {', '.join(sorted(modules))}"


def _lightning_gpu_image(spec: JobSpec, source_folder: Path) -> Iterator[SpecProblem]:
    if spec.device != "local:pennylane/lightning.gpu":
        return
    image = parse_image(spec.image)
    if not isinstance(image, StockImage) or image.name == "pytorch":
        return
    requirements = source_folder / "requirements.txt"
    if requirements.is_file() and _LIGHTNING_GPU.search(requirements.read_text(encoding="utf-8", errors="replace")):
        return
    yield SpecProblem(
        problem="this image of Braket holds no lightning.gpu",
        remedy='Write image = "pytorch", or name pennylane-lightning-gpu in the source folder\'s requirements.txt',
        key="image",
        value=spec.image,
    )
