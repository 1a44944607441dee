"""What every test runs with: the tools that are installed into this project, and one thread a calculation."""

import os
import sys
from pathlib import Path

# Several tests run at a time on few cores: threads of one calculation would only wait for those of another.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
_TOOLS = [str(Path(sys.executable).parent), str(Path(__file__).resolve().parents[1] / "node_modules" / ".bin")]
os.environ["PATH"] = os.pathsep.join([*_TOOLS, os.environ.get("PATH", os.defpath)])
