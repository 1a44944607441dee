"""Loads the programs of images, which stand alone and are in no package."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ASSETS = Path(__file__).parents[2] / "container_assets"


def load_script(path: Path) -> ModuleType:
    """Return the program as a module of its own name."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up while it is executed.
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
