"""What the tests of the contraction simulator share."""

from typing import Any
from unittest.mock import patch

import pytest


@pytest.fixture(scope="session")
def quimb() -> Any:
    """Another library's contraction; compiling its helpers, which no contraction here needs, would take a minute."""
    numba = pytest.importorskip("numba")
    with patch.object(numba.config, "DISABLE_JIT", True):
        return pytest.importorskip("quimb.tensor", reason="quimb is the independent contraction beyond state vectors")
