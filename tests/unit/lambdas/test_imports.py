"""The functions travel alone: the standard library and boto3 are all they find in Lambda."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LAMBDAS = ROOT / "lambdas"
MODULES = sorted(LAMBDAS.rglob("*.py"))
OURS = {path.stem if path.is_file() else path.name for path in LAMBDAS.iterdir()}
HANDLERS = ("launch_job.handler", "collect_result.handler")


def imported(tree: ast.AST) -> set[str]:
    """The top-level names of what is imported when the code runs; what only the type checker imports is left out."""
    names: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name their module in full"
            names.add((node.module or "").partition(".")[0])
        names |= imported(node)
    return names


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(LAMBDAS)))
def test_a_module_imports_the_standard_library_boto3_and_its_neighbours_only(module: Path) -> None:
    allowed = set(sys.stdlib_module_names) | OURS | {"boto3", "botocore"}
    assert imported(ast.parse(module.read_text())) <= allowed


def test_only_the_aws_package_calls_boto3() -> None:
    callers = [module for module in MODULES if "boto3" in imported(ast.parse(module.read_text()))]
    assert [str(module.relative_to(LAMBDAS)) for module in callers] == ["aws/clients.py"]


@pytest.mark.parametrize("handler", HANDLERS)
def test_a_handler_imports_with_nothing_but_boto3_on_the_path(handler: str, tmp_path: Path) -> None:
    # boto3 and what it needs itself, out of an environment that has much more.
    for name in ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "urllib3", "six"):
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        source = origin.parent if origin.name == "__init__.py" else origin
        (tmp_path / source.name).symlink_to(source)
    code = (
        f"import sys; sys.path[:0] = [{str(LAMBDAS)!r}, {str(tmp_path)!r}]\n"
        f"import {handler}\n"
        f"assert callable({handler}.handle)\n"
        "assert not {'hybridjobs', 'stacks', 'aws_cdk', 'pydantic'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-I", "-B", "-c", code], capture_output=True, text=True, env={}, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("handler", HANDLERS)
def test_importing_a_handler_makes_no_client_and_reads_no_environment(handler: str) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(LAMBDAS)!r})\n"
        "import boto3\n"
        "def fail(*a, **k): raise AssertionError('a client at import')\n"
        "boto3.client = boto3.Session = boto3.resource = fail\n"
        f"import {handler}\n"
    )
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, env={}, check=False)
    assert done.returncode == 0, done.stderr
