"""PennyLane as `qml`, imported by its first use: a job on the contraction simulator does without its two seconds."""

import importlib
from typing import Any


class _Later:
    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("pennylane"), name)


qml: Any = _Later()
