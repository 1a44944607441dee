"""What every test runs with: the tools that are installed into this project come first on the search path."""

import os
import sys
from pathlib import Path

_TOOLS = [str(Path(sys.executable).parent), str(Path(__file__).resolve().parents[1] / "node_modules" / ".bin")]
os.environ["PATH"] = os.pathsep.join([*_TOOLS, os.environ.get("PATH", os.defpath)])
